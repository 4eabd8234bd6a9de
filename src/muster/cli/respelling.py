"""A job that waits, with the change that would start it, as a line to paste.

A gang gets its new width where it is. Whatever else is changed needs a new job: `muster run` with every flag that made
the old one, which is cancelled once the new one is there. No line is given that was not read back first and found to
mean just that job: what `run` cannot say (a script, a snapshot, a field of job files) is told to be changed where it
came from.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Container, Iterator
from itertools import groupby
from typing import Any, Final

import click
from msgspec.structs import replace

from muster.cli.run import describe, run
from muster.model.after import When
from muster.model.spec import DEFAULT_TENANT, Spec, give_tenant
from muster.model.tier import STANDARD
from muster.sdk.jobfile import IN_PLACE, make_spec
from muster.units import (
    SECOND_MS,
    AmountError,
    parse_duration,
    show_cpus,
    show_duration,
    show_instant,
    show_sides,
    spell_bytes,
)
from muster.wire.views import OptionView

LINE_CHARS_MAX: Final = 2000
ABOUT_THE_CALL: Final = ("detach", "key", "dry_run", "snapshot")
"""Flags of `run` that say nothing of the job."""
SHOWN: Final = frozenset(
    {
        *("--gpus", "--partition", "--cpus", "--memory", "--gang", "--spares", "--array", "--at-most", "--name"),
        *("--tenant", "--limit", "--due", "--retries", "--env", "--workdir", *(f"--{when.value}" for when in When)),
    }
)
"""Flags of which `muster show` has fields."""
SLURM: Final = "SLURM_JOB_NAME"


def put_to_use(job: int, spec: Spec, option: OptionView, here: str) -> str:
    """What to type to have a job so; or where to change it, if that cannot be typed."""
    if SLURM in spec.env:
        return f"it is a Slurm script's: change that, submit it again, then: muster cancel {job}"
    if option.field == "gang" and not (spec.array or spec.needs.shape or spec.needs.groups):
        return f"to do so: muster scale {job} {option.to}-{spec.gang_most or option.to}"
    words = _find_words(_change(spec, option.field, option.to), here)
    if words is None:
        return f"change it where it came from, submit it again, then: muster cancel {job}"
    return f"to do so: {shlex.join(words)} && muster cancel {job}"


def _change(spec: Spec, field: str, to: int | str) -> Spec:
    if field in ("gang", "spares", "tier"):
        return replace(spec, **{field: to})
    if field in ("within", "spread"):
        return replace(spec, needs=replace(spec.needs, **{field: to}))
    if field == "flavors":
        return replace(spec, needs=replace(spec.needs, flavors=(str(to),)))
    return replace(spec, ask=replace(spec.ask, **{field: to}))


def _find_words(spec: Spec, here: str) -> list[str] | None:
    """The command line that makes just this job; None if there is none that fits a line."""
    words = [*_flags(spec, here), "--", *spec.command]
    line = " ".join(words)
    if len(line) > LINE_CHARS_MAX or not line.isprintable() or _read(words, here) != spec:
        return None
    return ["muster", "run", "--detach", *words]


def _read(words: list[str], here: str) -> Spec | None:
    """The job that `run` would make of these words."""
    try:
        options: dict[str, Any] = run.make_context("run", list(words)).params
        job = describe(**{name: value for name, value in options.items() if name not in ABOUT_THE_CALL})
        spec = make_spec(job, here=here, now_ms=int(time.time() * 1000))
    except (click.ClickException, AmountError):
        return None
    return spec if spec.tenant else give_tenant(spec, DEFAULT_TENANT)


def spell_rest(spec: Spec) -> Iterator[str]:
    """The flags of a job that `muster show` has no field for: where it may be, how it stands, how it is ended."""
    return _flags(spec, spec.workdir, but=SHOWN)


def _flags(spec: Spec, here: str, but: Container[str] = ()) -> Iterator[str]:
    """Every flag of `run` that this job needs, and no other; without some, if they are named."""
    for name, value in (*_of_size(spec), *_of_place(spec), *_of_standing(spec), *_of_life(spec, here)):
        if value and name not in but:
            yield from (name,) if value is True else (name, str(value))


def _of_size(spec: Spec) -> Iterator[tuple[str, object]]:
    ask, most = spec.ask, spec.gang_most
    if not spec.needs.partition:
        yield "--gpus", show_cpus(ask.gpu_milli) if ask.gpu_milli else ask.gpus
    yield "--partition", spec.needs.partition
    yield "--cpus", "" if ask.cpu_milli == 1000 else show_cpus(ask.cpu_milli)
    yield "--memory", spell_bytes(ask.memory_bytes) if ask.memory_bytes else ""
    yield "--shape", show_sides(spec.needs.shape) if spec.needs.shape else ""
    if not spec.needs.shape and (spec.gang, most) != (1, 0):
        yield "--gang", f"{spec.gang}-{most}" if most > spec.gang else spec.gang
    yield "--elastic", IN_PLACE if spec.in_place else ""
    yield "--spares", spec.spares
    yield "--array", spec.array
    yield "--at-most", spec.at_most


def _of_place(spec: Spec) -> Iterator[tuple[str, object]]:
    needs = spec.needs
    own = f"{spec.tenant}/"
    yield from (("--flavor", name) for name in needs.flavors)
    yield "--within", needs.within
    yield "--spread", needs.spread
    yield from (("--apart", name.removeprefix(own)) for name in needs.apart)
    yield "--apart-level", needs.apart_level if needs.apart and needs.apart_level != "node" else ""
    yield from (("--beside", name.removeprefix(own)) for name in needs.beside)
    yield "--beside-level", needs.beside_level if needs.beside and needs.beside_level != "node" else ""
    yield "--booking", needs.booking
    yield "--like", needs.like
    yield from (("--data", name) for name in needs.data)
    yield from (("--label", wish) for wish in needs.labels)
    yield from (("--tolerate", taint) for taint in needs.tolerates)


def _of_standing(spec: Spec) -> Iterator[tuple[str, object]]:
    yield "--name", spec.name
    yield "--tenant", "" if spec.tenant == DEFAULT_TENANT else spec.tenant
    yield "--tier", "" if spec.tier == STANDARD else spec.tier
    yield "--priority", spec.priority
    yield "--no-evict", not spec.evictable
    for when, several in groupby(spec.after, key=lambda each: each.when):
        yield f"--{When(when).value}", ",".join(str(each.job) for each in several)


def _of_life(spec: Spec, here: str) -> Iterator[tuple[str, object]]:
    yield "--limit", "" if spec.limit_ms is None else _spell_span(spec.limit_ms)
    yield "--expect", "" if spec.expect_ms is None else _spell_span(spec.expect_ms)
    yield "--yields", spec.yields
    yield "--grace", "" if spec.grace_ms == 10 * SECOND_MS else _spell_span(spec.grace_ms)
    yield "--signal", spec.stop_signal
    yield "--due", "" if spec.due_at is None else show_instant(spec.due_at)
    yield "--retries", spec.retries
    yield from (("--env", f"{name}={value}") for name, value in spec.env.items())
    yield "--workdir", "" if spec.workdir == here else spec.workdir
    yield "--image", spec.image
    yield from (("--notify", route) for route in spec.notify)


def _spell_span(span_ms: int) -> str:
    """A length of time as it is read, to the millisecond."""
    text = show_duration(span_ms).replace(" ", "")
    return text if not span_ms % SECOND_MS and parse_duration(text) == span_ms else f"{span_ms}ms"
