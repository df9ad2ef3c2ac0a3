"""A slow limit that a newcomer met by chance is tested once, cheaply."""

from throttle.client.pace.bucket_fit import Fit
from throttle.client.pace.doubt import AFTER, MORE, Doubt

SLOW = Fit((0.7, 0.72, 0.75, 0.78, 0.8), 1.0, 2)


def doubted(fit: Fit = SLOW, told: float | None = 1.0, refusals: int = 2) -> Doubt:
    doubt = Doubt()
    doubt.fitted(fit, told, refusals)
    return doubt


def is_tested(doubt: Doubt) -> bool:
    return doubt.rate(0.75, AFTER) > 0.75


def test_a_slow_limit_is_tested_by_more_requests_than_its_bucket_bears() -> None:
    doubt = doubted()
    assert doubt.rate(0.75, AFTER - 1) == 0.75
    assert doubt.rate(0.75, AFTER) == 8 * 0.75
    assert not doubt.is_right(AFTER + MORE)
    assert doubt.is_right(AFTER + 1 + MORE)
    assert not is_tested(doubt)  # until the next refusal


def test_a_limit_that_was_refused_once_more_is_believed_for_good() -> None:
    doubt = doubted()
    assert not doubt.is_confirmed(AFTER)  # before the test
    assert doubt.is_confirmed(AFTER + 1)
    doubt.fitted(SLOW, 1.0, 3)
    assert not is_tested(doubt)


def test_fast_limits_large_buckets_and_old_acquaintances_are_not_tested() -> None:
    assert is_tested(doubted())
    assert not is_tested(doubted(Fit((7.0, 7.5, 8.0, 8.5, 9.0), 1.0, 2)))
    assert not is_tested(doubted(Fit(SLOW.rates, 8.0, 2)))
    assert not is_tested(doubted(refusals=5))


def test_who_was_ever_told_a_longer_wait_or_none_has_no_doubt() -> None:
    for told in (2.0, None):
        doubt = doubted(told=told)
        doubt.fitted(SLOW, 1.0, 2)
        assert not is_tested(doubt)
