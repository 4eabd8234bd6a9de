"""Offers: what would start now, as a reader sees it. Questions to `scheduler.options`, answered in wire shapes.

They search the fleet many times, so a follower puts them to a fork (`Follower.study`) and goes on folding: the answer
rests on one entry from beginning to end, and nothing is ever tried on the world that is followed.
"""

from __future__ import annotations

from muster.model.spec import Spec
from muster.scheduler.options import Opening, Option, available, can_start, find_changes
from muster.scheduler.promotion import find_promotion
from muster.wire.option_words import name_bound, put_offer_in_words, put_option_in_words, spell_ask, spell_flag
from muster.wire.views import AvailView, OpeningView, OptionView
from muster.world.world import World


def view_options(world: World, spec: Spec, *, only_tiers: bool = False) -> tuple[list[OptionView], str]:
    """The options of a job that waits with this spec, and the one line that offers them; nothing for whom no tier
    helps, if only tiers can."""
    options = [] if only_tiers else find_changes(world, spec)
    if not only_tiers and not options and can_start(world, spec):
        return _view(spec, [], is_next=True)
    found = find_promotion(world, spec, world.now)
    if found is not None:
        options = [*options, found]
    return ([], "") if only_tiers and not options else _view(spec, options, is_next=False)


def view_avail(world: World, tenant: str) -> AvailView:
    """What a tenant could start now."""
    return AvailView(tenant, [_opening(opening) for opening in available(world, tenant)])


def _view(spec: Spec, options: list[Option], *, is_next: bool) -> tuple[list[OptionView], str]:
    changes = [(option.field, option.asked, option.to, option.stops) for option in options]
    offer = put_offer_in_words(changes, is_array=bool(spec.array), is_next=is_next)
    return [_option(option) for option in options], offer


def _option(option: Option) -> OptionView:
    field, asked, to, stops = option.field, option.asked, option.to, option.stops
    return OptionView(field, asked, to, spell_flag(field, to), put_option_in_words(field, asked, to, stops), stops)


def _opening(opening: Opening) -> OpeningView:
    return OpeningView(
        ask=opening.ask,
        flags=spell_ask(opening.ask),
        tasks=opening.tasks,
        gang=opening.gang,
        limited_by=name_bound(opening.bound),
        price_micros=opening.price_micros,
    )
