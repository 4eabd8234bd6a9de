"""The auditor's books of what is settled: flavors, tiers, profiles, overlays, labels that tell pools apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from muster.model import fact
from muster.model.job import NodePhase
from muster.model.node import Flavor
from muster.model.phase import TaskPhase
from muster.model.profile import DEFAULT_NAME, PROFILES, Edition
from muster.model.spec import Spec
from muster.model.tier import TIERS, Tier
from muster.world.arena import DEVICE
from muster.world.audit.books import JobBook, NodeBook
from muster.world.audit.overlay import OverlayBooks, OverlayFact
from muster.world.laws.law import require, require_same
from muster.world.world import World

SettingFact: TypeAlias = fact.LabelsMentioned | fact.TierSet | fact.ProfileSet | fact.ProfileUsed | OverlayFact


class SettingBooks:
    """What the facts say of each."""

    def __init__(self) -> None:
        self.flavors: dict[str, Flavor] = {}
        self.overlays = OverlayBooks(self.flavors)
        self._mentioned: frozenset[str] = frozenset()
        self.tiers: dict[str, Tier] = TIERS.copy()
        self._profiles: dict[str, Edition] = PROFILES.copy()
        self._profile_used = DEFAULT_NAME

    def book(self, item: SettingFact) -> None:
        """Take one fact down."""
        match item:
            case fact.LabelsMentioned():
                self._mentioned |= frozenset(item.labels)
            case fact.TierSet():
                self.tiers[item.name] = item.tier
            case fact.ProfileSet():
                before = self._profiles.get(item.name)
                follows = item.version == (1 if before is None else before.version + 1)
                law = "versions of a profile follow each other"
                require(follows, law, f"{item.name}: {item.version} after {before}")
                self._profiles[item.name] = Edition(item.profile, item.version)
            case fact.ProfileUsed():
                require(item.name in self._profiles, "a profile in use is one that is stored", item.name)
                self._profile_used = item.name
            case fact.OverlaySet() | fact.OverlayDropped():
                self.overlays.book(item)

    def check_promise(self, spec: Spec, jobs: Mapping[int, JobBook], nodes: Iterable[NodeBook]) -> None:
        """Whoever is promised something is taken in only while all promises fit, with its own."""
        if not self._promised(spec):
            return
        live = [book.spec for book in jobs.values() if book.phase < TaskPhase.SUCCEEDED]
        has = sum(
            DEVICE * (node.capacity.gpus - node.lack.devices.bit_count())
            for node in nodes
            if node.phase == NodePhase.UP and not node.bars
        )
        owed = sum(self._promised(each) for each in live)
        require(owed <= has, "promises are taken in while they fit", f"{spec.tier}: {owed} of {has}")

    def _promised(self, spec: Spec) -> int:
        promise = self.tiers[spec.tier].promise
        if promise is None or spec.array:
            return 0
        groups = [(group.ask, group.tasks) for group in spec.needs.groups] or [(spec.ask, spec.gang)]
        milli = sum((DEVICE * ask.gpus + ask.gpu_milli) * tasks for ask, tasks in groups)
        return milli * promise.share_milli // 1000

    def compare(self, world: World, nodes: Sequence[NodeBook]) -> None:
        """Whether the world says the same."""
        self.overlays.compare(world, nodes)
        require_same(world.flavors, self.flavors, "flavors are what the facts say")
        require_same(world.fleet.mentioned, self._mentioned, "labels are what the facts mention")
        require_same(world.tiers, self.tiers, "tiers are what the facts say")
        require_same(world.profiles, self._profiles, "profiles are what the facts say")
        used = (world.profile_used, world.fleet.profile)
        wanted = (self._profile_used, self._profiles[self._profile_used].profile)
        require_same(used, wanted, "the fleet is scored by the profile in use")
