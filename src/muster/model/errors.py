"""The exceptions, in one tree. A refusal is a value; an exception leaves the ordinary path.

MusterError                 carries a Reason
├── RejectedError           the caller's fault: bad input, bad order of calls
├── ConflictError           a stale epoch, a second leader
├── EngineError             an engine failed (`transient` says whether to try again)
├── StoreError              the store could not read or write
└── InvariantError          ours: stop the affected scope and keep the evidence
"""

from __future__ import annotations

from muster.model.reason import Code, Reason


class MusterError(Exception):
    """The root: every error of ours carries a Reason."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(f"{reason.code.value} {reason.code.name.lower()}: {reason.subject} {reason.detail}".rstrip())
        self.reason = reason


class RejectedError(MusterError):
    """The caller's fault; nothing was changed."""


class ConflictError(MusterError):
    """Somebody else holds what is asked for."""


class EngineError(MusterError):
    """An engine could not do what it was told."""

    def __init__(self, reason: Reason, *, transient: bool) -> None:
        super().__init__(reason)
        self.transient = transient


class StoreError(MusterError):
    """The store could not read or write."""


class InvariantError(MusterError):
    """A law of the house was broken: a bug of ours."""

    def __init__(self, law: str, evidence: str) -> None:
        super().__init__(Reason(Code.INVARIANT, subject=law, detail=evidence))
        self.law = law
        self.evidence = evidence
