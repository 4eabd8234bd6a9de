"""`nodes`, `flavors` and `show NODE`: what they ask for and what they print. No server and no socket."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace
from served import Serve, Told

from muster.cli.main import run_command
from muster.units import Resources
from muster.wire.views import BarView, Changed, DeviceView, FlavorView, LaterView, NodeView

PLAIN = NodeView("n1", "up", Resources(8, 8000, 2**34), Resources(6, 8000, 2**34), 2, address="n1", flavor="gpu")
PLACED = NodeView(
    "n2", "up", Resources(7, 8000), Resources(6, 8000), 1, [BarView("quarantine", "muster", 1, "M127: device x")],
    address="eu/alpha/n2", flavor="h100", region="eu", cluster="alpha", rack="r1", labels={"zone": "a"},
    taints=["spot"], lacks=Resources(1), devices=[DeviceView(0, 1000, "GPU-1"), DeviceView(1, 0, "GPU-2", True)],
    job_ids=[4, 9],
)  # fmt: skip
H100 = FlavorView("h100", "gpu", 1000, 2_500_000, 3, 24, 5)


def test_nodes_leaves_out_columns_that_nobody_fills(serve: Serve, told: Told) -> None:
    serve({"GET /v1/nodes": (PLAIN,), "PUT": Changed(5)})
    heads = told("nodes").splitlines()[0]
    assert heads.split("  ") == [
        part for part in heads.split("  ") if part not in ("PLACE", "LABELS", "TAINTS", "LACKS")
    ]
    serve(
        {
            "GET /v1/nodes": (
                PLAIN,
                PLACED,
            ),
            "PUT": Changed(5),
        }
    )
    table = told("nodes")
    for word in ("PLACE", "LABELS", "TAINTS", "LACKS", "eu/alpha/r1", "zone=a", "spot", "1 GPU", "M127: device x"):
        assert word in table


def test_nothing_is_free_on_a_node_that_is_gone(serve: Serve, told: Told) -> None:
    gone = replace(PLAIN, phase="gone", free=PLAIN.capacity)
    serve({"GET /v1/nodes": (gone,), "GET /v1/nodes/n1": gone})
    assert {"0/8", "0B/16Gi"} <= set(told("nodes").splitlines()[1].split())
    assert "nothing of 8 GPUs" in told("show", "n1")


def test_nodes_are_narrowed_by_the_server(serve: Serve, told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    seen = serve({"GET /v1/nodes": (PLACED,), "PUT": Changed(5)})
    assert told("nodes", "--flavor", "h100", "--rack", "r1", "-o", "name") == "n2\n"
    assert seen[0].path in ("/v1/nodes?flavor=h100&rack=r1", "/v1/nodes?rack=r1&flavor=h100")
    serve({"GET /v1/nodes": ()})
    assert run_command(["nodes", "--rack", "r9"]) == 0
    assert capsys.readouterr().err == "no node is like that\n"


def test_show_tells_a_node_from_a_job(serve: Serve, told: Told) -> None:
    seen = serve({"GET /v1/nodes/alpha%2Fn2": PLACED})
    text = told("show", "alpha/n2")
    assert seen[0].path == "/v1/nodes/alpha%2Fn2"
    for words in ("eu/alpha/n2", "1 GPU of what it joined with", "4, 9", "GPU-2  missing"):
        assert words in text
    assert "later" not in text


def test_show_tells_what_a_busy_node_will_be(serve: Serve, told: Told) -> None:
    later = LaterView(Resources(4, 8000), "b200", "eu", "alpha", rack="r9")
    serve({"GET /v1/nodes/alpha%2Fn2": replace(PLACED, later=later)})
    assert "b200 in eu/alpha/r9 with 4 GPUs, 8 CPUs, once nothing runs there\n" in told("show", "alpha/n2")


def test_flavors_are_listed(serve: Serve, told: Told) -> None:
    serve({"GET /v1/flavors": (H100,), "PUT": Changed(5)})
    heads, row = told("flavors").splitlines()
    assert heads.split() == ["FLAVOR", "FAMILY", "UNITS", "PRICE", "NODES", "DEVICES", "FREE"]
    assert row.split() == ["h100", "gpu", "1000", "2.50", "3", "24", "5"]
    assert told("flavors", "-o", "name") == "h100\n"


def test_a_flavor_is_cut_and_shown(serve: Serve, told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    cut = replace(H100, slots=8, partitions=["1g.10gb=1@0-6", "3g.40gb=4@0,4"])
    seen = serve({"GET /v1/flavors": (cut,), "PUT": Changed(5)})
    assert told("flavors", "show", "h100").endswith("1g.10gb=1@0-6 3g.40gb=4@0,4\n")
    words = ("flavors", "set", "h100", "--partition", "7g.80gb=8@0", "--partition", "1g.10gb=1@0,1")
    assert told(*words) == "h100 is gpu: one device counts 1000, 2.50 an hour, cut into 8 slots\n"
    assert told("flavors", "set", "h100", "--slots", "0") == "h100 is gpu: one device counts 1000, 2.50 an hour\n"
    bodies = [msgspec.json.decode(request.body) for request in seen if request.method == "PUT"]
    assert [(body["slots"], body["partitions"]) for body in bodies] == [(8, ["7g.80gb=8@0", "1g.10gb=1@0,1"]), (0, [])]
    assert run_command(["flavors", "set", "h100", "--partition", "7g"]) == 2
    assert "M135" in capsys.readouterr().err


def test_what_is_not_named_of_a_flavor_stays_as_it_is(serve: Serve, told: Told) -> None:
    seen = serve({"GET /v1/flavors": (H100,), "PUT": Changed(5)})
    assert told("flavors", "set", "h100", "--units", "900") == ("h100 is gpu: one device counts 900, 2.50 an hour\n")
    put = next(request for request in seen if request.method == "PUT")
    assert put.path == "/v1/flavors/h100"
    uncut = {"watts": 0, "core_watts": 0, "slots": 0, "partitions": []}
    assert msgspec.json.decode(put.body) == {"family": "gpu", "units": 900, "price_micros": 2_500_000, **uncut}
    assert told("flavors", "set", "tpu", "--price", "0.000001").startswith("tpu is tpu: one device counts 1000")


@pytest.mark.parametrize("arguments", [["set", "x"], ["set", "x", "--price", "cheap"], ["set", "x", "--units", "many"]])
def test_a_flavor_that_cannot_be_read_is_refused_before_anybody_is_asked(
    serve: Serve, told: Told, arguments: list[str]
) -> None:
    seen = serve({})
    assert told("flavors", *arguments, code=2).startswith("error")
    assert seen == []
