import pytest
from hypothesis import given
from hypothesis import strategies as st

from throttle.rate_limit_fields import Quota, quota_told


def test_a_quota_and_its_policy_are_read() -> None:
    headers = {"ratelimit": '"default";r=50;t=30;pk=:abc=:', "ratelimit-policy": '"default";q=100;w=60'}
    assert quota_told(headers) == Quota(50, 30.0, 100, 60.0)


def test_of_several_the_tightest_counts_and_of_several_that_are_spent_the_longest() -> None:
    assert quota_told({"ratelimit": '"day";r=900;t=3600, "minute";r=5;t=50'}) == Quota(5, 50.0)
    assert quota_told({"ratelimit": '"all";r=0;t=2, "lone";r=0;t=30'}) == Quota(0, 30.0)


def test_without_a_time_the_window_is_taken() -> None:
    assert quota_told({"ratelimit": '"d";r=5', "ratelimit-policy": '"d";q=10;w=60'}) == Quota(5, 60.0, 10, 60.0)


@pytest.mark.parametrize("prefix", ["ratelimit-", "x-ratelimit-"])
def test_the_older_forms_are_read(prefix: str) -> None:
    headers = {prefix + "limit": "100, 100;w=60", prefix + "remaining": "7", prefix + "reset": "12"}
    assert quota_told(headers) == Quota(7, 12.0, 100)


def test_a_reset_in_seconds_since_1970_needs_our_clock() -> None:
    headers = {"x-ratelimit-remaining": "7", "x-ratelimit-reset": "1780000060"}
    assert quota_told(headers) is None
    assert quota_told(headers, wall_clock=1_780_000_000.0) == Quota(7, 60.0)


def test_an_answer_out_of_a_cache_tells_nothing() -> None:
    assert quota_told({"ratelimit": '"d";r=5;t=9', "age": "3"}) is None


@pytest.mark.parametrize(
    "field",
    ["", '"d"', '"d";r=-1;t=5', '"d";r=5;t=0', '"d";r=five;t=5', '"d;r=5;t=5', ";r=5;t=5", '"d";r=٣;t=5', "," * 900],
)
def test_what_is_malformed_is_ignored(field: str) -> None:
    assert quota_told({"ratelimit": field}) is None


def test_one_malformed_item_does_not_hide_the_next() -> None:
    assert quota_told({"ratelimit": '=?;r=1;t=1, "a,b;c";r=5;t=9'}) == Quota(5, 9.0)


def test_an_endless_field_is_not_read() -> None:
    assert quota_told({"ratelimit": '"d";r=5;t=9,' * 100_000}) is None


@given(st.dictionaries(st.sampled_from(["ratelimit", "ratelimit-policy", "x-ratelimit-reset", "age"]), st.text()))
def test_nothing_that_a_host_sends_raises(headers: dict[str, str]) -> None:
    quota_told(headers)
