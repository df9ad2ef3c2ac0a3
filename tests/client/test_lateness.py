"""Event loops are late: what a wait that ended late took is made good, and nothing that was never waited for."""

from functools import partial
from random import Random
from statistics import mean

import pytest

from benchmarks.hidden_limit import seeking
from benchmarks.simulator.score import run
from benchmarks.simulator.situations import bucket
from throttle.client.answer import Answer
from throttle.client.exchange import Done, Flow, Send, Step, Wait, WaitForSlot, exchange
from throttle.client.host import Host
from throttle.client.learned import Learned
from throttle.client.pace.aimd import AimdPace
from throttle.client.pace.latency_limit import LatencyLimit
from throttle.client.pace.seeking import LATE_SECONDS, SeekingPace
from throttle.rate_limit_fields import Quota


def a_host(catch_up: float = 1.0, in_flight_max: int = 10) -> Host:
    pace = AimdPace(rate=10.0, rate_max=10.0, in_flight_max=in_flight_max)
    pace.catch_up = catch_up
    return Host("example.org", pace, 0.0, Random(1))


def begun(host: Host, now: float) -> tuple[Flow, Step]:
    flow = exchange(host, lambda: None, now)
    return flow, next(flow)


def waits(step: Step) -> float:
    assert isinstance(step, Wait)
    return step.seconds


def test_who_comes_later_than_told_leaves_the_next_as_much_less_to_wait() -> None:
    host = a_host()
    begun(host, 0.0)
    second, step = begun(host, 0.0)
    third, _ = begun(host, 0.0)
    assert waits(step) == pytest.approx(0.1)
    assert second.send(0.14) == Send(0)
    assert waits(third.send(0.14)) == pytest.approx(0.06)


def test_without_anything_to_make_good_the_interval_starts_when_the_late_one_left() -> None:
    host = a_host(catch_up=0.0)
    begun(host, 0.0)
    second, _ = begun(host, 0.0)
    third, _ = begun(host, 0.0)
    assert second.send(0.14) == Send(0)
    assert waits(third.send(0.14)) == pytest.approx(0.1)


def test_what_passes_after_a_waiter_was_cancelled_is_idle_and_earns_nothing() -> None:
    host = a_host()
    begun(host, 0.0)
    second, _ = begun(host, 0.0)
    second.close()
    assert begun(host, 5.0)[1] == Send(0)
    assert waits(begun(host, 5.0)[1]) == pytest.approx(0.1)


def test_what_passes_after_the_last_has_left_is_idle_and_earns_nothing() -> None:
    host = a_host()
    begun(host, 0.0)
    second, _ = begun(host, 0.0)
    assert second.send(0.1) == Send(0)
    assert begun(host, 5.0)[1] == Send(0)
    assert waits(begun(host, 5.0)[1]) == pytest.approx(0.1)


def test_waiting_for_a_slot_is_not_being_late() -> None:
    host = a_host(in_flight_max=1)
    first, _ = begun(host, 0.0)
    second, step = begun(host, 0.0)
    third, _ = begun(host, 0.0)
    assert isinstance(step, WaitForSlot)
    host.pace.in_flight_max = 2.0
    done = first.send(Answer(5.0, 404))
    assert isinstance(done, Done)
    host.release(done.place)
    assert second.send(5.0) == Send(0)
    assert waits(third.send(5.0)) == pytest.approx(0.1)


def test_nothing_is_made_good_of_a_rest() -> None:
    host = a_host()
    first, _ = begun(host, 0.0)
    second, _ = begun(host, 0.0)
    third, _ = begun(host, 0.0)
    first.send(Answer(0.05, 429, 5.0))
    assert waits(second.send(0.1)) > 4.9
    assert second.send(6.0) == Send(0)
    assert host.bucket.seconds_until_token(6.0) == pytest.approx(0.2)  # at half the rate
    third.close()


def test_the_default_pace_makes_nothing_good_while_it_seeks_nor_at_a_bucket_of_one_token() -> None:
    pace = SeekingPace(Random(1))
    for turn in range(20):
        pace.sent(turn / 2, 1)
    assert pace.catch_up == 0.0
    pace = SeekingPace(Random(1))
    pace.recall(Learned(8.0, 7.8, 8.2, 1.0))
    for turn in range(20):
        pace.sent(turn / 8, 1)
    assert pace.catch_up == 0.0


def test_the_default_pace_makes_lateness_good_within_what_the_hosts_bucket_bears() -> None:
    pace = SeekingPace(Random(1))
    pace.recall(Learned(8.0, 7.8, 8.2, 8.0))
    pace.sent(0.0, 1)
    assert pace.catch_up == pytest.approx(LATE_SECONDS * pace.rate)
    pace = SeekingPace(Random(1))
    pace.recall(Learned(100.0, 98.0, 102.0, 9.0))
    pace.sent(0.0, 1)
    assert pace.catch_up == pytest.approx(4.0)


def test_a_rate_that_a_host_told_makes_up_for_lateness_by_itself() -> None:
    pace = SeekingPace(Random(1))
    pace.recall(Learned(8.0, 7.8, 8.2, 8.0))
    pace.sent(0.0, 1)
    pace.told(0.1, Quota(100, 60.0), 1)
    assert pace.catch_up == 0.0


@pytest.mark.parametrize(("rate", "lost"), [(8, 0.01), (40, 0.02)])
def test_a_late_event_loop_costs_the_default_pace_next_to_nothing(rate: int, lost: float) -> None:
    """Late by 15 ms in the mean, mostly little and sometimes much: that was 6 % at 8 a second."""
    situation = bucket(f"{rate}/s", rate, rate, seconds=120.0)
    on_time = [run(situation, seeking, seed) for seed in (1, 2)]
    late = [run(situation, seeking, seed, partial(Random(seed).expovariate, 1 / 0.015)) for seed in (1, 2)]
    assert mean(score.goodput for score in late) > mean(score.goodput for score in on_time) - lost
    assert mean(score.refused for score in late) < mean(score.refused for score in on_time) + 0.002


def test_a_gap_that_is_made_good_is_no_time_in_which_nothing_was_wanted() -> None:
    pace = SeekingPace(Random(1))
    pace.recall(Learned(100.0, 98.0, 102.0, 100.0))
    for turn in range(16):
        pace.sent(turn / 100, 1)
    before = pace._on_time
    pace.sent(0.15 + 0.06, 1)
    assert pace._on_time == before + 1
    pace.sent(0.21 + 0.2, 1)
    assert pace._on_time == before + 1


def test_of_a_bucket_that_others_draw_from_nothing_is_made_good() -> None:
    pace = SeekingPace(Random(1))
    pace.recall(Learned(8.0, 7.8, 8.2, 8.0))
    pace._share.is_sharing = True
    pace.sent(0.0, 1)
    assert pace.catch_up == 0.0


def slots_of_eight() -> LatencyLimit:
    """Eight were served time and again, and nine refused, twice."""
    slots = LatencyLimit(8, 100)
    now = 0.0
    for _ in range(2):
        now = heard(slots, 100, 0.1, now)
        slots.limit = 9.0
        assert slots.refused(now, 9)
    slots.limit = 8.0
    return slots


def heard(slots: LatencyLimit, answers: int, latency: float, now: float) -> float:
    for turn in range(answers):
        slots.sent(int(slots.limit))
        now += 0.01
        slots.served(now + latency, now, turn % 8 + 1)
    return now + latency


def test_answers_that_a_late_loop_heard_late_do_not_take_slots_that_are_known() -> None:
    slots = slots_of_eight()
    now = heard(slots, 40, 0.1, 10.0)
    now = heard(slots, 20, 0.3, now)
    heard(slots, 20, 0.1, now)
    assert slots.limit == 8.0


def test_a_host_that_stays_slow_is_given_fewer_slots_and_those_back_soon_when_it_was_not() -> None:
    slots = slots_of_eight()
    now = heard(slots, 100, 0.4, 10.0)
    assert slots.limit < 8.0
    fewer = slots.limit
    heard(slots, 260, 0.1, now)
    assert slots.limit > fewer
