import pytest

from throttle.client.token_bucket import TokenBucket


def test_a_full_bucket_serves_its_capacity_at_once_and_then_the_rate() -> None:
    bucket = TokenBucket(rate=2.0, capacity=3.0, now=0.0)
    for _ in range(3):
        assert bucket.seconds_until_token(0.0) == 0.0
        bucket.take()
    assert bucket.seconds_until_token(0.0) == pytest.approx(0.5)
    assert bucket.seconds_until_token(0.5) == 0.0


def test_a_clock_that_goes_back_neither_adds_nor_takes() -> None:
    bucket = TokenBucket(rate=10.0, capacity=10.0, now=100.0)
    bucket.take()
    bucket.refill(95.0)
    assert bucket.tokens == 9.0
    bucket.refill(95.05)
    assert bucket.tokens == pytest.approx(9.5)


def test_the_past_is_refilled_at_the_old_rate() -> None:
    bucket = TokenBucket(rate=1.0, capacity=100.0, now=0.0)
    bucket.drain(0.0)
    bucket.change(rate=50.0, capacity=100.0, now=2.0)
    assert bucket.tokens == pytest.approx(2.0)


def test_a_drained_bucket_has_nothing_saved_up() -> None:
    bucket = TokenBucket(rate=4.0, capacity=8.0, now=0.0)
    bucket.drain(1.0)
    assert bucket.seconds_until_token(1.0) == pytest.approx(0.25)


def test_a_smaller_capacity_takes_what_is_above_it() -> None:
    bucket = TokenBucket(rate=1.0, capacity=8.0, now=0.0)
    bucket.change(rate=1.0, capacity=2.0, now=0.0)
    assert bucket.tokens == 2.0


def test_a_token_given_back_is_there_again_and_never_more_than_the_capacity() -> None:
    bucket = TokenBucket(rate=1.0, capacity=1.0, now=0.0)
    bucket.take()
    bucket.give_back()
    bucket.give_back()
    assert bucket.tokens == 1.0


def test_waiting_exactly_as_long_as_told_is_enough() -> None:
    bucket = TokenBucket(rate=0.3, capacity=1.0, now=0.0)
    now = 0.0
    for _ in range(1000):
        now += bucket.seconds_until_token(now)
        assert bucket.seconds_until_token(now) == 0.0
        bucket.take()


def test_a_rate_of_zero_waits_for_ever() -> None:
    bucket = TokenBucket(rate=0.0, capacity=1.0, now=0.0)
    bucket.take()
    assert bucket.seconds_until_token(1e9) == float("inf")


def test_a_bucket_that_is_awaited_makes_good_what_lateness_took_and_no_more_than_it_may() -> None:
    bucket = TokenBucket(rate=10.0, capacity=1.0, now=0.0, catch_up=2.0)
    bucket.take()
    bucket.is_awaited = True
    assert bucket.seconds_until_token(0.15) == 0.0  # 50 ms late
    bucket.take()
    assert bucket.seconds_until_token(0.15) == pytest.approx(0.05)
    assert bucket.seconds_until_token(9.0) == 0.0
    assert bucket.tokens == 3.0


def test_time_in_which_nobody_waits_fills_a_bucket_to_its_capacity_only() -> None:
    bucket = TokenBucket(rate=10.0, capacity=1.0, now=0.0, catch_up=2.0)
    bucket.take()
    assert bucket.seconds_until_token(9.0) == 0.0
    assert bucket.tokens == 1.0


def test_what_was_made_good_stays_until_it_is_spent_or_drained() -> None:
    bucket = TokenBucket(rate=10.0, capacity=1.0, now=0.0, catch_up=2.0)
    bucket.is_awaited = True
    bucket.refill(0.1)
    bucket.is_awaited = False
    bucket.refill(0.2)
    assert bucket.tokens == 2.0
    bucket.change(rate=10.0, capacity=1.0, now=0.2, catch_up=0.5)
    assert bucket.tokens == 1.5
    bucket.drain(0.2)
    assert bucket.tokens == 0.0
