"""A host that lets requests sleep while it has no room, told by hand and as our own server half does it."""

import asyncio
from random import Random

import pytest

from benchmarks.own_site import VISITS, Visit, run
from throttle.client.pace.quota import QuotaPace
from throttle.client.pace.seeking import SeekingPace
from throttle.rate_limit_fields import Quota


def paced(pace: SeekingPace, now: float, requests: int) -> float:
    """So many are sent at the pace, and served after a tenth of a second each; when the last one left."""
    for _ in range(requests):
        now += 1 / pace.rate
        pace.sent(now, 1)
        pace.served(now + 0.1, now, 1)
    return now


def refused_at_once(rate: float = 0.5) -> tuple[SeekingPace, float]:
    """A limit of `rate` is known to it."""
    pace = SeekingPace(Random(1), rate=rate)
    now = paced(pace, 0.0, 3)
    pace.sent(now + 0.5, 1)
    pace.dropped(now + 0.54, now + 0.5, 1, 2.0, 1)
    return pace, paced(pace, now + 3.0, 5)


def visited(visit: Visit, fields: bool) -> tuple[int, float, int]:
    async def in_a_loop() -> tuple[int, float, int]:
        return run(visit, 1, fields)

    return asyncio.run(in_a_loop())


def test_while_one_sleeps_no_other_is_sent_under_a_known_slow_limit() -> None:
    pace, now = refused_at_once()
    pace.sent(now + 2, 1)
    assert pace.in_flight_max == 1
    pace.served(now + 14, now + 2, 1)
    pace.sent(now + 14, 1)
    assert pace.in_flight_max == 1


def test_an_answer_whose_body_is_read_keeps_nobody_back() -> None:
    pace, now = refused_at_once()
    pace.sent(now + 2, 1)
    pace.served(now + 2.1, now + 2, 1)
    assert pace.in_flight_max == 2
    pace.sent(now + 4, 2)  # the first body is still open
    assert pace.in_flight_max == 2
    pace.served(now + 4.1, now + 4, 2)
    assert pace.in_flight_max == 3


def test_while_nothing_is_known_only_latency_and_refusals_limit_what_is_open() -> None:
    pace = SeekingPace(Random(1), rate=0.5)
    paced(pace, 0.0, 3)
    assert pace.in_flight_max > 1


def test_after_one_that_slept_the_next_but_one_leaves_later_and_then_all_is_as_before() -> None:
    pace, now = refused_at_once()
    pace.sent(now + 2, 1)
    before = pace.rate
    pace.served(now + 14, now + 2, 1)
    pace.sent(now + 14, 1)  # with the token that was saved meanwhile
    assert pace.rate == pytest.approx(before / 2, rel=0.05)
    pace.served(now + 14.1, now + 14, 1)
    pace.sent(now + 18, 1)
    assert pace.rate == pytest.approx(before, rel=0.05)


def test_a_refusal_after_a_long_sleep_changes_neither_the_rate_nor_what_is_known() -> None:
    pace, now = refused_at_once()
    pace.sent(now + 2, 1)
    before, learned = pace.rate, pace.learned()
    assert pace.dropped(now + 18, now + 2, 1, 20.0, 1) == 20.0
    pace.sent(now + 38, 1)
    assert pace.rate == pytest.approx(before, rel=0.05)
    assert pace.learned() == learned


def test_a_window_that_slides_is_known_to_slide_after_a_long_rest() -> None:
    quota, now = QuotaPace(), 0.0
    for left in (9, 8, 7, 6, 5, 4, 3, 2, 1):
        quota.told(now, Quota(left, 15.0 - now, 10, 15.0), in_flight=0)
        now += 1.6
    quota.told(15.5, Quota(1, 1.0, 10, 15.0), in_flight=0)  # the next hit leaves soon: it slides
    even = quota.rate(15.5)
    quota.told(60.0, Quota(9, 15.0, 10, 15.0), in_flight=0)
    quota.told(74.0, Quota(5, 1.0, 10, 15.0), in_flight=0)
    assert quota.rate(74.5) == even


def test_sleeps_for_want_of_room_cost_hardly_more_than_their_time() -> None:
    visit = next(visit for visit in VISITS if "12 s" in visit.name)
    for fields in (False, True):
        served, refused, _ = visited(visit, fields)
        assert served >= 0.95 * 720  # what an oracle gets
        assert refused <= (0.0 if fields else 0.01)


def test_a_crowd_that_outlasts_a_sleep_refuses_one_request_and_no_more() -> None:
    visit = next(visit for visit in VISITS if "20 s" in visit.name)
    _, _, refusals = visited(visit, fields=True)
    assert refusals <= len(visit.crowds)
