"""How the programs behind `muster` read their words: like the command line itself, in what they refuse and how."""

from __future__ import annotations

import argparse
from typing import NoReturn

REFUSED = 2


class WordParser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line, and where more is said in another."""

    def error(self, message: str) -> NoReturn:
        """One cause, one fix."""
        self.exit(REFUSED, f"error: {message}\nhelp: {self.prog} --help\n")
