"""Which token bucket explains what a host accepted and refused?

A refusal says: the bucket is empty now. What was accepted since the last one says how it was filled. Buckets of
many rates and bursts are imagined, each is put through what was sent, and loses weight by the tokens it is wrong:
empty where a request was accepted, or not empty where one was refused. What weight is left, summed over the
bursts, is how likely each rate is. The grid is then drawn closer around the heavy ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

RATES, BURSTS, PASSES = 16, 10, 3
# Seconds' worth of tokens that a bucket may hold at first sight …
BURST_LEAST, BURST_MOST = 0.05, 4.5
# … but in any case what the network's jitter brings at once, for else it would refuse all the time, and a little
# for requests being whole, where they are told apart.
JITTER = 0.02
# Tokens, squared, that a good bucket is wrong by: after an empty one, after a full one; and the share of what was
# sent since. Of a coarse grid more is forgiven.
EMPTY_NOISE, FULL_NOISE, SENT_NOISE, GRID_NOISE = 0.15, 0.0025, 0.006, 0.5
# A bucket of one token is empty after each request: how full it is needs no guess.
ONE_NOISE = 0.03
# Up to so many tokens are taken for one: buckets are made of whole ones.
ONE = 1.5
# Wider than this from the lowest to the highest likely rate, a fit is not to be held to yet.
WIDE = 1.12
# How wrong the best bucket may be, and more for each refusal, before older ones are held to be of another limit.
MISFIT, MISFIT_MORE = 4.0, 0.7


@dataclass(frozen=True, slots=True)
class Epoch:
    """From one refusal's rest to the next refusal.

    `pieces` are (seconds, requests) sent evenly; before them the host rested for `rest` seconds, from empty;
    None: long enough to be full.
    """

    rest: float | None
    pieces: Sequence[tuple[float, float]]
    gap: float  # seconds from the last of them to the request that was refused
    told: float | None  # the wait that was told at the end


@dataclass(frozen=True, slots=True)
class Fit:
    """`rates` are the 5, 25, 50, 75 and 95 % points of the likely rates; `burst` in tokens, the 25 % point, since what
    is counted on and not there is refused; `epochs` were used.
    """

    rates: tuple[float, float, float, float, float]
    burst: float
    epochs: int

    @property
    def is_wide(self) -> bool:
        return self.rates[4] > WIDE * self.rates[0]


def bucket_fit(epochs: Sequence[Epoch]) -> Fit:
    """Of the last of `epochs`, as many as one bucket can explain."""
    rates = _grid(*_bounds(epochs), RATES)
    seconds = _bursts(rates, BURST_LEAST, BURST_MOST)
    for turn in range(PASSES):
        errors = (
            max(SENT_NOISE, GRID_NOISE * (rates[1] / rates[0] - 1)),
            max(SENT_NOISE, GRID_NOISE * (seconds[1] / seconds[0] - 1)),
        )
        grid = [(rate, _tokens(rate, rate * second)) for rate in rates for second in seconds]
        costs, used = _costs(epochs, grid, [_unlikely(rate, burst) for rate, burst in grid], errors)
        if used < len(epochs):
            return bucket_fit(epochs[len(epochs) - used :])
        least = min(costs)
        weights = [exp(0.5 * (least - cost)) for cost in costs]
        by_rate = [sum(weights[start : start + BURSTS]) for start in range(0, len(weights), BURSTS)]
        by_burst = [sum(weights[start::BURSTS]) for start in range(BURSTS)]
        if turn < PASSES - 1:
            rates = _grid(*_heavy(rates, by_rate), RATES)
            seconds = _bursts(rates, *_heavy(seconds, by_burst))
    if least > MISFIT + MISFIT_MORE * len(epochs) and len(epochs) > 1:
        return bucket_fit(epochs[(len(epochs) + 1) // 2 :])  # only the coarse grid could forgive that much
    found = _quantiles(rates, by_rate)
    burst = max(1.0, found[2] * _quantiles(seconds, by_burst)[1])
    return Fit(found, burst, len(epochs))


def _grid(low: float, high: float, count: int) -> list[float]:
    step = (high / low) ** (1 / (count - 1))
    return [low * step**index for index in range(count)]


def _bursts(rates: Sequence[float], low: float, high: float) -> list[float]:
    """Less than one token is no bucket; many bursts that are all one token would make it look likely."""
    low = max(low, 1 / rates[-1])
    return _grid(low, max(high, 1.5 * low), BURSTS)


def _tokens(rate: float, burst: float) -> float:
    """What a bucket holds: no less than one, and what jitter brings at once."""
    return max(burst if burst > ONE else 1.0, 1.0 + 0.5 * JITTER * rate)


def _heavy(values: Sequence[float], weights: Sequence[float]) -> tuple[float, float]:
    """From just below the first to just above the last that has any weight."""
    most = max(weights)
    heavy = [index for index, weight in enumerate(weights) if weight > 0.003 * most]
    return values[max(0, heavy[0] - 1)], values[min(len(values) - 1, heavy[-1] + 1)]


def _bounds(epochs: Sequence[Epoch]) -> tuple[float, float]:
    """Far enough below the slowest and above the fastest that was accepted."""
    low, high = float("inf"), 0.01
    for epoch in epochs:
        sending = sum(seconds for seconds, _ in epoch.pieces)
        count = sum(requests for _, requests in epoch.pieces)
        low = min(low, (count + 0.5) / (sending + (epoch.rest or 0.0) + 2.0))
        high = max(high, (count + 1) / max(sending, 0.2))
        high = max([high, *(requests / max(seconds, 0.2) for seconds, requests in epoch.pieces)])
    return low * 0.5, max(high * 1.3, low)


def _unlikely(rate: float, burst: float) -> float:
    """What a burst costs beforehand: one of almost nothing explains any refusal, and hardly a fast site has it."""
    seconds = burst / rate
    cost = 1.0 if seconds < 0.18 else 0.5 if seconds < 0.35 or seconds > 2.5 else 0.0
    return cost + 1.0 if burst < ONE and seconds < 0.35 else cost


def _costs(
    epochs: Sequence[Epoch],
    grid: Sequence[tuple[float, float]],
    beforehand: Sequence[float],
    errors: tuple[float, float],
) -> tuple[list[float], int]:
    """Each bucket's cost over the newest epochs, as many as some bucket explains, and how many these are."""
    total = list(beforehand)
    used = 0
    for epoch in reversed(epochs):
        added = [cost + _cost(epoch, rate, burst, errors) for cost, (rate, burst) in zip(total, grid, strict=True)]
        if used and min(added) > MISFIT + MISFIT_MORE * (used + 1):
            break
        total = added
        used += 1
    return total, used


def _cost(epoch: Epoch, rate: float, burst: float, errors: tuple[float, float]) -> float:
    """The tokens by which this bucket is wrong about this epoch, squared, in units of the noise."""
    sent_error, burst_error = errors
    most = burst - 1.0  # right after a request
    full = FULL_NOISE + (0.4 * JITTER * rate) ** 2 + (burst_error * most) ** 2
    # A refusal leaves a part of a token; what it leaves does not matter where the bucket was full since.
    level, slack, noise = burst, 0.0, full
    if epoch.rest is not None and rate * epoch.rest + 0.5 <= burst:
        level, slack, noise = rate * epoch.rest + 0.5, 0.5, EMPTY_NOISE
    lacked = since = 0.0  # requests since the level was last sure: the error grows with them
    lacked_noise = lack_noise = max(full, ONE_NOISE) if burst < ONE else EMPTY_NOISE
    for seconds, requests in epoch.pieces:
        level += rate * seconds - requests
        since += requests
        if level > most:
            level, slack, since, noise = most, 0.0, 0.0, full
        elif level < -slack:
            lacked -= level + slack
            lacked_noise = max(lacked_noise, noise + (sent_error * since) ** 2)
            level, slack, since, noise = 0.0, 0.0, 0.0, lack_noise
    cost = lacked**2 / lacked_noise
    level += rate * epoch.gap
    if level > 1.0 + slack:
        cost += (level - 1.0 - slack) ** 2 / (noise + (sent_error * (since + 1)) ** 2)
    if epoch.told is not None:
        cost += _told_cost(level, rate, epoch.told)
    return cost


def _told_cost(level: float, rate: float, told: float) -> float:
    """A told wait is the time until a token is there, rounded up.

    That a token is there then is sure. That it is no longer than that is likely only: a lock-out is told alike.
    """
    lacking = 0.9 - level - rate * told
    if lacking > 0.0:
        return 3.0 + 20.0 * lacking
    return 4.0 if told >= 2.0 and level + rate * (0.95 * told - 1.0) > 1.1 else 0.0


def _quantiles(rates: Sequence[float], weights: Sequence[float]) -> tuple[float, float, float, float, float]:
    total = sum(weights)
    found: list[float] = []
    wanted = [0.05, 0.25, 0.5, 0.75, 0.95]
    below = 0.0
    for rate, weight in zip(rates, weights, strict=True):
        below += weight / total
        while len(found) < len(wanted) and below >= wanted[len(found)] - 1e-12:
            found.append(rate)
    found += [rates[-1]] * (len(wanted) - len(found))
    return found[0], found[1], found[2], found[3], found[4]
