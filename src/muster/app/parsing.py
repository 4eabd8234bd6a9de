"""How the programs behind `muster` read their words, and say what is wrong: like the command line itself."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from muster.model.errors import MusterError
from muster.wire.words import put_in_words

REFUSED = 2


class WordParser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line, and where more is said in another."""

    def error(self, message: str) -> NoReturn:
        """One cause, one fix."""
        self.exit(REFUSED, f"error: {message}\nhelp: {self.prog} --help\n")


def show_refusal(error: MusterError) -> None:
    """One cause, one fix, and where the code has its page, on standard error."""
    words, code = put_in_words(error.reason), error.reason.code.value
    sys.stderr.write(f"error[{code}]: {words.what}\nhelp: {words.fix}\nmore: muster explain {code}\n")
