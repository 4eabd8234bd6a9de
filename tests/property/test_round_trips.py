"""Whatever can be said can be written down and read again: every kind of fact, every kind of event."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model import event, fact
from muster.model.advice import Advice
from muster.model.after import After, When
from muster.model.booking import Booking, Window
from muster.model.budget import Budget
from muster.model.event import Held
from muster.model.job import Bar, BarKind, NodePhase
from muster.model.node import Flavor, Labels, Lack, Place, Said, Traits
from muster.model.overlay import Overlay
from muster.model.phase import TaskPhase, Why
from muster.model.profile import Profile
from muster.model.spec import Spec
from muster.model.tenant import Line, Tenant
from muster.model.tier import Tier
from muster.units import Limit, Resources
from muster.wire import codec

THOROUGH = settings(derandomize=True, deadline=None, max_examples=40)
INTS = st.integers(-(2**63), 2**63 - 1)
AMOUNTS = st.integers(0, 2**62)
RESOURCES = st.builds(Resources, AMOUNTS, AMOUNTS, AMOUNTS)
LIMITS = st.none() | AMOUNTS
SPECS = st.builds(
    Spec,
    command=st.lists(st.text(), min_size=1).map(tuple),
    name=st.text(),
    tenant=st.text(),
    gang=AMOUNTS,
    array=AMOUNTS,
    ask=RESOURCES,
    env=st.dictionaries(st.text(), st.text()),
    workdir=st.text(),
    limit_ms=LIMITS,
    grace_ms=AMOUNTS,
    retries=AMOUNTS,
    spares=AMOUNTS,
    tier=st.text(),
    priority=INTS,
    due_at=LIMITS,
    after=st.lists(st.builds(After, INTS, st.sampled_from(When))).map(tuple),
)
KINDS = st.sampled_from(BarKind)
PLACES = st.builds(Place, st.text(), st.text(), st.text(), st.text())
LABELS = st.lists(st.tuples(st.text(), st.text())).map(tuple)
TRAITS = st.builds(Traits, st.text(), PLACES, LABELS, st.lists(st.text()).map(tuple))
LINES = st.builds(Line, st.text(), st.text(), INTS, LIMITS, LIMITS)
BUDGETS = st.builds(Budget, st.text(), INTS, st.booleans(), INTS, INTS)
TENANTS = st.builds(Tenant, st.text(), INTS, st.lists(LINES).map(tuple), st.lists(BUDGETS).map(tuple))
ADVICE = st.builds(Advice, INTS, INTS, st.dictionaries(st.text(), st.lists(INTS).map(tuple)))
WINDOWS = st.builds(Window, INTS, INTS, st.lists(INTS).map(tuple), st.booleans())
BOOKINGS = st.builds(Booking, st.text(), st.text(), INTS, st.lists(WINDOWS).map(tuple), INTS)
BY_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    int: INTS,
    str: st.text(),
    bool: st.booleans(),
    tuple[str, ...]: st.lists(st.text()).map(tuple),
    tuple[int, ...]: st.lists(INTS).map(tuple),
    dict[int, TaskPhase]: st.dictionaries(INTS, st.sampled_from(TaskPhase)),
    Limit: LIMITS,
    list[int]: st.lists(INTS),
    Spec: SPECS,
    Resources: RESOURCES,
    Tenant: TENANTS,
    Advice: ADVICE,
    Booking: BOOKINGS,
    Flavor: st.builds(Flavor, st.text(), INTS, INTS, INTS, INTS),
    Overlay: st.builds(Overlay, st.text(), INTS, st.lists(st.text()).map(tuple), st.lists(st.text()).map(tuple)),
    Tier: st.builds(Tier, INTS, INTS),
    Profile: st.builds(Profile, *[INTS] * len(Profile.__struct_fields__)),
    Traits: TRAITS,
    Labels: LABELS,
    Said | None: st.none() | st.builds(Said, RESOURCES, TRAITS, st.lists(st.text()).map(tuple)),
    Lack: st.builds(Lack, INTS, RESOURCES),
    BarKind: KINDS,
    Bar: st.builds(Bar, KINDS, st.text(), st.text(), INTS, LIMITS, st.booleans()),
    NodePhase: st.sampled_from(NodePhase),
    TaskPhase: st.sampled_from(TaskPhase),
    Why: st.sampled_from(Why),
    Why | None: st.none() | st.sampled_from(Why),
    tuple[Held, ...]: st.lists(st.builds(Held, INTS, INTS, INTS, INTS)).map(tuple),
}


def any_of(kind: type) -> st.SearchStrategy[Any]:
    """Any value of a record, by the types of its fields; a type without a strategy fails here."""
    return st.builds(kind, **{name: BY_TYPE[hint] for name, hint in get_type_hints(kind).items() if name[0] != "_"})


@pytest.mark.parametrize("kind", fact.Fact.__args__, ids=lambda kind: str(kind.__name__))
def test_every_kind_of_fact_comes_back(kind: type) -> None:
    @THOROUGH
    @given(st.lists(any_of(kind), max_size=3), AMOUNTS, AMOUNTS)
    def law(facts: list[fact.Fact], seq: int, at: int) -> None:
        data = codec.encode_entry(seq, at, facts)
        entry = codec.decode_entry(data)
        assert (entry.seq, entry.at, entry.facts) == (seq, at, facts)
        assert codec.encode_entry(entry.seq, entry.at, entry.facts) == data

    law()


@pytest.mark.parametrize("kind", event.Event.__args__, ids=lambda kind: str(kind.__name__))
def test_every_kind_of_event_comes_back(kind: type) -> None:
    @THOROUGH
    @given(st.lists(any_of(kind), max_size=3), AMOUNTS, AMOUNTS)
    def law(events: list[event.Event], seq: int, at: int) -> None:
        inputs = codec.decode_inputs(codec.encode_inputs(seq, at, events))
        assert (inputs.seq, inputs.at, inputs.events) == (seq, at, events)

    law()
