"""What does holding back cost a request?

    python -m benchmarks.client_cost

Microseconds of one request's way through our machines (exchange, host, the default pace) without any I/O, beside
aiolimiter and pyrate-limiter in the same run; none has to wait. Median of rounds, the rounds taken in turn. Time is
this process's own on the processor: what neighbours on the machine take is no cost of ours.

Then what a refusal costs besides, while the buckets are fitted anew: milliseconds, at the simulated host of 8 a second.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from random import Random
from statistics import median
from typing import Any

from benchmarks.simulator.score import run
from benchmarks.simulator.situations import FOURTEEN
from throttle.client.answer import Answer
from throttle.client.exchange import heard
from throttle.client.host import Host
from throttle.client.pace import Pace
from throttle.client.pace.aimd import AimdPace
from throttle.client.pace.seeking import SeekingPace

REQUESTS = 5_000
ROUNDS = 15


def ours(pace: Callable[[], Pace]) -> Callable[[], Coroutine[Any, Any, float]]:
    """The virtual clock goes as fast as the pace allows, so that no request waits."""

    async def round_() -> float:
        host = Host("example.org", pace(), 0.0, Random(1))
        now = 0.0
        spent = 0.0
        for _ in range(REQUESTS):
            now += 1.0 / host.pace.rate + 1e-6
            started = time.process_time()
            place = host.place_at_once(now)
            if place is None:  # the pace has just slowed: asked once more, which is counted
                now += host.bucket.seconds_until_token(now)
                place = host.place_at_once(now)
            assert place is not None
            heard(host, place, Answer(now + 0.0005, 200), 0, "GET", True)
            host.release(place)
            spent += time.process_time() - started
        return spent / REQUESTS

    return round_


async def aiolimiter_round() -> float:
    from aiolimiter import AsyncLimiter

    limiter = AsyncLimiter(1e9, 1)
    started = time.process_time()
    for _ in range(REQUESTS):
        async with limiter:
            pass
    return (time.process_time() - started) / REQUESTS


async def pyrate_round() -> float:
    from pyrate_limiter import Duration, InMemoryBucket, Limiter, Rate

    limiter = Limiter(InMemoryBucket([Rate(1_000_000, Duration.SECOND)]))
    started = time.process_time()
    for _ in range(REQUESTS):
        limiter.try_acquire("example.org")
    spent = (time.process_time() - started) / REQUESTS
    limiter.close()
    return spent


def refusal_milliseconds() -> list[float]:
    """Of each refusal while a pace learns 8 a second and keeps to it, those of five seeds."""
    spent: list[float] = []

    class Timed(SeekingPace):
        def dropped(self, now: float, sent_at: float, height: int, told: float | None, in_a_row: int) -> float:
            started = time.process_time()
            rest = super().dropped(now, sent_at, height, told, in_a_row)
            spent.append(1e3 * (time.process_time() - started))
            return rest

    for seed in range(1, 6):
        run(FOURTEEN[0], lambda situation, caller, random: Timed(random), seed)
    return spent


SUBJECTS: dict[str, Callable[[], Coroutine[Any, Any, float]]] = {
    "ours, the default pace": ours(lambda: SeekingPace(Random(1), rate=50.0)),
    "ours, the AIMD pace": ours(AimdPace),
    "aiolimiter (rate only)": aiolimiter_round,
    "pyrate-limiter (rate only)": pyrate_round,
}


def main() -> None:
    rounds: dict[str, list[float]] = {name: [] for name in SUBJECTS}
    for _ in range(ROUNDS):
        for name, subject in SUBJECTS.items():
            try:
                rounds[name].append(asyncio.run(subject()))
            except ImportError as missing:
                raise SystemExit(f"{missing}; install with: pip install aiolimiter pyrate-limiter") from missing
    for name, seconds in rounds.items():
        low, middle, high = min(seconds), median(seconds), max(seconds)
        print(f"{name:28} {1e6 * middle:6.2f} µs a request  (least {1e6 * low:.2f}, most {1e6 * high:.2f})")
    spent = refusal_milliseconds()
    print(f"{'ours, a refusal':28} {median(spent):6.2f} ms            (least {min(spent):.2f}, most {max(spent):.2f})")


if __name__ == "__main__":
    main()
