"""What a simulated engine says at one instant of one array is one event; all else stays as it was said."""

from __future__ import annotations

from muster.model.event import Event, Exited, NodeSilent, Started
from muster.simulator.joining import join_alike


def test_ends_of_an_array_are_one_event() -> None:
    said: list[Event] = [
        Exited(1, 1, 0, 8, 2, cause="a", cpu_ms=10, rss_bytes=5),
        Exited(1, 1, 1, 3, 1, cause="a"),
        Exited(1, 1, 0, 0, 1, cause="b", cpu_ms=20, rss_bytes=7),
        Exited(1, 2, 0, 4, 1, cause="c"),
    ]
    assert join_alike(said, {1}) == [
        Exited(1, 1, 0, 8, 2, "", "a and 1 more", 30, 7, [0, 1]),
        said[1],
        said[3],
    ]


def test_what_came_between_keeps_its_place() -> None:
    said: list[Event] = [
        Started(1, 1, 0, 1),
        NodeSilent("n"),
        Started(1, 1, 5, 1),
        Started(1, 1, 2, 1),
        Exited(1, 1, 0),
    ]
    assert join_alike(said, {1}) == [said[0], said[1], Started(1, 1, 5, 1, " and 1 more", [2, 1]), said[4]]


def test_ranks_of_a_gang_are_told_node_by_node() -> None:
    said: list[Event] = [Exited(2, 1, 0, 0, 1, cause="a"), Exited(2, 1, 0, 1, 1, cause="b")]
    assert join_alike(said, {1}) == said
