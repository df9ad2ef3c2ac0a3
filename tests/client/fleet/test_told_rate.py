"""The rate that all have heard last, and what a worker makes of it alone."""

import pytest

from throttle.client.fleet.alone import ALONE, pace_alone
from throttle.client.fleet.told_rate import ToldRate
from throttle.client.learned import Learned


def test_news_says_how_many_times_as_long_all_takes_now() -> None:
    told = ToldRate()
    assert told.hear(1, 10.0) == 1.0
    assert told.hear(2, 40.0) == 0.25
    assert told.hear(3, 20.0) == 2.0


def test_old_news_changes_nothing() -> None:
    told = ToldRate()
    told.hear(5, 10.0)
    assert told.hear(5, 40.0) is None
    assert told.hear(4, 40.0) is None
    assert told.rate == 10.0


def test_a_rate_just_doubled_is_not_known_to_be_borne() -> None:
    told = ToldRate()
    told.hear(1, 40.0)
    told.hear(2, 80.0)
    assert told.borne("") == told.borne(Learned(80.0).to_text()) == 40.0


@pytest.mark.parametrize(("rate", "borne"), [(180.0, 100.0), (95.0, 95.0), (20.0, 90.0)])
def test_a_limits_bounds_hold_whatever_rate_was_tried_last(rate: float, borne: float) -> None:
    told = ToldRate()
    told.hear(1, rate)
    assert told.borne(Learned(100.0, 90.0, 120.0, 10.0).to_text()) == borne


def test_alone_workers_divide_rate_and_slots_evenly() -> None:
    pace = pace_alone(100.0, 10.0, 4)
    assert pace.rate == ALONE * 25.0
    assert pace.in_flight_max == 3
    assert pace_alone(100.0, 2.0, 4).in_flight_max == 1
