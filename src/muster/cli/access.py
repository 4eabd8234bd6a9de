"""`muster users`, `tokens`, `audit` and `whoami`: who may do what, with which token, and who did what."""

from __future__ import annotations

from collections.abc import Sequence

import click

from muster.cli.listing import listing_group
from muster.cli.naming import find_named
from muster.cli.printing import (
    Listing,
    detail_options,
    fields_of,
    print_detail,
    print_fields,
)
from muster.model.access import TOKEN_LIFE_MAX_MS, Role
from muster.sdk.client import Client
from muster.sdk.whereabouts import default_root, find_server
from muster.units import parse_duration, show_duration, show_instant
from muster.wire.access_views import AuditPage, GrantView, TokenView, UserView

ROLES = [role.value for role in Role]
NO_ROLE = "none"


@listing_group
def users(client: Client) -> Listing:
    """List users and service accounts; or show, set or drop one."""
    return _list_users(client.users())


def _list_users(views: Sequence[UserView]) -> Listing:
    return Listing(
        heads=_USER_HEADS,
        rows=[_user_row(view) for view in views],
        value=views,
        names=[view.name for view in views],
        empty="no user yet but whoever owns the home; `muster users set` adds one",
    )


_USER_HEADS = ("USER", "KIND", "ROLES", "STATE")


def _user_row(view: UserView) -> tuple[str, ...]:
    kind = "service" if view.is_service else "person"
    return view.name, kind, _show_roles(view.roles), "disabled" if view.is_disabled else "active"


def _show_roles(roles: Sequence[GrantView]) -> str:
    """`admin everywhere, user in vision`."""
    return ", ".join(f"{role.role} in {role.tenant}" if role.tenant else f"{role.role} everywhere" for role in roles)


@users.command("show")
@click.argument("name")
@detail_options
def show_user(name: str, output: str) -> None:
    """Show one user."""
    with Client() as client:
        view = find_named(client.users(), name, "user")
    if not print_detail(output, view):
        print_fields(fields_of(_USER_HEADS, _user_row(view)))


@users.command("set")
@click.argument("name")
@click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="ROLE[:TENANT]",
    help="viewer, user, operator or admin: all it has; or none.",
)
@click.option("--service/--person", "service", default=None, help="A service account, or a person.")
@click.option("--disabled/--enabled", "disabled", default=None, help="Its tokens are refused, until it is enabled.")
def set_user(name: str, roles: tuple[str, ...], service: bool | None, disabled: bool | None) -> None:
    """Add a user, or change what it is; what is not named stays as it is: muster users set ann --role user:vision"""
    grants = [_parse_role(text) for text in roles if text != NO_ROLE]
    with Client() as client:
        known = next((view for view in client.users() if view.name == name), UserView(name, []))
        after = UserView(
            name,
            grants if roles else known.roles,
            is_service=known.is_service if service is None else service,
            is_disabled=known.is_disabled if disabled is None else disabled,
        )
        client.set_user(name, after.roles, is_service=after.is_service, is_disabled=after.is_disabled)
    lets_in = "" if after.is_disabled else f"; `muster tokens make --user {name}` lets it in"
    state = ", disabled: its tokens are refused" if after.is_disabled else ""
    click.echo(f"user {name}: {_show_roles(after.roles) or 'no role'}{state}{lets_in}")


def _parse_role(text: str) -> GrantView:
    role, _, tenant = text.partition(":")
    if role not in ROLES:
        raise click.UsageError(f"--role {text}: {role!r} is not one of {', '.join(ROLES)}")
    return GrantView(role, tenant)


@users.command("drop")
@click.argument("name")
def drop_user(name: str) -> None:
    """Let a user go, with all its tokens."""
    with Client() as client:
        client.drop_user(name)
    click.echo(f"user {name} is gone, and its tokens with it")


@listing_group
def tokens(client: Client) -> Listing:
    """List tokens, without their secrets; or make or drop one."""
    return _list_tokens(client.tokens())


def _list_tokens(views: Sequence[TokenView]) -> Listing:
    return Listing(
        heads=("TOKEN", "USER", "UNTIL", "SINCE", "AT MOST", "TENANT", "NOTE"),
        rows=[_token_row(view) for view in views],
        value=views,
        names=[view.id for view in views],
        wide=frozenset({"SINCE"}),
        spare=frozenset({"TENANT", "NOTE"}),
        empty="no token yet but that of the home; `muster tokens make` makes one",
    )


def _token_row(view: TokenView) -> tuple[str, ...]:
    until = "-" if view.until_ms is None else show_instant(view.until_ms)
    return view.id, view.user, until, show_instant(view.since_ms), view.most, view.tenant, view.note


@tokens.command("make")
@click.option("--user", default="", metavar="NAME", help="Whose it shall be; yours if nobody is named.")
@click.option("--for", "span", default="90d", show_default=True, metavar="TIME", help="How long it is valid.")
@click.option("--at-most", type=click.Choice(ROLES), default="admin", help="It never allows more than this role.")
@click.option("--tenant", default="", metavar="NAME", help="It is good for this tenant alone.")
@click.option("--note", default="", metavar="TEXT", help="What it is for.")
def make_token(user: str, span: str, at_most: str, tenant: str, note: str) -> None:
    """Make a token and print it. It is told this once, and kept nowhere."""
    life_ms = parse_duration(span)
    if not 0 < life_ms <= TOKEN_LIFE_MAX_MS:
        raise click.UsageError(f"--for {span}: a token lives for at most {show_duration(TOKEN_LIFE_MAX_MS)}")
    with Client() as client:
        fresh = client.make_token(user, life_ms, most=at_most, tenant=tenant, note=note)
    click.echo(fresh.token)
    click.echo(f"token {fresh.id} is valid until {show_instant(fresh.until_ms)}; it is not shown again", err=True)


@tokens.command("drop")
@click.argument("number", metavar="TOKEN")
def drop_token(number: str) -> None:
    """Have a token valid no more."""
    with Client() as client:
        client.drop_token(number)
    click.echo(f"token {number} is valid no more")


@listing_group
@click.option("--after", default=0, help="Begin after this line; continues a long log.")
@click.option("--limit", default=100, show_default=True, help="At most this many.")
def audit(client: Client, after: int, limit: int) -> Listing:
    """List who changed what, oldest first; or verify that no line was changed."""
    return _list_audit(client.audit(after, limit))


def _list_audit(page: AuditPage) -> Listing:
    return Listing(
        heads=("LINE", "WHEN", "WHO", "ACTION", "SUBJECT", "DETAIL", "TOKEN"),
        rows=[
            (str(line.number), show_instant(line.at_ms), line.by, line.action, line.subject, line.detail, line.token)
            for line in page.lines
        ],
        value=page,
        names=[str(line.number) for line in page.lines],
        wide=frozenset({"TOKEN"}),
        empty="nothing was changed that is written down",
        note="" if page.next_after is None else f"more: add --after {page.next_after}",
    )


@audit.command("verify")
def verify_audit() -> int:
    """Follow the chain of the log; leaves with 1 if it is broken."""
    with Client() as client:
        verdict = client.verify_audit()
    if verdict.is_sound:
        click.echo(
            f"whole: {verdict.lines} line{'s' if verdict.lines != 1 else ''}, the last one linked as {verdict.head}"
        )
        return 0
    click.echo(f"broken at line {verdict.broken_at} of {verdict.lines}")
    return 1


@click.command()
@detail_options
def whoami(output: str) -> None:
    """Say as whom you speak, and with which roles."""
    with Client() as client:
        me = client.me()
    if not print_detail(output, me):
        until = "" if me.until_ms is None else show_instant(me.until_ms)
        address = find_server(default_root())
        print_fields(
            [
                *(("user", me.name), ("roles", _show_roles(me.roles)), ("token", me.token), ("until", until)),
                ("server", "" if address is None else address.url),
            ]
        )


COMMANDS = {"users": users, "tokens": tokens, "audit": audit, "whoami": whoami}
