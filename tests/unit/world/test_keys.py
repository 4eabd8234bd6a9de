"""Keys name live jobs, each by itself, however many there are."""

from __future__ import annotations

from muster.world.keys import PARTS, Keys


def test_a_key_is_one_tenants_and_names_its_job_until_it_is_dropped() -> None:
    keys = Keys()
    keys.add("lab", "a", 1)
    keys.add("team", "a", 2)
    assert (keys.find("lab", "a"), keys.find("team", "a"), keys.find("lab", "b")) == (1, 2, None)
    keys.drop("lab", "a")
    keys.drop("lab", "a")
    assert (keys.find("lab", "a"), keys.find("team", "a"), len(keys)) == (None, 2, 1)


def test_no_part_of_many_keys_is_large() -> None:
    keys = Keys()
    for number in range(100 * PARTS):
        keys.add("lab", f"key-{number}", number)
    assert len(keys) == 100 * PARTS == len(dict(keys.items()))
    assert max(map(len, keys._parts)) < 200


def test_a_fork_has_its_own() -> None:
    keys = Keys()
    keys.add("lab", "a", 1)
    twin = keys.fork()
    twin.drop("lab", "a")
    twin.add("lab", "\ud800", 2)
    assert dict(keys.items()) == {("lab", "a"): 1}
    assert twin.find("lab", "\ud800") == 2
