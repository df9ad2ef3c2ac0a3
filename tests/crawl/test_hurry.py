"""A host's limit is sought only where that shortens the job."""

from random import Random

import pytest

from throttle.client.answer import Answer
from throttle.client.host import Host, Place
from throttle.client.learned import learned_by
from throttle.client.pace.seeking import SeekingPace
from throttle.crawl.at_most import NO_CEILING, hold, interval_of, slow_down
from throttle.crawl.holdings import Holding, Holdings
from throttle.crawl.hurry import hold_who_has_time
from throttle.crawl.known_pace import KnownPace
from throttle.crawl.result import Result


def a_host(rate: float = 2.0) -> Host:
    return Host("example.org", SeekingPace(Random(1), rate=rate), 0.0, Random(1))


def serve(host: Host, count: int, now: float = 0.0) -> float:
    """So many requests as fast as its pace allows, each answered after 50 ms; the time when the last left."""
    while count:
        place = host.ask(None, now)
        if isinstance(place, Place):
            host.answered(place, Answer(now + 0.05, 200))
            host.release(place)
            count -= 1
        else:
            now += place
    return now


def test_who_is_done_long_before_the_longest_keeps_its_pace() -> None:
    longest, other = Holding(1, a_host(), 1000), Holding(2, a_host(), 100)
    hold_who_has_time([longest, other], 0.0)
    serve(longest.host, 40)
    now = serve(other.host, 40)
    assert longest.host.bucket.rate > 8
    assert other.host.bucket.rate == 2.0
    assert now == pytest.approx(39 / 2, abs=0.1)


def test_whom_the_jobs_end_overtakes_seeks_too() -> None:
    longest, other = Holding(1, a_host(), 1000), Holding(2, a_host(), 400)
    hold_who_has_time([longest, other], 0.0)
    now = serve(other.host, 8)
    assert other.host.bucket.rate == 2.0
    longest.host.bucket.rate = 10.0  # learned: 100 s, and the other would need 200
    hold_who_has_time([longest, other], now)
    serve(other.host, 8, now)
    assert other.host.bucket.rate >= 4.0


def test_a_host_that_was_refused_is_not_sped_up_again_while_it_has_time() -> None:
    longest, other = Holding(1, a_host(), 10_000), Holding(2, a_host(8.0), 100)
    hold_who_has_time([longest, other], 0.0)
    now = serve(other.host, 20)
    place = other.host.ask(None, now + 1)
    assert isinstance(place, Place)
    other.host.answered(place, Answer(now + 1, 429, retry_after=1.0))
    other.host.release(place)
    now = serve(other.host, 1, now + 3)
    hold_who_has_time([longest, other], now)
    after = other.host.bucket.rate
    assert after < 8.0
    for _ in range(20):
        hold_who_has_time([longest, other], now)
        now = serve(other.host, 4, now)
    assert other.host.bucket.rate <= after


@pytest.mark.parametrize(("seconds", "is_sought"), [(1000.0, False), (20.0, True)])
def test_a_deadline_is_an_end_to_be_reached(seconds: float, is_sought: bool) -> None:
    longest, other = Holding(1, a_host(), 1000), Holding(2, a_host(), 100)
    hold_who_has_time([longest, other], 0.0, at_most=seconds)
    serve(other.host, 10)
    assert (other.host.bucket.rate > 2.0) is is_sought


def test_a_ceiling_over_all_hosts_is_an_end_that_no_seeking_brings_nearer() -> None:
    longest, other = Holding(1, a_host(), 100), Holding(2, a_host(), 90)
    hold_who_has_time([longest, other], 0.0, at_least=190.0)
    serve(longest.host, 20)
    assert longest.host.bucket.rate == 2.0


def test_a_rate_that_somebody_knows_is_kept() -> None:
    known, longest = Host("a", KnownPace(50.0), 0.0, Random(1)), Holding(1, a_host(), 1000)
    hold_who_has_time([longest, Holding(2, known, 3)], 0.0)
    assert isinstance(known.pace, KnownPace)


def test_an_interval_that_somebody_asked_for_outlives_the_holding_back() -> None:
    host = a_host()
    hold(host, 0.1, 0.0)
    slow_down(host, 4.0, 0.0)
    hold(host, NO_CEILING, 0.0)
    assert (interval_of(host), host.bucket.rate) == (4.0, 0.25)


def test_a_host_that_is_done_is_held_back_by_nothing() -> None:
    holdings = Holdings()
    holdings.hold(7, a_host(), 1)
    host = holdings.hold(8, a_host(), 1).host
    hold(host, 0.1, 0.0)
    assert holdings.recorded([Result("http://a/", host_id=8)], 1.0) == [8]
    serve(host, 10, 1.0)
    assert host.bucket.rate > 2.0


def test_what_the_pace_below_has_learned_is_what_is_remembered() -> None:
    host = a_host(8.0)
    hold(host, 0.1, 0.0)
    host.pace.inner.rate = 16.0  # type: ignore[attr-defined]
    assert learned_by(host.pace).rate == 16.0
