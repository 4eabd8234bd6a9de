"""`muster undo`: your last change of a tenant's quota or of a tier is taken back.

Nothing is kept for it. The audit log says what was changed last and when, and the past says how it was just before; so
what is put back is what was, and doing it twice brings the change back. What somebody else changed since is left alone.
"""

from __future__ import annotations

from typing import Final

import click

from muster.cli.printing import DRY_RUN
from muster.cli.tenants import print_difference, show_lines, tenant_of
from muster.cli.trying import print_change_trial
from muster.model.reason import Code
from muster.model.tenant import Tenant
from muster.sdk.client import Client
from muster.sdk.errors import AnsweredError
from muster.units import show_instant
from muster.wire.access_views import AuditEntry
from muster.wire.views import TenantView

OF_TENANTS: Final = ("set_tenant", "drop_tenant")
OF_TIERS: Final = ("set_tier",)
LOOKED_BACK: Final = 200


@click.command()
@DRY_RUN
def undo(dry_run: bool) -> None:
    """Take back your last change of a tenant's quota or of a tier; again, to make it after all."""
    with Client() as client:
        change = _find_last(client)
        what = f"{change.action.replace('_', ' ')} {change.subject}"
        click.echo(f"taking back: {what}, of {show_instant(change.at_ms)[:19]}Z", err=True)
        if change.action in OF_TENANTS:
            _restore_tenant(client, change, dry_run=dry_run)
        else:
            _restore_tier(client, change, dry_run=dry_run)


def _find_last(client: Client) -> AuditEntry:
    """The caller's last change of that kind, if nobody changed the same thing since."""
    newest = client.verify_audit().lines
    lines = client.audit(max(0, newest - LOOKED_BACK), LOOKED_BACK).lines
    mine = client.me().name
    touched: dict[tuple[bool, str], str] = {}
    for line in reversed(lines):
        if line.action not in (*OF_TENANTS, *OF_TIERS):
            continue
        what = (line.action in OF_TIERS, line.subject)
        if line.by == mine:
            _check_alone(line, touched.get(what))
            return line
        touched.setdefault(what, line.by)
    raise click.UsageError(f"none of the last {LOOKED_BACK} changes is yours and of a quota or a tier: `muster audit`")


def _check_alone(line: AuditEntry, other: str | None) -> None:
    if other is not None:
        raise click.UsageError(
            f"{other} changed {line.subject} after you did: see `muster audit`, and set what you want"
        )


def _restore_tenant(client: Client, change: AuditEntry, *, dry_run: bool) -> None:
    """As it was; one that was not there is dropped, or, while it has jobs, left without a line."""
    name = change.subject
    then = _find(client.tenants(at_ms=change.at_ms - 1), name)
    now = _find(client.tenants(), name) or TenantView(name)
    after = tenant_of(then) if then is not None else Tenant()
    if dry_run:
        print_difference(now, after)
        print_change_trial(client.try_tenant(name, after))
        return
    if then is not None or not _drop(client, name):
        client.set_tenant(name, after)
        click.echo(f"tenant {name} {show_lines(after.lines)}, as before")
    else:
        click.echo(f"tenant {name} has no place in the tree, as before")
    client.settle()


def _drop(client: Client, name: str) -> bool:
    try:
        client.drop_tenant(name)
    except AnsweredError as error:
        if error.problem.code != Code.TENANT_IN_USE:
            raise
        return False
    return True


def _restore_tier(client: Client, change: AuditEntry, *, dry_run: bool) -> None:
    then = next((view for view in client.tiers(at_ms=change.at_ms - 1) if view.name == change.subject), None)
    if then is None:
        raise click.UsageError(f"tier {change.subject} was new, and tiers are not removed: no job need name it")
    if dry_run:
        print_change_trial(client.try_tier(then))
        return
    client.set_tier(then)
    client.settle()
    click.echo(f"tier {then.name} has rank {then.rank} and all else as before")


def _find(views: tuple[TenantView, ...], name: str) -> TenantView | None:
    return next((view for view in views if view.name == name), None)


COMMANDS = {"undo": undo}
