"""`muster profiles`: how places are weighed against each other. Lists, shows, compares, stores and uses profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click
import msgspec

from muster.cli.listing import listing_group
from muster.cli.printing import (
    Listing,
    detail_options,
    print_detail,
    print_fields,
    print_table,
)
from muster.model.errors import RejectedError
from muster.model.profile import DEFAULT, TERMS
from muster.model.reason import Code, Reason
from muster.sdk.client import Client
from muster.units import parse_count
from muster.wire.views import ProfileView


@listing_group
def profiles(client: Client) -> Listing:
    """List profiles, the weights of the score terms; or show, compare, set or use one."""
    return _list(client.profiles())


def _list(views: Sequence[ProfileView]) -> Listing:
    heads = ("PROFILE", "VERSION", "IN USE", *(term.upper() for term in TERMS))
    return Listing(heads, [_row(view) for view in views], views, [view.name for view in views])


def _row(view: ProfileView) -> list[str]:
    weights = [str(view.weights.get(term, "-")) for term in TERMS]
    return [view.name, str(view.version), "yes" if view.is_used else "", *weights]


@profiles.command()
@click.argument("name")
@detail_options
def show(name: str, output: str) -> None:
    """Show one profile, term by term."""
    with Client() as client:
        view = _get(client.profiles(), name)
    if print_detail(output, view):
        return
    print_fields([("profile", name), ("version", str(view.version)), ("in use", "yes" if view.is_used else "no")])
    click.echo()
    print_table(("TERM", "WEIGHT"), [(term, str(weight)) for term, weight in view.weights.items()])


@profiles.command()
@click.argument("first")
@click.argument("second")
def diff(first: str, second: str) -> None:
    """Show the terms that two profiles weigh differently."""
    with Client() as client:
        views = client.profiles()
    one, other = _get(views, first).weights, _get(views, second).weights
    rows = [(term, str(one[term]), str(other[term])) for term in one if one[term] != other[term]]
    if rows:
        print_table(("TERM", first, second), rows)
    else:
        click.echo(f"{first} and {second} weigh alike")


@profiles.command("set")
@click.argument("name")
@click.argument("weights", nargs=-1, required=True, metavar="TERM=WEIGHT...")
def set_profile(name: str, weights: tuple[str, ...]) -> None:
    """Weigh terms anew: muster profiles set dense packing=1200 cost=0

    A term that is not named keeps its weight; in a new profile, the usual one.
    """
    changes = dict(_parse(word) for word in weights)
    with Client() as client:
        known = next((view for view in client.profiles() if view.name == name), None)
        before = msgspec.structs.asdict(DEFAULT) if known is None else known.weights
        version = 0 if known is None else known.version
        client.set_profile(name, {**before, **changes}, of_version=version)
        client.settle()
    click.echo(_told(name, version, before, {**before, **changes}, is_used=known is not None and known.is_used))


@profiles.command()
@click.argument("name")
def use(name: str) -> None:
    """Have the fleet scored by a profile; what runs stays where it is."""
    with Client() as client:
        client.use_profile(name)
        client.settle()
    click.echo(f"profile {name} is in use: the next placements are scored by it")


def _parse(word: str) -> tuple[str, int]:
    term, mark, weight = word.partition("=")
    if not mark or term not in TERMS:
        raise click.UsageError(f"{word!r} is not TERM=WEIGHT with one of {', '.join(TERMS)}")
    return term, parse_count(weight, term)


def _told(name: str, version: int, before: Mapping[str, int], after: Mapping[str, int], *, is_used: bool) -> str:
    changed = [f"{term} {before[term]} → {after[term]}" for term in before if before[term] != after[term]]
    if version and not changed:
        return f"profile {name} is so already, in version {version}"
    words = f"profile {name}, version {version + 1}: {', '.join(changed) or 'as usual'}"
    return words if is_used else f"{words}; use it with `muster profiles use {name}`"


def _get(views: Sequence[ProfileView], name: str) -> ProfileView:
    found = next((view for view in views if view.name == name), None)
    if found is None:
        raise RejectedError(Reason(Code.UNKNOWN_PROFILE, "profile", detail=name[:128]))
    return found


COMMANDS = {"profiles": profiles}
