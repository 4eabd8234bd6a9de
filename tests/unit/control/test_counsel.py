"""Advisers beside a live follower: they hear every entry, their word is taken, and a broken one harms nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from control_kit import DEADLINE_S, Stage, eventually, followed, led, spec

from muster.control.counsel import Counsel
from muster.control.follower import Follower
from muster.control.views import view_job
from muster.learning.foretelling import RuntimeAdviser
from muster.learning.packing import FIRST, PackingAdviser
from muster.model.advice import PACKING, RUNTIME, Advice
from muster.model.event import Advise, Exited, SetProfile, Started, Submit, UseProfile
from muster.model.fact import Accepted, Fact
from muster.model.phase import Running, Succeeded
from muster.model.profile import Profile
from muster.model.reason import Done
from muster.ports.store import Wanted
from muster.units import HOUR_MS, MINUTE_MS, Resources
from muster.world.world import World

SHARE = Resources(cpu_milli=1, gpu_milli=470)
PACKED = Profile(pattern=60, price=60, displacement=4, stranding=3)


class Recorder:
    """An adviser that says what a test wants, and notes whom it met; it breaks on demand."""

    def __init__(self) -> None:
        self.met: list[int] = []
        self.words: list[Advise] = []
        self.breaks = False

    def observe(self, world: World, facts: Sequence[Fact]) -> None:
        assert not self.breaks
        self.met += [item.job for item in facts if isinstance(item, Accepted) and item.job in world.jobs]

    def advise(self, world: World, now: int) -> Sequence[Advise]:
        words, self.words = self.words, []
        return words


def is_over(follower: Follower, job: int) -> bool:
    return isinstance(follower.world.jobs[job].phase, Succeeded)


def play(tmp_path: Path, scene: Callable[[Stage, Follower], Awaitable[None]]) -> None:
    async def run() -> None:
        stage = Stage(tmp_path)
        async with led(stage) as caller, followed(stage) as follower:
            await eventually(lambda: follower.is_led)
            caller.ask(SetProfile("packed", PACKED), *(Submit(spec(ask=SHARE)) for _ in range(FIRST)))
            answers = await caller.answered(FIRST + 1)
            assert await follower.at_least(answers[-1].seq, DEADLINE_S)
            await scene(stage, follower)

    asyncio.run(run())


def test_the_adviser_on_packing_is_heard_once_the_profile_asks_for_it(tmp_path: Path) -> None:
    async def scene(stage: Stage, follower: Follower) -> None:
        counsel = Counsel(follower, [PackingAdviser()], DEADLINE_S)
        await counsel.look()
        assert PACKING not in stage.world.advice, "nobody is told what nobody asks for"
        await follower.ask(UseProfile("packed"))
        await eventually(lambda: follower.world.profile_used == "packed")
        await counsel.look()
        said = stage.world.advice[PACKING]
        assert said.columns["value"][470] == 500
        assert follower.world.advice[PACKING] == said
        await counsel.look()
        assert stage.world.advice[PACKING].version == said.version, "nothing is new"

    play(tmp_path, scene)


def test_whoever_is_here_is_met_and_so_is_whoever_comes(tmp_path: Path) -> None:
    async def scene(stage: Stage, follower: Follower) -> None:
        recorder = Recorder()
        Counsel(follower, [recorder])
        assert recorder.met == list(range(1, FIRST + 1))
        await follower.submit(spec(), "", "test")
        await eventually(lambda: len(stage.world.jobs) == len(follower.world.jobs))
        assert recorder.met == list(range(1, FIRST + 2))

    play(tmp_path, scene)


def test_run_times_are_learned_beside_a_live_follower_and_known_again_after_a_restart(tmp_path: Path) -> None:
    async def scene(stage: Stage, follower: Follower) -> None:
        async def begin() -> int:
            answer = await follower.submit(spec(name="train"), "", "test")
            assert isinstance(answer.reply, Done)
            job = answer.reply.job
            assert await follower.at_least(answer.seq, DEADLINE_S)
            stage.engine.report(Started(job, 1, 0, 1))
            await eventually(lambda: isinstance(follower.world.jobs[job].phase, Running))
            return job

        counsel = Counsel(follower, [RuntimeAdviser()], DEADLINE_S)
        for _ in range(4):
            job = await begin()
            stage.clock.at += 10 * MINUTE_MS
            stage.engine.report(Exited(job, 1, 0, 0, 1))
            await eventually(partial(is_over, follower, job))
        job = await begin()
        await counsel.look()
        for world in (stage.world, follower.world):
            assert world.advice[RUNTIME].columns["job"] == (job,)
        view = view_job(follower.world, follower.world.jobs[job], now=stage.clock.at)
        assert view.end is not None
        assert view.end.words == "from 4 jobs of its owner with the same name, size and limit"
        assert 6 * MINUTE_MS < view.end.at_ms - stage.clock.at < 15 * MINUTE_MS

        history = await follower.read_finished(Wanted(limit=100))
        await Counsel(follower, [RuntimeAdviser(history)], DEADLINE_S).look()
        assert stage.world.advice[RUNTIME].version == 2, "a new one has its say as soon as it knows"
        assert stage.world.advice[RUNTIME].columns["job"] == (job,)
        assert stage.world.advice[RUNTIME].columns["likes"] == (4,)

    play(tmp_path, scene)


def test_one_that_breaks_is_heard_no_longer_and_the_fold_goes_on(tmp_path: Path) -> None:
    async def scene(stage: Stage, follower: Follower) -> None:
        broken, sound = Recorder(), Recorder()
        counsel = Counsel(follower, [broken, sound], DEADLINE_S)
        broken.breaks = True
        answer = await follower.submit(spec(), "", "test")
        assert await follower.at_least(answer.seq, DEADLINE_S)
        assert sound.met[-1] == FIRST + 1
        late = Advice(1, stage.clock.at + HOUR_MS, {"a": (1,)})
        broken.words = [Advise("broken", late)]
        sound.words = [Advise("stale", Advice(1, 1, {})), Advise("sound", late)]
        await counsel.look()
        assert list(stage.world.advice) == ["sound"], "what is refused is told in the log, and the next word goes on"

    play(tmp_path, scene)
