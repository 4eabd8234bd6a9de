"""The table of reactors: one function per kind of event, `(turn, event) -> answer`. A refusal changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from muster.kernel.advice import on_advise
from muster.kernel.attempts import on_exited, on_started
from muster.kernel.bars import on_bar_node, on_unbar_node
from muster.kernel.flavors import on_set_flavor
from muster.kernel.moves import on_migrate_job
from muster.kernel.nodes import on_node_gone, on_node_seen, on_node_silent
from muster.kernel.overlays import on_drop_overlay, on_set_overlay
from muster.kernel.profiles import on_set_profile, on_use_profile
from muster.kernel.progress import on_progressed
from muster.kernel.requests import on_cancel, on_hold_job, on_release_job, on_requeue_job, on_submit
from muster.kernel.tenants import on_drop_tenant, on_set_tenant
from muster.kernel.tiers import on_set_tier
from muster.kernel.turn import Turn
from muster.kernel.widths import on_scale_job
from muster.kernel.windows import on_cancel_booking, on_reserve
from muster.model import event
from muster.model.reason import Done, Refused

REACTORS: Final[dict[type, Callable[[Turn, Any], Done | Refused]]] = {
    event.Submit: on_submit,
    event.Cancel: on_cancel,
    event.HoldJob: on_hold_job,
    event.ReleaseJob: on_release_job,
    event.RequeueJob: on_requeue_job,
    event.ScaleJob: on_scale_job,
    event.MigrateJob: on_migrate_job,
    event.SetTenant: on_set_tenant,
    event.DropTenant: on_drop_tenant,
    event.SetFlavor: on_set_flavor,
    event.SetTier: on_set_tier,
    event.SetOverlay: on_set_overlay,
    event.DropOverlay: on_drop_overlay,
    event.SetProfile: on_set_profile,
    event.UseProfile: on_use_profile,
    event.Advise: on_advise,
    event.BarNode: on_bar_node,
    event.UnbarNode: on_unbar_node,
    event.Reserve: on_reserve,
    event.CancelBooking: on_cancel_booking,
    event.NodeSeen: on_node_seen,
    event.NodeSilent: on_node_silent,
    event.NodeGone: on_node_gone,
    event.Started: on_started,
    event.Exited: on_exited,
    event.Progressed: on_progressed,
}
