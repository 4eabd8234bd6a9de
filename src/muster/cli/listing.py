"""The head of every group of commands that lists its things when none of them is named: one decorator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from muster.cli.printing import Listing, listing_options, show_listing
from muster.sdk.client import Client


class NounGroup(click.Group):
    """A group that takes a name where a command should be for what it likely is: one to be shown."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, but with the words that were likely meant."""
        if args and args[0] not in self.commands and "show" in self.commands and not args[0].startswith("-"):
            raise click.UsageError(
                f"there is no command {args[0]!r}; `{ctx.command_path} show {args[0]}` shows one", ctx
            )
        return super().resolve_command(ctx, args)


def listing_group(make: Callable[..., Listing]) -> click.Group:
    """A group with the name and the words of `make`, which is asked for the listing with a client and its options."""

    @listing_options
    @click.pass_context
    def show(context: click.Context, /, output: str, watch: bool, **options: Any) -> None:
        if context.invoked_subcommand is None:
            with Client() as client:
                show_listing(lambda: make(client, **options), output, watch)

    # Where click's decorators of options leave them, the last one first.
    show.__click_params__ += getattr(make, "__click_params__", [])  # type: ignore[attr-defined]  # click's own
    return click.group(make.__name__, cls=NounGroup, invoke_without_command=True, help=make.__doc__)(show)
