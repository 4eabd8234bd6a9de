"""The audit log's chain: whatever is done to a line shows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from muster.access.audit import verify, write_line
from muster.model.access import HOME_OWNER, MakeToken, Token
from muster.model.advice import Advice
from muster.model.booking import Booking
from muster.model.event import Advise, Event, Reserve, SetTenant
from muster.model.tenant import Tenant
from muster.ports import Change
from muster.ports.store import Link, link_of
from muster.stores.memory import MemoryStore
from muster.wire.records import decode_line


def _store(lines: int = 5) -> MemoryStore:
    store = MemoryStore()
    store.keep([Change((), b"%d" % number) for number in range(lines)])
    return store


def test_an_untouched_chain_holds() -> None:
    store = _store()
    assert verify(MemoryStore()) == (0, b"", 0)
    assert verify(store) == (5, store.read_audit(4)[0].link, 0)


def _relink(lines: list[Link]) -> list[Link]:
    """What a forger does who knows the rule but begins in the middle."""
    return [*lines[:2], Link(3, b"forged", link_of(lines[1].link, 3, b"forged")), *lines[3:]]


@pytest.mark.parametrize(
    ("tamper", "broken_at"),
    [
        (lambda lines: [*lines[:2], lines[2]._replace(data=b"forged"), *lines[3:]], 3),
        (lambda lines: [*lines[:2], *lines[3:]], 3),
        (lambda lines: [lines[1], lines[0], *lines[2:]], 1),
        (lambda lines: lines[1:], 1),
        (lambda lines: [*lines, lines[4]._replace(number=6)], 6),
        (_relink, 4),
    ],
)
def test_a_touched_chain_breaks_there(tamper: Callable[[list[Link]], list[Link]], broken_at: int) -> None:
    store = _store()
    store._audit = tamper(store._audit)
    assert verify(store).broken_at == broken_at


def test_a_line_says_who_did_what_to_what() -> None:
    line = decode_line(1, write_line(SetTenant("lab", Tenant(weight=3)), HOME_OWNER, 7))
    assert (line.at, line.by, line.action, line.subject) == (7, "owner", "set_tenant", "lab")
    assert '"weight":3' in line.detail


@pytest.mark.parametrize(
    ("request_", "subject"),
    [(Reserve(Booking("night", "lab", 1, ())), "night"), (Advise("distance", Advice(1, 9, {})), "distance")],
)
def test_what_has_its_name_elsewhere_is_named_too(request_: Event, subject: str) -> None:
    assert decode_line(1, write_line(request_, HOME_OWNER, 7)).subject == subject


def test_a_line_repeats_nothing_of_a_secret() -> None:
    request = MakeToken("0123", Token("ann", b"\x01" * 32, 0, 9), HOME_OWNER)
    line = decode_line(1, write_line(request, HOME_OWNER, 7))
    assert (line.action, line.subject) == ("make_token", "0123")
    assert "AQEB" not in line.detail
