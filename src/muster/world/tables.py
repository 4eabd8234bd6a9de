"""Tables of preference: how fast each kind of work is on each flavor, and how far each dataset is from each cluster.

Both come as advice, in integers; here they are read for one pool at a time. What a table says of nobody counts as the
worst that it says of anybody, so that a flavor or cluster nobody measured is not preferred for it. They rule nothing
out: a job that could run somewhere still may.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from muster.model.advice import DISTANCE, INDEX, PACKING, RUNTIME, THROUGHPUT, Advice, column_of
from muster.model.spec import Needs
from muster.world.pools import Pool

if TYPE_CHECKING:
    from muster.world.world import World

Column: TypeAlias = Mapping[str, tuple[int, ...]]


class Tables(NamedTuple):
    """Speeds by work and flavor, distances by dataset and cluster; the first number of a column counts."""

    speeds: Column
    distances: Column

    def slowness(self, needs: Needs, pool: Pool) -> int:
        """The lower, the sooner the work would be over on a device of the pool."""
        return -_read(self.speeds, needs.like, pool.flavor, 0) if needs.like else 0

    def distance(self, needs: Needs, pool: Pool) -> int:
        """How far all that a job reads is from a pool."""
        cluster = "/".join(filter(None, (pool.region, pool.cluster)))
        return sum(_read(self.distances, name, cluster, self._farthest(name)) for name in needs.data)

    def _farthest(self, dataset: str) -> int:
        begin = column_of(dataset, "")
        return max((words[0] for name, words in self.distances.items() if name.startswith(begin) and words), default=0)


NO_TABLES: Final = Tables({}, {})
KINDS: Final = (THROUGHPUT, DISTANCE)
"""The advice that tables are read from."""


def heed(world: World, kind: str, advice: Advice | None) -> None:
    """Go by this advice from now on, or by none of its kind."""
    if advice is None:
        del world.advice[kind]
    else:
        world.advice[kind] = advice
    if kind in KINDS:
        speeds, distances = (world.advice[each].columns if each in world.advice else {} for each in KINDS)
        world.fleet.prefer(Tables(speeds, distances))
    elif kind == INDEX:
        world.queue.floors.advise(advice, world.jobs)
    elif kind == PACKING:
        world.fleet.heed(advice)
    elif kind == RUNTIME:
        world.ends.advise(advice, world.jobs)


def _read(table: Column, row: str, column: str, otherwise: int) -> int:
    words = table.get(column_of(row, column), ())
    return words[0] if words else otherwise
