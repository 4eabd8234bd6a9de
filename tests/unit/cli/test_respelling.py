"""The line that `why` gives to paste: it means just the job that waits, with one thing changed, or there is none."""

from __future__ import annotations

import shlex

import pytest
from msgspec.structs import replace
from served import Serve, Told

from muster.cli.respelling import _read, put_to_use
from muster.model.after import After, When
from muster.model.origin import Origin
from muster.model.spec import Needs, Spec
from muster.units import Resources
from muster.wire.views import JobView, OptionView, WhyView

HERE = "/data/my project"
PLAIN = Spec(("echo", "it's done"), name="second", tenant="lab", ask=Resources(cpu_milli=800), workdir=HERE)
LESS = OptionView("cpu_milli", 800, 500, "--cpus 0.5", "")
FLAVOR = OptionView("flavors", "a100", "l4", "--flavor l4", "")


def line_of(spec: Spec, option: OptionView = LESS) -> str:
    before, mark, line = put_to_use(3, spec, option, HERE).partition("to do so: ")
    return line if mark else before


def test_a_job_of_run_is_run_anew_and_then_cancelled() -> None:
    line = line_of(PLAIN)
    assert (
        line == "muster run --detach --cpus 0.5 --name second --tenant lab -- echo 'it'\"'\"'s done' && muster cancel 3"
    )


@pytest.mark.parametrize(
    "spec",
    [
        PLAIN,
        replace(
            PLAIN, tenant="default", needs=Needs(apart=("default/web",), beside=("default/x",), apart_level="rack")
        ),
        replace(
            PLAIN, needs=Needs(("a100", "h100"), within="rack", spread="node", labels=("zone!=b",), tolerates=("x",))
        ),
        replace(PLAIN, needs=Needs(partition="1g.10gb", booking="b", like="llm", data=("d", "e"))),
        replace(PLAIN, gang=4, gang_most=8, in_place=True, spares=1, needs=Needs(beside=("lab/web",))),
        replace(PLAIN, gang=8, needs=Needs(shape=(2, 2, 2))),
        replace(PLAIN, array=20, at_most=3, retries=2, limit_ms=5_400_000, grace_ms=1_500),
        replace(
            PLAIN, tier="critical", priority=-5, evictable=False, expect_ms=61_000, yields=True, stop_signal="USR1"
        ),
        replace(PLAIN, due_at=1_794_700_000_123, image="img:1", notify=("pager",), workdir="/data"),
        replace(PLAIN, env={"A": "x y=z", "B": ""}, after=(After(1, When.STARTED), After(2, When.SUCCEEDED))),
        replace(PLAIN, after=(After(1, When.OVER), After(2, When.OVER), After(2, When.NOT_SUCCEEDED))),
        replace(PLAIN, ask=Resources(gpu_milli=500, cpu_milli=1000, memory_bytes=3 * 2**30 + 2**20)),
        replace(PLAIN, ask=Resources(gpus=2, cpu_milli=100), command=("sh", "-c", 'echo "$HOME" -- *', "--gpus")),
    ],
)
def test_every_flag_of_the_old_job_is_kept(spec: Spec) -> None:
    ask = replace(spec.ask, gpus=1) if spec.needs.partition else spec.ask
    words = shlex.split(line_of(replace(spec, ask=ask)))
    assert words[:3] == ["muster", "run", "--detach"]
    assert words[-4:] == ["&&", "muster", "cancel", "3"]
    assert _read(words[3:-4], HERE) == replace(spec, ask=replace(ask, cpu_milli=500))


def test_a_need_is_changed_like_an_amount() -> None:
    flavored = replace(PLAIN, needs=Needs(flavors=("a100",)))
    assert "--flavor l4 --name" in line_of(flavored, FLAVOR)
    assert "--spread" not in line_of(
        replace(PLAIN, needs=Needs(spread="node")), OptionView("spread", "node", "", "", "")
    )
    assert "--tier critical" in line_of(PLAIN, OptionView("tier", "standard", "critical", "", ""))


@pytest.mark.parametrize(("most", "bounds"), [(0, "3-3"), (8, "3-8")])
def test_a_gang_gets_its_width_where_it_is(most: int, bounds: str) -> None:
    narrower = OptionView("gang", 4, 3, "--gang 3", "")
    assert line_of(replace(PLAIN, gang=4, gang_most=most), narrower) == f"muster scale 3 {bounds}"


@pytest.mark.parametrize(
    "spec",
    [
        replace(PLAIN, command=("/bin/sh", "-c", "a\nb", "script")),
        replace(PLAIN, command=("x" * 3000,)),
        replace(PLAIN, ask=replace(PLAIN.ask, disk_bytes=1)),
        replace(PLAIN, needs=Needs(near="rack")),
        replace(PLAIN, origin=Origin("/data/tree", "ab12")),
        replace(PLAIN, env={"A": "\x1b[2J"}),
    ],
)
def test_what_run_cannot_say_is_not_made_up(spec: Spec) -> None:
    assert line_of(spec) == "change it where it came from, submit it again, then: muster cancel 3"


def test_a_slurm_script_is_named() -> None:
    line = line_of(replace(PLAIN, env={"SLURM_JOB_NAME": "train"}))
    assert line == "it is a Slurm script's: change that, submit it again, then: muster cancel 3"


@pytest.mark.parametrize(("phase", "count"), [("queued", 1), ("running", 0)])
def test_why_prints_it_below_the_offer_and_never_of_what_has_begun(
    serve: Serve, told: Told, phase: str, count: int
) -> None:
    view = WhyView(3, phase, "M202", "waiting for quota", "wait", options=[LESS], offer="starts now if: --cpus 0.5")
    shown = JobView(3, "second", "lab", phase, 1, PLAIN.ask, 1, 1, spec=PLAIN)
    serve({"GET /v1/jobs/3/why": view, "GET /v1/jobs/3": shown})
    lines = told("why", "3").splitlines()
    assert sum(line.startswith("  to do so: muster run --detach --cpus 0.5 ") for line in lines) == count
    assert lines[-1] == "help: wait"


def test_nobody_is_stopped_by_what_was_only_pasted(serve: Serve, told: Told) -> None:
    tier = OptionView("tier", "standard", "critical", "--tier critical", "", stops=1)
    view = WhyView(3, "queued", "M201", "waiting for room", "wait", options=[tier, LESS], offer="starts now if: ...")
    shown = JobView(3, "second", "lab", "queued", 1, PLAIN.ask, 1, 1, spec=PLAIN)
    serve({"GET /v1/jobs/3/why": [view, replace(view, options=[tier])], "GET /v1/jobs/3": shown})
    assert "to do so: muster run --detach --cpus 0.5 " in told("why", "3")
    assert "to do so" not in told("why", "3")
