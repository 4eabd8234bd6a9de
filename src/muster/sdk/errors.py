"""What a server's refusal becomes in Python: an exception of the one tree, with the words that the server chose.

The words are not made again here. A newer server may refuse with a code that this client has never heard of; then
the code is kept as text and the words still say what happened.

MusterError
├── AnsweredError               the server answered, and refused
│   ├── RefusedError            … and it is the caller's fault (also a RejectedError)
│   ├── ContestedError          … because somebody or something came first (also a ConflictError)
│   └── UnfitError              … because the server could not do its part
└── NoServerError               nobody answered
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from muster.model.errors import ConflictError, MusterError, RejectedError
from muster.model.reason import Code, Reason
from muster.wire.views import Problem

if TYPE_CHECKING:
    from muster.wire.words import Words

CONFLICT: Final = 409
SERVER_FAULTS: Final = 500
TOO_MANY: Final = 429
STRANGE_SHOWN: Final = 200


class AnsweredError(MusterError):
    """The server answered with a problem."""

    def __init__(self, problem: Problem) -> None:
        reason = Reason(_code_of(problem), needed=problem.needed, available=problem.available, detail=problem.detail)
        super().__init__(reason)
        self.problem = problem
        self.where = ""
        """Where in a file the request was made from, if it was."""

    def __str__(self) -> str:
        return f"{self.problem.code}: {self.problem.detail}"


class RefusedError(AnsweredError, RejectedError):
    """The request cannot be granted as it is; nothing was changed."""


class ContestedError(AnsweredError, ConflictError):
    """The request came too late, or the key belongs to something else."""


class UnfitError(AnsweredError):
    """The server could not do its part; the same request may succeed later."""


class NoServerError(MusterError):
    """Nobody answers. Whether a request that was on its way took effect is not known."""

    def __init__(self, where: str, silent_s: int = 0) -> None:
        """It listens and was `silent_s` long, or it is not there."""
        code = Code.SERVER_SILENT if silent_s else Code.NO_SERVER
        super().__init__(Reason(code, "server", needed=silent_s, detail=where))

    def __str__(self) -> str:
        words = words_of(self)
        return f"{code_of(self)}: {words.what}; {words.fix}"


def make_error(problem: Problem) -> AnsweredError:
    """The exception for a problem."""
    if problem.status >= SERVER_FAULTS or problem.status == TOO_MANY:
        return UnfitError(problem)
    if problem.status == CONFLICT:
        return ContestedError(problem)
    return RefusedError(problem)


def strange_answer(body: bytes, what: str) -> Problem:
    """The problem of an answer that no Muster server gives: something else listens there."""
    told = body[:STRANGE_SHOWN].decode(errors="replace")
    fix = "check the address: is it a Muster server of this version?"
    return Problem("about:blank", "strange answer", 502, Code.UNEXPECTED.value, f"{what}: {told}", fix)


def code_of(error: MusterError) -> str:
    """The stable code, as text."""
    return error.problem.code if isinstance(error, AnsweredError) else error.reason.code.value


def words_of(error: MusterError) -> Words:
    """What happened and the one fix: the server's words if it spoke, else those of the one table."""
    from muster.wire.words import Words, put_in_words  # here: most commands end well and need no sentence of it

    if isinstance(error, AnsweredError):
        return Words(error.problem.detail, error.problem.fix)
    return put_in_words(error.reason)


def _code_of(problem: Problem) -> Code:
    try:
        return Code(problem.code)
    except ValueError:
        return Code.UNEXPECTED
