"""Paths and queries: whatever stands in a name or a value comes out again at the other end, and nothing else does."""

from __future__ import annotations

import urllib.parse

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.sdk.paths import add_query, quote

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NAMES = st.text("abcdefgh_", min_size=1)


@settings(derandomize=True, deadline=None)
@given(TEXT)
def test_a_name_is_one_segment_and_comes_out_as_it_went_in(name: str) -> None:
    assert quote(name) == urllib.parse.quote(name, safe="")


@settings(derandomize=True, deadline=None)
@given(st.dictionaries(NAMES, TEXT))
def test_a_query_is_read_as_it_was_meant(query: dict[str, str]) -> None:
    path, _, text = add_query("/v1/jobs", query).partition("?")
    assert path == "/v1/jobs"
    assert dict(urllib.parse.parse_qsl(text, keep_blank_values=True)) == query


def test_without_values_there_is_no_query() -> None:
    assert add_query("/v1/jobs", {}) == "/v1/jobs"
