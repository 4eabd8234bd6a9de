"""The paths that requests ask for: names and values percent-encoded, so that none of them can be taken for syntax.

Why not `urllib.parse`: it also parses, and loads `ipaddress` for that, a twentieth of what a short command costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_PLAIN: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def quote(text: str) -> str:
    """One segment of a path, or one value of a query."""
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in text.encode())


def add_query(path: str, query: Mapping[str, str]) -> str:
    """The path with a query, if there is anything in it; its names are ours and need no quoting."""
    return f"{path}?{'&'.join(f'{name}={quote(value)}' for name, value in query.items())}" if query else path


def job_path(job: int | str, of: str = "") -> str:
    """The path of a job, or of something of it. What is no number is a slip of who calls: a whole answer, mostly."""
    text = str(job)
    if isinstance(job, bool) or not (text.isascii() and text.isdecimal()):
        raise TypeError(f"a job is named by its number, not by {job!r}; of what `submit` gives, that is `.job`")
    return f"/v1/jobs/{job}{of}"
