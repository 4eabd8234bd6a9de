"""When what runs will be over, as far as anybody knows, and who says so. Built on read; the scheduler goes by the same
figures, and nothing is promised by them."""

from __future__ import annotations

from typing import Final

from muster.model.advice import RUNTIME
from muster.model.job import Job
from muster.model.phase import Running, Starting
from muster.wire.evidence import put_evidence
from muster.wire.views import EndView
from muster.world.world import World

BY_OWNER: Final = "as its owner expects"
BY_LIMIT: Final = "by its limit"
BY_ADVICE: Final = "as an adviser says"


def foresee_end(world: World, job: Job, now: int) -> EndView | None:
    """When a gang that has its place will be over; None if nobody can say."""
    if not isinstance(job.phase, Running | Starting):
        return None
    end = world.ends.foreseen(job.id, now)
    if end is None:
        return None
    if world.ends.told.get(job.id) != end:
        return EndView(end, BY_LIMIT)
    if job.id not in world.ends.advised:
        return EndView(end, BY_OWNER)
    return _read_advice(world, job.id, job.phase.run.since)


def _read_advice(world: World, job: int, since: int) -> EndView:
    """What an adviser says, with its range and where it comes from, if it says that too."""
    columns = world.advice[RUNTIME].columns
    place = columns["job"].index(job)
    end = since + columns["run_ms"][place]
    least, most, likes, kin = (columns.get(name, ()) for name in ("least_ms", "most_ms", "likes", "kin"))
    if min(map(len, (least, most, likes, kin))) <= place:
        return EndView(end, BY_ADVICE)
    words = put_evidence(likes[place], kin[place], "its owner")
    return EndView(end, words, since + least[place], since + most[place])
