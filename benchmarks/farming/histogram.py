"""The URLs of a job as customers send them: one or two large hosts, dozens middling, hundreds with a few each."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from benchmarks.farming.plan import HostPlan, address

HOSTS, URLS = 1_000, 75_000
LARGE, MIDDLING = 2, 0.1
# Of all URLs: the largest host's, the second's, those of the middling together.
SHARES = (0.27, 0.13, 0.52)
SERVICE = 0.03


def counts(urls: int, hosts: int, random: Random) -> list[int]:
    """URLs of each host, the largest first; they add up to `urls`."""
    middling = round(MIDDLING * hosts)
    tiny = hosts - LARGE - middling
    drawn = [random.lognormvariate(0.0, 0.4) for _ in range(middling)]
    some = [max(1, round(SHARES[2] * urls * one / sum(drawn))) for one in drawn]
    left = urls - sum(some) - round(SHARES[0] * urls) - round(SHARES[1] * urls)
    few = [1] * tiny
    for _ in range(left - tiny):
        few[random.randrange(tiny)] += 1
    second = round(SHARES[1] * urls)
    return sorted([urls - second - sum(some) - sum(few), second, *some, *few], reverse=True)


def limited_hosts(urls_of: Sequence[int], seconds: float, random: Random) -> list[HostPlan]:
    """Token buckets that refuse with 429; the largest host needs `seconds`, none of the others more than 0.9 of it."""
    plans = []
    for turn, count in enumerate(urls_of):
        least = count / seconds if turn == 0 else count / (0.9 * seconds)
        rate = least if turn == 0 else max(least, min(100.0, random.lognormvariate(1.6, 1.1)))
        limit = {"kind": "bucket", "rate": rate, "burst": max(2.0, rate), "service": SERVICE}
        plans.append(HostPlan(address(turn), f"host{turn}.test", limit))
    return plans


def with_rates(plans: Sequence[HostPlan]) -> dict[str, float]:
    """By address."""
    return {plan.address: plan.limit["rate"] for plan in plans if plan.limit is not None}


def optimum(urls_of: Sequence[int], rates: Sequence[float], throughput: float) -> float:
    """Seconds: max(URLs of the slowest host ÷ its rate, all ÷ throughput)."""
    slowest = max(count / rate for count, rate in zip(urls_of, rates, strict=True))
    return max(slowest, sum(urls_of) / throughput)


def paths(count: int) -> list[str]:
    return [f"/{number}" for number in range(count)]


def without_limits(plans: Sequence[HostPlan]) -> list[HostPlan]:
    return [replace(plan, limit=None) for plan in plans]
