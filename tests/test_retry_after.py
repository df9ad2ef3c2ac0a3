from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from throttle.retry_after import retry_after_seconds

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def http_date(moment: datetime) -> str:
    return format_datetime(moment, usegmt=True)


@pytest.mark.parametrize(("value", "seconds"), [("120", 120.0), (" 7 ", 7.0), ("007", 7.0), ("2147483647", 2**31 - 1)])
def test_seconds_are_read(value: str, seconds: float) -> None:
    assert retry_after_seconds(value) == seconds


@pytest.mark.parametrize(
    "value",
    ["", "0", "-5", "1.5", "1e3", "inf", "nan", "٣", "2147483648", "9" * 400, "soon", "120, 60", "\x00", "Sun, 99 Foo"],
)
def test_what_is_no_clear_wait_is_none(value: str) -> None:
    assert retry_after_seconds(value, date=http_date(NOON)) is None


@pytest.mark.parametrize(
    "value",
    ["Sun, 01 Mar 2026 12:01:30 GMT", "Sunday, 01-Mar-26 12:01:30 GMT", "Sun Mar  1 12:01:30 2026"],
)
def test_all_three_forms_of_a_date_are_read(value: str) -> None:
    assert retry_after_seconds(value, date=http_date(NOON)) == 90.0


@pytest.mark.parametrize("skew", [-3600.0, 0.0, 3600.0])
def test_a_date_is_right_within_a_second_though_our_clock_is_wrong_by_an_hour(skew: float) -> None:
    seconds = retry_after_seconds(
        http_date(NOON + timedelta(seconds=45)), date=http_date(NOON), wall_clock=NOON.timestamp() + skew
    )
    assert seconds == pytest.approx(45.0, abs=1.0)


def test_a_date_out_of_a_cache_is_measured_against_our_clock() -> None:
    value = http_date(NOON + timedelta(seconds=100))
    now = NOON.timestamp() + 60
    assert retry_after_seconds(value, date=http_date(NOON), age="60", wall_clock=now) == 40.0
    assert retry_after_seconds(value, date=http_date(NOON), age="60") is None


def test_a_date_that_is_past_asks_for_nothing() -> None:
    assert retry_after_seconds(http_date(NOON), date=http_date(NOON + timedelta(seconds=1))) is None


@given(st.text(max_size=80), st.text(max_size=80))
def test_nothing_that_a_host_sends_raises(value: str, date: str) -> None:
    seconds = retry_after_seconds(value, date=date)
    assert seconds is None or 0 < seconds <= 2**31
