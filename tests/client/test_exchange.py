"""The flow, driven by hand: every step is written down."""

import pickle
from random import Random

import pytest

from throttle.client.answer import Answer, Failure
from throttle.client.backoff import Backoff
from throttle.client.events import Answered, Dropped, Event, RateChanged, Rested, Retried, Waited
from throttle.client.exchange import (
    Done,
    Flow,
    GiveUp,
    HostRests,
    HostStopped,
    Refused,
    Send,
    Step,
    Wait,
    WaitedTooLong,
    WaitForSlot,
    errors_as,
    exchange,
)
from throttle.client.host import Host, Politeness
from throttle.client.pace.aimd import AimdPace
from throttle.client.pace.seeking import SeekingPace
from throttle.rate_limit_fields import Quota


class Caller:
    """One request under way; `is_woken` is what its driver would sleep on."""

    def __init__(self, host: Host, now: float, method: str = "GET") -> None:
        self.is_woken = False
        self.flow: Flow = exchange(host, self.wake, now, method=method)
        self.step: Step = next(self.flow)

    def wake(self) -> None:
        self.is_woken = True

    def at(self, now: float) -> Step:
        self.is_woken = False
        self.step = self.flow.send(now)
        return self.step

    def answered(self, answer: Answer) -> Step:
        self.step = self.flow.send(answer)
        return self.step


def a_host(rate: float = 10.0, in_flight_max: int = 2, **politeness: object) -> Host:
    pace = AimdPace(rate=rate, in_flight_max=in_flight_max)
    return Host("example.org", pace, 0.0, Random(1), politeness=Politeness(**politeness))  # type: ignore[arg-type]


def test_the_first_request_leaves_at_once_and_the_next_waits_for_a_token() -> None:
    host = a_host(rate=10.0)
    assert Caller(host, 0.0).step == Send(0)
    second = Caller(host, 0.0)
    assert second.step == Wait(pytest.approx(0.1))
    assert second.at(0.1) == Send(0)


def test_requests_leave_in_the_order_in_which_they_came() -> None:
    host = a_host(in_flight_max=50)
    callers = [Caller(host, 0.0) for _ in range(5)]
    assert [type(caller.step) for caller in callers[1:]] == [Wait, WaitForSlot, WaitForSlot, WaitForSlot]
    for turn, caller in enumerate(callers[1:], start=1):
        assert caller.is_woken or turn == 1
        caller.at(turn * 0.1 - 0.1 if turn > 1 else 0.0)
        assert caller.at(turn * 0.1) == Send(0)


def test_the_slot_is_held_until_the_body_is_closed() -> None:
    host = a_host(in_flight_max=1)
    first, second = Caller(host, 0.0), Caller(host, 1.0)
    assert second.step == WaitForSlot()
    done = first.answered(Answer(1.1, 200))
    assert isinstance(done, Done)
    assert not second.is_woken
    host.release(done.place)
    assert second.is_woken
    assert second.at(1.2) == Send(0)


def test_after_a_refusal_nothing_leaves_until_the_told_wait_is_over_and_then_one_scout() -> None:
    host = a_host(in_flight_max=50)
    callers = [Caller(host, 0.0), Caller(host, 0.5)]
    step = callers[0].answered(Answer(1.0, 429, retry_after=5.0))
    assert isinstance(step, Wait)
    assert 5.0 <= step.seconds <= 5.25
    late = Caller(host, 2.0)
    assert late.step == WaitForSlot()
    # The time is over, but what was in flight has not landed.
    assert callers[0].at(6.5) == WaitForSlot()
    done = callers[1].answered(Answer(6.6, 200))
    assert isinstance(done, Done)
    host.release(done.place)
    assert callers[0].is_woken
    assert callers[0].at(6.6) == Send(1)
    assert late.is_woken
    assert late.at(6.7) == WaitForSlot()  # the scout is out
    assert isinstance(callers[0].answered(Answer(6.8, 200)), Done)
    assert late.is_woken


def test_a_longer_wait_than_allowed_fails_at_once_and_tells_the_delay() -> None:
    host = a_host(wait_max=60.0)
    caller = Caller(host, 0.0)
    waiting = Caller(host, 0.0)
    done = caller.answered(Answer(0.1, 429, retry_after=3600.0))
    assert isinstance(done, Done)  # not retried: the refusal itself is the answer
    step = waiting.at(0.2)
    assert isinstance(step, GiveUp)
    assert isinstance(step.error, HostRests)
    assert step.error.seconds >= 3599


class CountingPace(AimdPace):
    drops = 0

    def dropped(self, now: float, sent_at: float, height: int, told: float | None, in_a_row: int) -> float:
        self.drops += 1
        return super().dropped(now, sent_at, height, told, in_a_row)


def test_refusals_of_requests_that_left_before_the_last_cut_do_not_cut_again() -> None:
    pace = CountingPace(rate=100.0, in_flight_max=50)
    host = Host("example.org", pace, 0.0, Random(1))
    callers = [Caller(host, 0.1 * turn) for turn in range(5)]
    for turn, caller in enumerate(callers):
        caller.answered(Answer(1.0 + turn / 100, 503))
    assert pace.drops == 1
    assert host.pace.rate == 50.0


def test_every_drop_wait_pause_and_change_of_rate_is_told_and_reads_as_a_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "throttle.client")
    events: list[Event] = []
    host = Host("example.org", AimdPace(rate=100.0, in_flight_max=50), 0.0, Random(1), on_event=events.append)
    first, second, third = (Caller(host, 0.1 * turn) for turn in range(3))
    first.answered(Answer(1.0, 429, retry_after=2.0))
    second.answered(Answer(1.1, 429, retry_after=1.0))  # left before the cut, and asks for no more
    third.answered(Answer(1.2, 503, retry_after=9.0))  # … and asks for more
    told = [type(event) for event in events]
    assert told.count(Answered) == told.count(Retried) == 3
    news = [event for event in events if not isinstance(event, Answered | Retried)]
    assert [type(event) for event in news] == [Dropped, Rested, RateChanged, Dropped, Dropped, Rested]
    first.at(20.0)
    waited = [event for event in events if isinstance(event, Waited)]
    assert [event.seconds for event in waited] == [pytest.approx(20.0 - 1.0)]
    assert caplog.messages[:2] == ["example.org: refused (429), told to wait 2 s", str(news[1])]
    assert "nothing is sent for 2." in caplog.messages[1]


def test_a_rest_that_fields_ask_for_is_told_too() -> None:
    events: list[Event] = []
    host = Host("example.org", SeekingPace(Random(1)), 0.0, Random(1), on_event=events.append)
    Caller(host, 0.0).answered(Answer(0.1, 200, quota=Quota(0, 30.0)))
    assert [event.seconds for event in events if isinstance(event, Rested)] == [30.0]


def test_a_cancelled_waiter_hands_its_wake_up_on() -> None:
    host = a_host(in_flight_max=1)
    first, second, third = (Caller(host, 0.0) for _ in range(3))
    done = first.answered(Answer(1.0, 200))
    assert isinstance(done, Done)
    host.release(done.place)
    assert second.is_woken
    second.flow.close()  # woken, and cancelled before it ran
    assert third.is_woken
    assert third.at(1.1) == Send(0)


def test_a_cancelled_request_gives_its_slot_back_and_teaches_nothing() -> None:
    host = a_host(in_flight_max=1)
    first, second = Caller(host, 0.0), Caller(host, 0.0)
    first.flow.close()
    assert host.in_flight.count == 0
    assert second.is_woken
    assert host.pace.rate == 10.0


def test_a_cancelled_scout_makes_room_for_another() -> None:
    host = a_host(in_flight_max=5)
    first = Caller(host, 0.0)
    first.answered(Answer(0.1, 503))
    assert first.at(5.0) == Send(1)
    second = Caller(host, 5.0)
    assert second.step == WaitForSlot()
    first.flow.close()
    assert second.is_woken
    assert second.at(5.2) == Send(0)


def test_a_post_is_not_sent_twice() -> None:
    host = a_host()
    caller = Caller(host, 0.0, method="POST")
    assert isinstance(caller.answered(Answer(0.1, Failure.TIMEOUT)), Done)


def test_what_may_be_sent_twice_is_a_setting() -> None:
    host = a_host(retry_methods=frozenset({"POST"}))
    assert isinstance(Caller(host, 0.0, method="POST").answered(Answer(0.1, Failure.TIMEOUT)), Wait)
    host = a_host(retry_methods=frozenset())
    assert isinstance(Caller(host, 0.0).answered(Answer(0.1, Failure.TIMEOUT)), Done)


def test_a_turn_that_does_not_come_in_time_is_given_up_and_the_next_one_moves_up() -> None:
    host = a_host(rate=0.1, in_flight_max=1, turn_max=4.0)
    first, second, third = Caller(host, 0.0), Caller(host, 0.0), Caller(host, 3.0)
    assert second.step == third.step == Wait(4.0)  # for a slot, and no longer
    step = second.at(4.0)
    assert isinstance(step, GiveUp)
    assert isinstance(step.error, WaitedTooLong)
    second.flow.close()
    assert third.is_woken
    assert third.at(4.0) == Wait(3.0)
    first.flow.close()
    assert third.at(4.1) == Wait(pytest.approx(2.9))  # the bucket's next token would come at 10
    assert isinstance(third.at(7.0), GiveUp)


def test_a_place_that_is_free_when_the_patience_ends_is_taken() -> None:
    host = a_host(in_flight_max=1, turn_max=4.0)
    first, second = Caller(host, 0.0), Caller(host, 0.0)
    first.flow.close()
    assert second.at(4.0) == Send(0)


@pytest.mark.parametrize(
    "refused", [HostRests("example.org", 7.5), HostStopped("example.org", "a wall"), WaitedTooLong("example.org", 4.0)]
)
def test_a_refusal_passes_between_processes_as_every_adapter_raises_it(refused: Refused) -> None:
    adapted = errors_as(RuntimeError)[type(refused)](*refused.told)
    assert isinstance(adapted, RuntimeError)
    again = pickle.loads(pickle.dumps(adapted))
    assert type(again) is type(refused)
    assert (str(again), vars(again)) == (str(refused), vars(refused))


def test_a_failed_page_is_retried_after_full_jitter_and_only_so_often() -> None:
    host = a_host(backoff=Backoff(retries_max=2, base_seconds=0.5))
    caller, now, sends = Caller(host, 0.0), 0.0, 1
    while True:
        step = caller.answered(Answer(now + 0.1, 502))
        now += 0.1
        if isinstance(step, Done):
            break
        while not isinstance(step, Send):
            assert isinstance(step, Wait)
            assert step.seconds <= 0.5 * 2 ** (sends - 1)
            now += step.seconds
            step = caller.at(now)
        sends += 1
    assert sends == 3


def test_failures_that_persist_slow_the_pace_and_one_alone_does_not() -> None:
    host = a_host(in_flight_max=50, backoff=Backoff(retries_max=0))
    for turn in range(5):
        assert host.pace.rate == 10.0
        caller = Caller(host, float(turn))
        done = caller.answered(Answer(turn + 0.5, 500))
        assert isinstance(done, Done)
        host.release(done.place)
    assert host.pace.rate == 5.0


def test_retries_end_when_the_budget_is_spent() -> None:
    host = a_host(rate=1000.0, in_flight_max=1000)
    retried = 0
    for turn in range(200):
        caller = Caller(host, turn / 100)
        assert caller.step == Send(0)
        step = caller.answered(Answer(turn / 100 + 0.001, 502))
        retried += not isinstance(step, Done)
        caller.flow.close()
        host._failures_in_a_row = 0
        if isinstance(step, Done):
            host.release(step.place)
    assert 10 <= retried <= 10 + 0.2 * 200


@pytest.mark.parametrize(
    "answer",
    [
        Answer(0.1, 403, headers={"cf-mitigated": "challenge"}),
        Answer(0.1, 429, headers={"cf-mitigated": "challenge"}),
        Answer(0.1, 202, headers={"x-amzn-waf-action": "captcha"}),
        Answer(
            0.1,
            429,
            headers={"content-type": "application/problem+json"},
            body=b'{"type": "https://iana.org/assignments/http-problem-types#abnormal-usage-detected"}',
        ),
    ],
)
def test_a_soft_block_stops_the_host_with_a_clear_error(answer: Answer) -> None:
    host = a_host()
    first, second, third = (Caller(host, 0.0) for _ in range(3))
    assert isinstance(first.answered(answer), Done)
    for caller in (second, third):
        assert caller.is_woken
        step = caller.at(0.2)
        assert isinstance(step, GiveUp)
        assert isinstance(step.error, HostStopped)
        caller.flow.close()


def test_a_callers_own_rule_may_tell_a_block() -> None:
    host = a_host(is_block=lambda answer: b"captcha" in answer.body)
    first = Caller(host, 0.0)
    first.answered(Answer(0.1, 200, body=b"<form id=captcha>"))
    assert isinstance(Caller(host, 0.2).step, GiveUp)


def test_a_wall_that_never_opens_is_a_block_and_one_that_opened_once_is_not() -> None:
    for has_served in (False, True):
        host = a_host(wall_after=4, backoff=Backoff(retries_max=0))
        now = 0.0
        for status in [200] * has_served + [503] * 4:
            caller = Caller(host, now)
            while not isinstance(caller.step, Send):
                assert isinstance(caller.step, Wait)
                now += caller.step.seconds
                caller.at(now)
            now += 0.1
            done = caller.answered(Answer(now, status))
            assert isinstance(done, Done)
            host.release(done.place)
        assert (host.stopped is None) is has_served


def test_every_answer_is_told_once_in_the_stats() -> None:
    host = a_host(in_flight_max=50)
    for turn in range(4):
        done = Caller(host, float(turn)).answered(Answer(turn + 0.1 * (turn + 1), 404 if turn else 200))
        assert isinstance(done, Done)
        host.release(done.place)
    stats = host.stats(5.0)
    assert stats.statuses == {"200": 1, "404": 3}
    assert stats.p50 == pytest.approx(0.3)
    assert stats.p95 == pytest.approx(0.4)
    assert stats.in_flight == 0
