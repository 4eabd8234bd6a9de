"""What advisers say: learned outside, checked here, and kept as a fact until its time is over."""

from __future__ import annotations

from typing import Final

from muster.kernel.turn import Turn, refuse
from muster.model import event, fact
from muster.model.advice import KINDS_MAX, WORDS_MAX
from muster.model.reason import DONE, Code, Done, Refused
from muster.model.spec import is_name
from muster.units import AMOUNT_MAX, INSTANT_MAX

WORD_MAX: Final = (1 << 63) - 1


def on_advise(turn: Turn, item: event.Advise) -> Done | Refused:
    """Take advice in place of what was known of its kind; refuse what is older than that, or over already."""
    fault = _find_fault(turn, item)
    if fault is not None:
        return fault
    known = turn.world.advice.get(item.kind)
    if known is not None and known == item.advice:
        return DONE
    least = 1 if known is None else known.version + 1
    if item.advice.version < least:
        return refuse(Code.BAD_AMOUNT, "version", item.advice.version, least, f"{least} or more")
    turn.emit(fact.Advised(item.kind, item.advice, item.cause))
    return DONE


def drop_outlived(turn: Turn) -> None:
    """Forget the advice whose time is over."""
    for kind in sorted(turn.world.advice):
        if turn.world.advice[kind].expires_at <= turn.now:
            turn.emit(fact.AdviceDropped(kind, cause="expired"))


def _find_fault(turn: Turn, item: event.Advise) -> Refused | None:
    advice, known = item.advice, turn.world.advice
    if not is_name(item.kind):
        return refuse(Code.BAD_NAME, "advice", len(item.kind), 128, item.kind[:40])
    if not turn.now < advice.expires_at <= INSTANT_MAX:
        return refuse(Code.BAD_AMOUNT, "expires_at", advice.expires_at, turn.now + 1, "an instant that is to come")
    if advice.version > AMOUNT_MAX:
        return refuse(Code.BAD_AMOUNT, "version", advice.version, AMOUNT_MAX, "from 1 to 2^62")
    words = sum(map(len, advice.columns.values()))
    if words > WORDS_MAX or len(advice.columns) > WORDS_MAX:
        return refuse(Code.TOO_LARGE, "advice", max(words, len(advice.columns)), WORDS_MAX)
    if any(not -WORD_MAX <= word <= WORD_MAX for column in advice.columns.values() for word in column):
        return refuse(Code.BAD_AMOUNT, "advice", detail="an integer that fits a word")
    if item.kind not in known and len(known) >= KINDS_MAX:
        return refuse(Code.TOO_LARGE, "kinds of advice", len(known) + 1, KINDS_MAX)
    return None
