"""A terminal as a screen of its own: whole frames out, single keys in. It knows nothing of what is shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import click

_KEYS: Final = {
    b"\x1b[A": "up",
    b"\x1b[B": "down",
    b"\x1bOA": "up",
    b"\x1bOB": "down",
    b"\r": "enter",
    b"\n": "enter",
    b"\x1b": "escape",
    b"\x03": "q",
    b"": "q",
}
_ARROW_BYTES: Final = 2


@contextmanager
def open_screen() -> Iterator[None]:
    """A screen of its own, with single keys; whatever happens, the old one comes back."""
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    click.echo("\x1b[?1049h\x1b[?25l\x1b[2J", nl=False, color=True)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        click.echo("\x1b[?25h\x1b[?1049l", nl=False, color=True)


def paint(lines: Sequence[str], marked: int | None, foot: str) -> None:
    """One frame from the top of the screen, cut to its size; the marked line and the foot are turned around."""
    size = os.get_terminal_size()
    shown = lines[: size.lines - 2]
    plain = [click.unstyle(line) for line in shown]
    body = [
        f"\x1b[7m{bare[: size.columns]}\x1b[0m" if at == marked else line if line != bare else bare[: size.columns]
        for at, (line, bare) in enumerate(zip(shown, plain, strict=True))
    ]
    text = "".join(f"{line}\x1b[K\r\n" for line in body)
    click.echo(f"\x1b[H{text}\x1b[J\x1b[7m{foot[: size.columns]}\x1b[0m", nl=False, color=True)


def read_key(span_s: float) -> str:
    """The key that is pressed within a span of time, by its name or as the sign it is; nothing if none is."""
    if not _is_pressed(span_s):
        return ""
    pressed = os.read(sys.stdin.fileno(), 1)
    if pressed == b"\x1b" and _is_pressed(0):  # an arrow is three signs; one more key may be waiting behind it
        pressed += os.read(sys.stdin.fileno(), _ARROW_BYTES)
    return _KEYS.get(pressed, pressed[:1].decode(errors="replace"))


def _is_pressed(span_s: float) -> bool:
    import select

    return bool(select.select([sys.stdin], [], [], span_s)[0])
