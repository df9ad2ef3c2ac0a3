"""The fit, against a bucket that is known."""

import pytest

from throttle.client.pace.bucket_fit import Epoch, bucket_fit


class Bucket:
    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst, self.level = rate, burst, burst

    def epoch(self, rest: float | None, paces: list[tuple[float, int]], last: float) -> Epoch:
        """What it takes at these paces, (rate, requests), and then at the `last` until it refuses."""
        if rest is not None:
            self.level = min(self.burst, self.level + self.rate * rest)
        pieces: list[tuple[float, float]] = []
        for pace, requests in [*paces, (last, 100_000)]:
            taken = 0
            for _ in range(requests):
                before = self.level
                self.level = min(self.burst, self.level + self.rate / pace)
                if self.level < 1:
                    pieces.append((taken / pace, taken))
                    self.level = max(0.0, before + self.rate / pace)
                    return Epoch(rest, pieces, 1 / pace, None)
                self.level -= 1
                taken += 1
            pieces.append((taken / pace, taken))
        raise AssertionError("it never refused")


@pytest.mark.parametrize(("rate", "burst"), [(8, 8), (8, 3), (2, 6), (100, 100), (100, 20), (23, 7)])
def test_three_refusals_at_different_paces_find_the_rate_within_3_percent(rate: float, burst: float) -> None:
    bucket = Bucket(rate, burst)
    epochs = [
        bucket.epoch(None, [(rate / 2, 8), (rate, 8)], rate * 3),
        bucket.epoch(1.0, [(rate * 0.8, 20)], rate * 1.5),
        bucket.epoch(1.0, [(rate * 0.99, 60)], rate * 1.1),
        bucket.epoch(1.0, [(rate * 0.99, 200)], rate * 1.1),
    ]
    fit = bucket_fit(epochs)
    assert fit.rates[2] == pytest.approx(rate, rel=0.03)
    assert fit.rates[0] <= rate * 1.01
    assert fit.rates[4] >= rate * 0.99
    assert fit.epochs == 4


def test_one_refusal_leaves_the_rate_uncertain_and_does_not_exclude_it() -> None:
    fit = bucket_fit([Bucket(8, 8).epoch(None, [(2, 6), (4, 6), (8, 6), (16, 6)], 32)])
    assert fit.rates[0] < 8 < fit.rates[4]
    assert fit.rates[4] / fit.rates[0] > 2


def test_refusals_of_another_limit_are_left_out() -> None:
    fast, slow = Bucket(8, 8), Bucket(2, 8)
    before = [fast.epoch(1.0, [(7.9, 60)], 9.0) for _ in range(3)]
    slow.level = 0.0
    after = [slow.epoch(1.0, [], 7.5), slow.epoch(1.0, [], 5.0), slow.epoch(1.0, [(1.9, 20)], 3.0)]
    fit = bucket_fit(before + after)
    assert fit.epochs <= 3
    assert fit.rates[2] == pytest.approx(2, rel=0.3)


def test_a_told_wait_is_time_enough_for_a_token() -> None:
    pieces = [(10.0, 3.0)]
    told, untold = (bucket_fit([Epoch(5.0, pieces, 0.5, wait)]) for wait in (2.0, None))
    assert untold.rates[0] < 0.35
    assert told.rates[0] > untold.rates[0]


def test_a_refusal_of_the_very_first_request_can_be_fitted() -> None:
    fit = bucket_fit([Epoch(None, [], 0.0, None)])
    assert 0 < fit.rates[0] <= fit.rates[4]
