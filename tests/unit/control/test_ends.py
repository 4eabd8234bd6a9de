"""When what runs is likely over, and who says so: an adviser, its owner, its limit, or nobody."""

from __future__ import annotations

from muster.control.ends import BY_ADVICE, BY_LIMIT, BY_OWNER, foresee_end
from muster.model import event
from muster.model.advice import RUNTIME, Advice
from muster.testing.rig import Rig
from muster.units import DAY_MS, HOUR_MS, MINUTE_MS
from muster.wire.evidence import KINS
from muster.wire.views import EndView

LEARNED = {"least_ms": (MINUTE_MS,), "most_ms": (HOUR_MS,), "likes": (41,), "kin": (KINS.index("named"),)}


def advise(rig: Rig, job: int, **columns: tuple[int, ...]) -> None:
    known = rig.world.advice.get(RUNTIME)
    said = {"job": (job,), "run_ms": (30 * MINUTE_MS,), **columns}
    version = 1 if known is None else known.version + 1
    rig.feed(event.Advise(RUNTIME, Advice(version, rig.now + DAY_MS, said)))


def test_an_adviser_says_when_between_what_and_from_what() -> None:
    rig = Rig(nodes=1)
    job = rig.submit(limit_ms=DAY_MS)
    since = rig.run(job).since
    advise(rig, job, **LEARNED)
    said = foresee_end(rig.world, rig.job(job), rig.now)
    words = "from 41 jobs of its owner with the same name"
    assert said == EndView(since + 30 * MINUTE_MS, words, since + MINUTE_MS, since + HOUR_MS)
    advise(rig, job)
    assert foresee_end(rig.world, rig.job(job), rig.now) == EndView(since + 30 * MINUTE_MS, BY_ADVICE)
    passed = foresee_end(rig.world, rig.job(job), since + HOUR_MS)
    assert passed == EndView(since + DAY_MS, BY_LIMIT), "nobody knows better once it goes on"


def test_its_owner_says_so_or_its_limit_or_nobody() -> None:
    rig = Rig(nodes=1)
    told, limited, free = rig.submit(expect_ms=HOUR_MS), rig.submit(limit_ms=HOUR_MS), rig.submit()
    assert foresee_end(rig.world, rig.job(told), rig.now) == EndView(rig.run(told).since + HOUR_MS, BY_OWNER)
    assert foresee_end(rig.world, rig.job(limited), rig.now) == EndView(rig.run(limited).since + HOUR_MS, BY_LIMIT)
    assert foresee_end(rig.world, rig.job(free), rig.now) is None
    waiting = rig.submit(gpus=8, expect_ms=HOUR_MS)
    assert foresee_end(rig.world, rig.job(waiting), rig.now) is None
