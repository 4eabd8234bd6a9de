"""The fixtures of `served`, for every test of this room."""

from served import serve, told

__all__ = ["serve", "told"]
