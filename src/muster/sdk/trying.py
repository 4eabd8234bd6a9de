"""Trying: what something would do, asked of the server as the thing itself would be, and not done."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Unpack

import msgspec

from muster.sdk.asking import Asking
from muster.sdk.paths import job_path, quote
from muster.sdk.spelling import (
    BarWords,
    Wishes,
    ask_bar,
    ask_migrate,
    ask_reserve,
    ask_scale,
    spell_job,
    spell_tenant,
    spell_tier,
)
from muster.sdk.transport import Request
from muster.wire.forecast_views import TrialView

if TYPE_CHECKING:  # the caller brings these along
    from muster.model.job import BarKind
    from muster.model.spec import Spec
    from muster.model.tenant import Tenant
    from muster.sdk.jobfile import JobFile
    from muster.wire.views import TierView


class Trying(Asking):
    """A client's calls that change nothing. A refusal is that of the thing itself."""

    def try_submit(self, job: Spec | JobFile) -> TrialView:
        """What a job would do, if it were submitted."""
        return self._try(Request("POST", "/v1/jobs", body=spell_job(job)))

    def try_on(self, job: int, verb: str) -> TrialView:
        """What `cancel`, `hold`, `release` or `requeue` of a job would do at once, if it were done."""
        return self._try(Request("POST", job_path(job, f"/{verb}")))

    def try_scale(self, job: int, most: int, least: int = 0) -> TrialView:
        """What other bounds of a job would do, if it were given them."""
        return self._try(ask_scale(job, most, least))

    def try_migrate(self, job: int, to: Sequence[str] = (), off: Sequence[str] = ()) -> TrialView:
        """What would follow at once, if a job were to go on elsewhere."""
        return self._try(ask_migrate(job, to, off))

    def try_tenant(self, name: str, tenant: Tenant) -> TrialView:
        """What a tenant would change, if it were set."""
        return self._try(Request("PUT", f"/v1/tenants/{quote(name)}", body=spell_tenant(tenant)))

    def try_tier(self, tier: TierView) -> TrialView:
        """What a tier would change, if it were set."""
        return self._try(Request("PUT", f"/v1/tiers/{quote(tier.name)}", body=spell_tier(tier)))

    def try_reserve(
        self, name: str, tenant: str, nodes: int, windows: Iterable[tuple[int, int]], **wishes: Unpack[Wishes]
    ) -> TrialView:
        """Which nodes a booking would get and whom it would keep waiting, if it were made."""
        return self._try(ask_reserve(name, tenant, nodes, windows, **wishes))

    def try_bar(self, node: str, kind: BarKind, **words: Unpack[BarWords]) -> TrialView:
        """What a bar of a node would do, if it were set."""
        return self._try(ask_bar(node, kind, **words))

    def try_unbar(self, node: str) -> TrialView:
        """What would start, if all of the operators' bars of a node were lifted."""
        return self._try(Request("DELETE", f"/v1/nodes/{quote(node)}/bars"))

    def _try(self, request: Request) -> TrialView:
        path = request.path.replace("/v1", "/v1/trials", 1)
        return self._ask(TrialView, msgspec.structs.replace(request, path=path))
