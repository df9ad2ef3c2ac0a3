"""What an answer's raw fields tell."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from throttle.client.answer import Answer
from throttle.client.told import answer_told, is_body_telling, plain
from throttle.rate_limit_fields import Quota

DATE = (b"Date", b"Fri, 20 Nov 2026 12:00:00 GMT")


def told(*fields: tuple[bytes, bytes], status: int = 429, wall_clock: float = 0.0) -> Answer:
    return answer_told(5.0, status, fields, wall_clock=lambda: wall_clock)


def test_most_answers_tell_nothing() -> None:
    assert told(DATE, (b"Content-Type", b"text/html"), status=200) == Answer(5.0, 200)


@pytest.mark.parametrize("name", [b"retry-after", b"Retry-After", b"RETRY-AFTER"])
def test_a_wait_is_told_in_any_case_of_letters(name: bytes) -> None:
    assert told((name, b"7")).retry_after == 7.0


def test_a_date_counts_from_the_answers_own_date_whatever_our_clock_says() -> None:
    late = (b"retry-after", b"Fri, 20 Nov 2026 12:00:30 GMT")
    assert told(DATE, late, wall_clock=4e9).retry_after == 30.0
    assert told(late, wall_clock=1795175990.0).retry_after == pytest.approx(30.0 + 1795176000 - 1795175990 - 0.0)


def test_a_wait_told_twice_is_the_first() -> None:
    assert told((b"retry-after", b"7"), (b"retry-after", b"900")).retry_after == 7.0


def test_what_is_left_of_a_quota_is_told() -> None:
    fields = (b"ratelimit", b'"page";r=3;t=10'), (b"ratelimit-policy", b'"page";q=10;w=15')
    assert told(*fields, status=200).quota == Quota(3, 10.0, 10, 15.0)


def test_a_list_in_two_fields_is_one_list() -> None:
    fields = (b"ratelimit", b'"page";r=3;t=10'), (b"ratelimit", b'"day";r=0;t=100')
    assert told(*fields, status=200).quota == Quota(0, 100.0)


@pytest.mark.parametrize("status", [403, 429, 503])
def test_a_problem_is_seen_where_it_may_be_a_block(status: int) -> None:
    assert is_body_telling(told((b"Content-Type", b"application/problem+json; charset=utf-8"), status=status), False)
    assert not is_body_telling(told((b"Content-Type", b"application/problem+json"), status=200), False)
    assert not is_body_telling(told((b"Content-Type", b"text/html"), status=status), False)


def test_a_callers_own_rule_sees_the_body_of_errors_and_no_other() -> None:
    assert is_body_telling(told((b"Content-Type", b"text/html"), status=404), True)
    assert not is_body_telling(told((b"Content-Type", b"text/html"), status=200), True)


def test_a_compressed_start_is_read_and_a_bomb_or_rubbish_does_no_harm() -> None:
    text = b"abnormal-usage-detected " * 500
    packed = gzip.compress(text)
    assert text.startswith(plain(packed[:60], {"content-encoding": "GZip"})[:100])
    assert plain(zlib.compress(text), {"content-encoding": "deflate"}) == text
    assert len(plain(gzip.compress(bytes(10**7)), {"content-encoding": "gzip"})) == 65_536
    assert plain(b"no gzip", {"content-encoding": "gzip"}) == b"no gzip"
    assert plain(packed, {"content-encoding": "br"}) == packed
    assert plain(text, {}) == text


def test_a_callers_own_rule_sees_every_field() -> None:
    answer = answer_told(5.0, 200, [(b"X-Robot", b"yes")], is_whole=True)
    assert answer.headers == {"x-robot": "yes"}


NAMES = st.sampled_from([b"retry-after", b"Date", b"age", b"ratelimit", b"x-ratelimit-reset", b"x-ratelimit-remaining"])


@given(
    st.lists(st.tuples(NAMES | st.binary(max_size=20), st.binary(max_size=2000)), max_size=10), st.integers(100, 599)
)
def test_no_field_however_hostile_breaks_it_or_makes_a_wait_of_nonsense(
    fields: list[tuple[bytes, bytes]], status: int
) -> None:
    answer = answer_told(5.0, status, fields, wall_clock=lambda: 1.8e9)
    assert answer.retry_after is None or 0 < answer.retry_after < 2**31
