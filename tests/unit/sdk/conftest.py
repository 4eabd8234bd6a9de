"""The fixtures of `scripted_server`, for every test of this room."""

from scripted_server import client, server

__all__ = ["client", "server"]
