"""again: whether tasks of an array may run again, as those of a new one. They failed there, and nobody else runs them.

Of an array that retired from the world, whoever asks looked at the journal for what failed; here it is only known who
of those that are still here runs it.
"""

from __future__ import annotations

from muster.model.again import Again
from muster.model.reason import Code, Reason
from muster.model.spec import Spec
from muster.world.again import find_taken, find_unfailed
from muster.world.world import World


def find_again_refusal(world: World, spec: Spec, again: Again) -> Reason | None:
    """Why these may not run again, or None."""
    job = world.jobs.get(again.of)
    if not 0 < again.of < world.next_job:
        return Reason(Code.UNKNOWN_JOB, "job", again.of)
    if job is not None:
        if not job.spec.array or job.spec.tenant != spec.tenant:
            return Reason(Code.NOTHING_FAILED, "again", again.of, detail=f"it is no array of tenant {spec.tenant}")
        odd = find_unfailed(world, job, again)
        if odd is not None:
            return Reason(Code.NOTHING_FAILED, "again", again.of, detail=f"task {odd} did not")
    for who, first, count in find_taken(world, again.of):
        for begin, width in again.spans:
            if begin < first + count and first < begin + width:
                detail = f"task {max(first, begin)} runs again as job {who}"
                return Reason(Code.NOTHING_FAILED, "again", again.of, detail=detail)
    return None
