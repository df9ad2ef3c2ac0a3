"""Which token bucket explains what a host accepted and refused?

A refusal says: the bucket is empty now. What was accepted since the last one says how it was filled. Buckets of
many rates and bursts are imagined, each is put through what was sent, and loses weight by the tokens it is wrong:
empty where a request was accepted, or not empty where one was refused. What weight is left, summed over the
bursts, is how likely each rate is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

# Seconds' worth of tokens that a bucket may hold, but a single token at least, and how unlikely each is held to be
# beforehand: buckets of almost nothing explain any refusal, and hardly a site has one.
BURSTS = ((0.0, 3.0), (0.06, 3.0), (0.12, 2.0), (0.25, 1.0), (0.5, 0.0), (0.75, 0.0), (1.0, 0.0), (1.5, 0.0), (2.0, 0.0), (3.0, 1.0))
# … and in any case what the network's jitter can bring at once, for else it would refuse all the time.
JITTER = 0.05
RATES = 16
REFINEMENTS = 2
# Tokens, squared, that a good bucket is wrong by: a whole one, a hundredth of what was sent …
NOISE, FULL_NOISE, NOISE_SHARE = 0.15, 0.01, 0.006
BURST_ERROR, GRID_ERROR = 0.15, 0.3
# … and how wrong the best bucket may be, per refusal, before older refusals are held to be of another limit.
MISFIT_MAX = 2.5


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
    """`rates` are the 5, 25, 50, 75 and 95 % points of the likely rates; `burst` in tokens; `epochs` were used."""

    rates: tuple[float, float, float, float, float]
    burst: float
    epochs: int


def bucket_fit(epochs: Sequence[Epoch]) -> Fit:
    """Of the last of `epochs`, as many as one bucket can explain."""
    low, high = _bounds(epochs)
    used = len(epochs)
    for refinement in range(REFINEMENTS + 1):
        step = (high / low) ** (1 / (RATES - 1))
        rates = [low * step**index for index in range(RATES)]
        points = [(rate, max(1.0 + JITTER * rate, rate * seconds)) for rate in rates for seconds, _ in BURSTS]
        # The next rate on the grid is wrong by so much, and the true one lies between.
        error = max(NOISE_SHARE, GRID_ERROR * (step - 1))
        costs, used = _costs(epochs[len(epochs) - used :], points, error, is_first=refinement == 0)
        least = min(costs)
        weights = [exp(-0.5 * (cost - least)) for cost in costs]
        by_rate = [sum(weights[index * len(BURSTS) : (index + 1) * len(BURSTS)]) for index in range(RATES)]
        heavy = [index for index, weight in enumerate(by_rate) if weight > 0.003 * max(by_rate)]
        low, high = rates[max(0, heavy[0] - 1)], rates[min(RATES - 1, heavy[-1] + 1)]
    total = sum(weights)
    burst = exp(sum(weight * log(point[1]) for weight, point in zip(weights, points, strict=True)) / total)
    return Fit(_quantiles(rates, by_rate), burst, used)


def _bounds(epochs: Sequence[Epoch]) -> tuple[float, float]:
    """Far enough below the slowest and above the fastest that was accepted."""
    low, high = float("inf"), 0.0
    for epoch in epochs:
        seconds = sum(piece[0] for piece in epoch.pieces) + (epoch.rest or 0.0)
        count = sum(piece[1] for piece in epoch.pieces)
        low = min(low, (count + 0.5) / max(seconds + 2.0, 0.01))
        high = max(high, (count + 1) / max(seconds - (epoch.rest or 0.0), 0.2))
        high = max(high, *(piece[1] / max(piece[0], 0.2) for piece in epoch.pieces), 0.01)
    return low * 0.5, max(high * 1.3, low)


def _costs(
    epochs: Sequence[Epoch], points: Sequence[tuple[float, float]], error: float, is_first: bool
) -> tuple[list[float], int]:
    """Each bucket's cost over the newest epochs, as many as some bucket explains, and how many these are."""
    total = [unlikely for _, unlikely in BURSTS] * RATES
    used = 0
    for epoch in reversed(epochs):
        added = [cost + _cost(epoch, rate, burst, error) for cost, (rate, burst) in zip(total, points, strict=True)]
        if is_first and used and min(added) > MISFIT_MAX * (used + 2):
            break
        total = added
        used += 1
    return total, used


def _cost(epoch: Epoch, rate: float, burst: float, error: float) -> float:
    if epoch.rest is None:
        level, slack = burst, 0.0
    else:
        level, slack = rate * epoch.rest + 0.5, 0.5  # of a token, that the last refusal left
        if level > burst:
            level, slack = burst, 0.0
    cost = since = 0.0  # requests since the level was last sure: the error grows with them
    most = burst - 1.0  # right after a request
    full = FULL_NOISE + (0.4 * JITTER * rate) ** 2 + (BURST_ERROR * most) ** 2
    sure = full if slack == 0.0 else NOISE
    for seconds, requests in epoch.pieces:
        level += rate * seconds - requests
        since += requests
        if level > most:
            level, slack, since = most, 0.0, 0.0
            sure = full
        elif level < -slack:
            cost += (level + slack) ** 2 / (sure + (error * (since + 1)) ** 2)
            level = slack = since = 0.0
            sure = NOISE
    level += rate * epoch.gap
    if level > 1.0 + slack:
        cost += (level - 1.0 - slack) ** 2 / (sure + (error * (since + 1)) ** 2)
    if epoch.told is not None:
        # A told wait is the time until a token is there, rounded up. That it is no longer than that is likely
        # only: a lock-out is told the same way.
        lacking = 0.9 - level - rate * epoch.told
        if lacking > 0.0:
            cost += 3.0 + 20.0 * lacking
        elif epoch.told >= 2.0 and level + rate * (0.95 * epoch.told - 1.0) > 1.1:
            cost += 2.0
    return cost


def _quantiles(rates: Sequence[float], weights: Sequence[float]) -> tuple[float, float, float, float, float]:
    total = sum(weights)
    found = []
    wanted = [0.05, 0.25, 0.5, 0.75, 0.95]
    below = 0.0
    for rate, weight in zip(rates, weights, strict=True):
        below += weight / total
        while wanted and below >= wanted[0] - 1e-12:
            found.append(rate)
            wanted.pop(0)
    found += [rates[-1]] * len(wanted)
    return found[0], found[1], found[2], found[3], found[4]
