"""Backoff, retry budget, circuit breaker, in-flight limit: each alone."""

from random import Random

import pytest

from throttle.client.backoff import Backoff
from throttle.client.circuit_breaker import CircuitBreaker, State
from throttle.client.in_flight import InFlightLimit, Waiter
from throttle.client.retry_budget import RetryBudget


def test_backoff_is_drawn_evenly_up_to_a_cap() -> None:
    backoff, random = Backoff(base_seconds=1.0, cap_seconds=8.0), Random(1)
    for retry, most in ((0, 1.0), (1, 2.0), (2, 4.0), (3, 8.0), (9, 8.0), (10_000, 8.0)):
        drawn = [backoff.seconds(retry, random) for _ in range(2000)]
        assert 0.0 <= min(drawn) <= 0.01 * most
        assert 0.99 * most <= max(drawn) <= most
        assert sum(drawn) / 2000 == pytest.approx(most / 2, rel=0.05)


def test_retries_never_exceed_the_budget() -> None:
    budget, random = RetryBudget(0.0, share=0.2, reserve=10.0, seconds=60.0), Random(2)
    requests = retries = 0
    now = 0.0
    for _ in range(20_000):
        now += random.expovariate(100.0)
        if random.random() < 0.5:
            budget.earn()
            requests += 1
        elif budget.spend(now):
            retries += 1
        # The reserve grows back within its time.
        assert retries <= 10 + 0.2 * requests + 10 * now / 60


def test_what_was_earned_long_ago_is_forgotten() -> None:
    budget = RetryBudget(0.0, share=0.5, reserve=2.0, seconds=10.0)
    for _ in range(1000):
        budget.earn()
    assert budget.balance(0.0) == 502.0
    assert budget.balance(100.0) == pytest.approx(2.0, abs=0.1)


def test_the_breaker_lets_one_scout_pass_when_the_rest_is_over_and_all_has_landed() -> None:
    breaker = CircuitBreaker()
    assert breaker.state(0.0) is State.CLOSED
    breaker.rest(5.0)
    assert breaker.state(4.0) is State.OPEN
    assert breaker.seconds_until_pass(4.0, in_flight=0) == 1.0
    assert breaker.seconds_until_pass(5.0, in_flight=1) == float("inf")
    assert breaker.seconds_until_pass(5.0, in_flight=0) == 0.0
    breaker.send_scout()
    assert breaker.state(6.0) is State.HALF_OPEN
    assert breaker.seconds_until_pass(6.0, in_flight=0) == float("inf")
    breaker.scout_served()
    assert breaker.state(6.0) is State.CLOSED


def test_a_rest_is_lengthened_and_never_shortened() -> None:
    breaker = CircuitBreaker()
    breaker.rest(10.0)
    breaker.rest(5.0)
    assert breaker.rest_until == 10.0
    breaker.rest(15.0)
    assert breaker.rest_until == 15.0


def test_who_leaves_the_front_wakes_the_next() -> None:
    woken: list[int] = []
    limit = InFlightLimit(1)
    waiters = [Waiter(lambda number=number: woken.append(number)) for number in range(4)]  # type: ignore[misc]
    holder = Waiter(lambda: None)
    limit.take(holder)
    for waiter in waiters:
        limit.join(waiter)
    limit.leave(waiters[2])  # from the middle: nobody's turn
    assert woken == []
    limit.leave(waiters[0])
    assert woken == [1]
    limit.release()
    assert woken == [1, 1]
    assert limit.is_next(waiters[1])
    limit.take(waiters[1])
    assert woken == [1, 1, 3]


def test_nobody_barges_in() -> None:
    limit = InFlightLimit(1)
    first, second = Waiter(lambda: None), Waiter(lambda: None)
    assert limit.is_next(second)
    limit.join(first)
    assert not limit.is_next(second)


def test_a_slot_that_nobody_held_cannot_be_released() -> None:
    with pytest.raises(RuntimeError):
        InFlightLimit(1).release()
