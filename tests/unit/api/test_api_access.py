"""Every route, every role, one's own and others' objects: the matrix is generated from the table that the gate uses,
and judged by a rule of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from api_kit import Reply, Scene

from muster.api.gate import RIGHTS, Where
from muster.model.access import HOME_OWNER, Grant, Role, SetUser, User
from muster.model.booking import Booking, Window
from muster.model.event import Reserve, SetOverlay, SetProfile, SetTenant, Submit
from muster.model.overlay import POWER, Overlay
from muster.model.profile import Profile
from muster.model.spec import Spec
from muster.model.tenant import Tenant

OWN, OTHER = "lab", "other"
JOBS = {OWN: 1, OTHER: 2}
NONE = "none"
FAR = 4_000_000_000_000


class Example(NamedTuple):
    """A request to a route about something of a tenant; `TENANT` and `JOB` stand for whose it is. `elsewhere` is what
    an entitled stranger gets."""

    target: str
    body: Any = None
    elsewhere: int = 404


def _bar(method: str) -> Example:
    return Example("/v1/nodes/node-1/bars/cordon", {} if method == "PUT" else None)


EXAMPLES = {
    "GET /v1/health": Example("/v1/health"),
    "GET /v1/ready": Example("/v1/ready"),
    "GET /v1/openapi.json": Example("/v1/openapi.json"),
    "GET /v1/metrics": Example("/v1/metrics"),
    "GET /v1/watch": Example("/v1/watch?job=x", elsewhere=200),
    "GET /v1/me": Example("/v1/me", elsewhere=200),
    "POST /v1/jobs": Example("/v1/jobs", {"command": ["true"], "tenant": "TENANT"}, 422),
    "POST /v1/jobs/bulk": Example(
        "/v1/jobs/bulk", {"jobs": [{"spec": {"command": ["true"], "tenant": "TENANT"}}]}, 200
    ),
    "GET /v1/jobs": Example("/v1/jobs", elsewhere=200),
    **{
        key: Example(
            key.split()[1].replace("{job}", "JOB").replace("{at}", "9999"),
            {"epoch": 1, "step": 1} if key.endswith("/progress") else None,
        )
        for key, need in RIGHTS.items()
        if need.where is Where.JOB
    },
    "GET /v1/nodes": Example("/v1/nodes", elsewhere=200),
    "GET /v1/nodes/{name:path}": Example("/v1/nodes/node-1", elsewhere=200),
    "PUT /v1/nodes/{name:path}/bars/{kind}": _bar("PUT"),
    "DELETE /v1/nodes/{name:path}/bars/{kind}": _bar("DELETE"),
    "GET /v1/flavors": Example("/v1/flavors", elsewhere=200),
    "GET /v1/flavors/{name:path}": Example("/v1/flavors/gpu", elsewhere=200),
    "PUT /v1/flavors/{name:path}": Example("/v1/flavors/h100", {"price_micros": 7}),
    "GET /v1/tenants": Example("/v1/tenants", elsewhere=200),
    "GET /v1/tenants/{name:path}": Example("/v1/tenants/TENANT"),
    "PUT /v1/tenants/{name:path}": Example("/v1/tenants/TENANT-new", {"parent": "TENANT"}),
    "DELETE /v1/tenants/{name:path}": Example("/v1/tenants/TENANT-team"),
    "GET /v1/avail": Example("/v1/avail?tenant=TENANT"),
    "GET /v1/goodput": Example("/v1/goodput?tenant=TENANT"),
    "GET /v1/usage": Example("/v1/usage?tenant=TENANT", elsewhere=200),
    "GET /v1/bookings": Example("/v1/bookings", elsewhere=200),
    "GET /v1/bookings/{name:path}": Example("/v1/bookings/TENANT-booking"),
    "PUT /v1/bookings/{name:path}": Example(
        "/v1/bookings/fresh",
        {"tenant": "TENANT", "nodes": 1, "windows": [{"opens_at_ms": FAR, "closes_at_ms": FAR + 1}]},
    ),
    "DELETE /v1/bookings/{name:path}": Example("/v1/bookings/TENANT-booking"),
    "GET /v1/notify": Example("/v1/notify", elsewhere=200),
    "POST /v1/trials/notify/{name:path}": Example("/v1/trials/notify/team"),
    "GET /v1/tiers": Example("/v1/tiers", elsewhere=200),
    "GET /v1/tiers/{name:path}": Example("/v1/tiers/standard", elsewhere=200),
    "GET /v1/overlays": Example("/v1/overlays", elsewhere=200),
    "GET /v1/overlays/{name:path}": Example("/v1/overlays/row", elsewhere=200),
    "PUT /v1/overlays/{name:path}": Example(
        "/v1/overlays/row", {"resource": "power", "budget": 1, "nodes": ["node-1"]}
    ),
    "DELETE /v1/overlays/{name:path}": Example("/v1/overlays/row"),
    "PUT /v1/tiers/{name:path}": Example("/v1/tiers/gold", {"rank": 1, "longest_wait_ms": 1}),
    "GET /v1/profiles": Example("/v1/profiles", elsewhere=200),
    "GET /v1/profiles/{name:path}": Example("/v1/profiles/mine", elsewhere=200),
    "PUT /v1/profiles/{name:path}": Example("/v1/profiles/fresh", {"weights": {}}),
    "POST /v1/profiles/{name:path}/use": Example("/v1/profiles/mine/use"),
    "GET /v1/advice": Example("/v1/advice", elsewhere=200),
    "PUT /v1/advice/{name:path}": Example("/v1/advice/distance", {"columns": {}, "expires_at_ms": 1 << 40}),
    "GET /v1/users": Example("/v1/users", elsewhere=200),
    "GET /v1/users/{name:path}": Example("/v1/users/TENANT-visitor"),
    "PUT /v1/users/{name:path}": Example("/v1/users/new", {"roles": [{"role": "admin", "tenant": "TENANT"}]}, 403),
    "DELETE /v1/users/{name:path}": Example("/v1/users/TENANT-visitor"),
    "GET /v1/tokens": Example("/v1/tokens", elsewhere=200),
    "POST /v1/tokens": Example("/v1/tokens", {"user": "TENANT-visitor"}, 403),
    "DELETE /v1/tokens/{id}": Example("/v1/tokens/TENANT-token"),
    "GET /v1/audit": Example("/v1/audit"),
    "GET /v1/audit/verify": Example("/v1/audit/verify"),
    "GET /v1/past/{at}/jobs": Example("/v1/past/9999/jobs", elsewhere=200),
    "GET /v1/past/{at}/nodes": Example("/v1/past/9999/nodes", elsewhere=200),
    "GET /v1/past/{at}/tenants": Example("/v1/past/9999/tenants", elsewhere=200),
    "GET /v1/past/{at}/goodput": Example("/v1/past/9999/goodput?tenant=TENANT"),
    **{
        f"GET /v1/past/{{at}}/{what}": Example(f"/v1/past/9999/{what}", elsewhere=200)
        for what in ("bookings", "flavors", "tiers", "overlays")
    },
    "POST /v1/trials/jobs": Example("/v1/trials/jobs", {"command": ["true"], "tenant": "TENANT"}, 422),
    **{
        f"POST /v1/trials/jobs/{{job}}/{verb}": Example(f"/v1/trials/jobs/JOB/{verb}")
        for verb in ("cancel", "hold", "release", "requeue")
    },
    "POST /v1/trials/jobs/{job}/scale": Example("/v1/trials/jobs/JOB/scale", {"most": 2}),
    "POST /v1/trials/jobs/{job}/migrate": Example("/v1/trials/jobs/JOB/migrate", {"to": ["node-1"]}),
    "PUT /v1/trials/bookings/{name:path}": Example(
        "/v1/trials/bookings/fresh",
        {"tenant": "TENANT", "nodes": 1, "windows": [{"opens_at_ms": FAR, "closes_at_ms": FAR + 1}]},
    ),
    "PUT /v1/trials/nodes/{name:path}/bars/{kind}": Example("/v1/trials/nodes/node-1/bars/cordon", {}),
    "DELETE /v1/trials/nodes/{name:path}/bars": Example("/v1/trials/nodes/node-1/bars"),
    "PUT /v1/trials/tenants/{name:path}": Example("/v1/trials/tenants/TENANT-new", {"parent": "TENANT"}),
    "PUT /v1/trials/tiers/{name:path}": Example("/v1/trials/tiers/gold", {"rank": 1, "longest_wait_ms": 1}),
}
HEARD = ("M101", "M121", "M122", "M123", "M155")
"""Refusals by which one sees that the gate was passed: the watch would go on for ever if its example were right."""
ADMINS_ONLY = {"GET /v1/users/{name:path}", "POST /v1/tokens", "DELETE /v1/tokens/{id}"}
"""Open to everybody about themselves; the examples are about somebody else, whom only an admin sees."""


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path)
    happen = scene.follower.happen
    happen(SetProfile("mine", Profile()))
    happen(SetOverlay("row", Overlay(POWER, 1000, ("node-1",))))
    for name in (OWN, OTHER):
        happen(SetTenant(name, Tenant()), SetTenant(f"{name}-team", Tenant(parent=name)))
        scene.follower.register(SetUser(f"{name}-visitor", User((Grant(Role.VIEWER, name),)), HOME_OWNER))
    for name in (OWN, OTHER):
        happen(Submit(Spec(("true",), tenant=name)))
    _book(scene)
    return scene


def _book(scene: Scene) -> None:
    """Both have their booking, if it was given up meanwhile."""
    for place, name in enumerate((OWN, OTHER), start=1):
        scene.follower.happen(Reserve(Booking(f"{name}-booking", name, 1, (Window(FAR + place, FAR + place + 1),))))


def _send(scene: Scene, key: str, tenant: str, header: str) -> Reply:
    def fill(text: str) -> str:
        token = scene.admit(f"{tenant}-visitor", Grant(Role.VIEWER, tenant)) if "-token" in text else ""
        number = token.partition("mst_")[2][:16]
        return text.replace("TENANT-token", number).replace("TENANT", tenant).replace("JOB", str(JOBS[tenant]))

    def fill_all(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: fill_all(part) for name, part in value.items()}
        if isinstance(value, list):
            return [fill_all(part) for part in value]
        return fill(value) if isinstance(value, str) else value

    method, example = key.split()[0], EXAMPLES[key]
    body = b"" if example.body is None else fill_all(example.body)
    return scene.call(method, fill(example.target), body, authorization=header)


def _expected(key: str, role: str, tenant: str) -> int:
    """What the answer must be, from the words of the table alone; 200 stands for whatever is no refusal."""
    need, example = RIGHTS[key], EXAMPLES[key]
    if need.where is Where.NOWHERE:
        return 200
    if need.where is Where.FLEET:
        return 403
    held = -1 if role == NONE else Role(role).rank
    if need.where is Where.JOB and (tenant == OTHER or role == NONE):
        return 404
    if held < need.role.rank:
        return 403
    if tenant == OTHER:
        return example.elsewhere
    if key in ADMINS_ONLY and held < Role.ADMIN.rank:
        return 403 if key == "POST /v1/tokens" else 404
    return 200


def test_every_route_has_an_example() -> None:
    assert set(EXAMPLES) == set(RIGHTS)


@pytest.mark.parametrize("key", RIGHTS)
def test_the_matrix(scene: Scene, key: str) -> None:
    for role in (NONE, *(role.value for role in Role)):
        header = scene.admit(f"a-{role}", *([] if role == NONE else [Grant(Role(role), OWN)]))
        for tenant in (OTHER, OWN):
            _book(scene)
            reply = _send(scene, key, tenant, header)
            got = 200 if reply.status < 400 or reply.json["code"] in HEARD else reply.status
            assert got == _expected(key, role, tenant), (key, role, tenant, reply)


@pytest.mark.parametrize("key", [key for key, need in RIGHTS.items() if need.where is not Where.NOWHERE])
def test_nobody_gets_nothing_and_the_owner_gets_everything(scene: Scene, key: str) -> None:
    for header in ("", "Bearer mst_0000000000000000_" + "0" * 64):
        assert _send(scene, key, OWN, header).status == 401
    reply = _send(scene, key, OWN, "Bearer a-token")
    assert reply.status < 400 or reply.json["code"] in HEARD, reply


JOB_ROUTES = [key for key, need in RIGHTS.items() if need.where is Where.JOB]


@pytest.mark.parametrize("key", JOB_ROUTES)
def test_a_strangers_job_is_answered_like_none_at_all(scene: Scene, key: str) -> None:
    header = scene.admit("ann", Grant(Role.ADMIN, OWN))
    there = _send(scene, key, OTHER, header)
    method, target = key.split()[0], EXAMPLES[key].target.replace("JOB", "7")
    absent = scene.call(method, target, EXAMPLES[key].body or b"", authorization=header)
    assert there.status == absent.status == 404
    assert there.body.replace(b"job 2", b"job 7").replace(b'"needed":2', b'"needed":7') == absent.body


WORDS = {
    Where.NOWHERE: "no token needed",
    Where.ANYWHERE: "any tenant",
    Where.NAMED: "the tenant named",
    Where.JOB: "the job's tenant",
    Where.FLEET: "the root",
}


def test_the_page_about_access_has_the_same_table() -> None:
    page = (Path(__file__).parents[3] / "docs/concepts/access.md").read_text().splitlines()
    told = [line for line in page if line.startswith("| `")]
    roles = {key: "" if need.where is Where.NOWHERE else need.role.value for key, need in RIGHTS.items()}
    assert told == [f"| `{key}` | {roles[key]} | {WORDS[need.where]} |" for key, need in RIGHTS.items()]


AUDITED = {
    key
    for key, need in RIGHTS.items()
    if need.where is Where.FLEET and "/trials/" not in key and not key.startswith("GET")
} | {
    "PUT /v1/tenants/{name:path}",
    "DELETE /v1/tenants/{name:path}",
    "PUT /v1/bookings/{name:path}",
    "DELETE /v1/bookings/{name:path}",
    "PUT /v1/users/{name:path}",
    "DELETE /v1/users/{name:path}",
    "POST /v1/tokens",
    "DELETE /v1/tokens/{id}",
}


@pytest.mark.parametrize("key", RIGHTS)
def test_a_privileged_change_leaves_one_line_in_the_audit_log(scene: Scene, key: str) -> None:
    if key.startswith("DELETE /v1/nodes"):
        _send(scene, key.replace("DELETE", "PUT"), OWN, "Bearer a-token")
    before = len(scene.follower.store.read_audit(0))
    made = 2 if "{id}" in key else 0  # the example makes the token that it drops
    assert _send(scene, key, OWN, "Bearer a-token").status < 500
    assert len(scene.follower.store.read_audit(0)) - before == made + (key in AUDITED)


def test_the_lists_show_what_one_may_see(scene: Scene) -> None:
    header = scene.admit("ann", Grant(Role.ADMIN, OWN))
    jobs = scene.call("GET", "/v1/jobs?state=all", authorization=header).json["jobs"]
    assert [job["tenant"] for job in jobs] == [OWN]
    tenants = scene.call("GET", "/v1/tenants", authorization=header).json
    assert [tenant["name"] for tenant in tenants] == [OWN, f"{OWN}-team"]
    users = scene.call("GET", "/v1/users", authorization=header).json["users"]
    assert [user["name"] for user in users] == ["ann", f"{OWN}-visitor"]
    page = scene.call("GET", "/v1/users?limit=1", authorization=header).json
    assert page["next_after"] == "ann"


def test_who_is_ahead_is_shown_without_a_name(scene: Scene) -> None:
    big = {"command": ["true"], "ask": {"gpus": 8}}
    for tenant in (OWN, OTHER, OWN):
        assert scene.call("POST", "/v1/jobs", {**big, "tenant": tenant}).status == 201
    header = scene.admit("ann", Grant(Role.VIEWER, OWN))
    mine = scene.call("GET", "/v1/jobs/5/why", authorization=header).json
    assert mine["ahead"] == [{"job": 0, "tenant": "", "tasks": 1, "ask": mine["ahead"][0]["ask"]}]
    assert scene.call("GET", "/v1/jobs/5/why").json["ahead"][0]["job"] == 4


def test_nobody_runs_after_a_job_that_they_may_not_see(scene: Scene) -> None:
    header = scene.admit("ann", Grant(Role.USER, OWN))
    body = {"command": ["true"], "tenant": OWN, "after": [{"job": 2}]}
    reply = scene.call("POST", "/v1/jobs", body, authorization=header)
    assert (reply.status, reply.json["code"]) == (422, "M143")
    assert scene.call("POST", "/v1/jobs", {**body, "after": [{"job": 1}]}, authorization=header).status == 201


def test_of_many_jobs_those_of_others_are_refused_one_by_one(scene: Scene) -> None:
    header = scene.admit("ann", Grant(Role.USER, OWN))
    jobs = [{"spec": {"command": ["true"], "tenant": tenant}, "key": "k"} for tenant in (OTHER, OWN, OWN, "nowhere")]
    jobs += [{"spec": {"command": [], "tenant": OWN}}]
    reply = scene.call("POST", "/v1/jobs/bulk", {"jobs": jobs}, authorization=header)
    told = [part.get("job") or part["problem"]["code"] for part in reply.json["jobs"]]
    assert told == ["M112", 3, 3, "M112", "M101"]
    assert [job.spec.tenant for job in scene.follower.world.jobs.values()] == [OWN, OTHER, OWN]


def test_a_job_is_signed_by_who_submitted_it(scene: Scene) -> None:
    header = scene.admit("ann", Grant(Role.USER, OWN))
    scene.call("POST", "/v1/jobs", {"command": ["true"], "tenant": OWN}, authorization=header)
    story = scene.call("GET", "/v1/jobs/3/story", authorization=header).json
    assert story["lines"][0]["cause"] == "api:ann"


def test_a_token_is_made_once_used_and_dropped(scene: Scene) -> None:
    header = scene.admit("ann", Grant(Role.USER, OWN))
    made = scene.call("POST", "/v1/tokens", {"note": "laptop", "most": "viewer"}, authorization=header)
    assert made.status == 201
    assert made.headers["cache-control"] == "no-store"
    fresh = f"Bearer {made.json['token']}"
    me = scene.call("GET", "/v1/me", authorization=fresh).json
    assert (me["name"], me["roles"]) == ("ann", [{"role": "viewer", "tenant": OWN}])
    listed = scene.call("GET", "/v1/tokens", authorization=header).json["tokens"]
    assert [token.get("note") for token in listed if token["id"] == made.json["id"]] == ["laptop"]
    assert made.json["token"][-64:] not in str(listed)
    assert scene.call("DELETE", f"/v1/tokens/{made.json['id']}", authorization=header).status == 200
    assert scene.call("GET", "/v1/me", authorization=fresh).status == 401


def test_an_expired_token_says_so_to_its_holder(scene: Scene) -> None:
    header = scene.admit("ann", Grant(Role.USER, OWN), life_ms=500)
    scene.follower.clock.at = 1500
    reply = scene.call("GET", "/v1/me", authorization=header)
    assert (reply.status, reply.json["code"]) == (401, "M318")


def test_the_audit_log_is_read_in_pages_and_verified(scene: Scene) -> None:
    page = scene.call("GET", "/v1/audit?limit=1").json
    assert page["lines"][0]["by"] == "owner"
    assert page["next_after"] == 1
    verdict = scene.call("GET", "/v1/audit/verify").json
    assert verdict["is_sound"] is True
    assert verdict["lines"] == 2
    scene.follower.store._audit[0] = scene.follower.store._audit[0]._replace(data=b"forged")
    assert scene.call("GET", "/v1/audit/verify").json["broken_at"] == 1
