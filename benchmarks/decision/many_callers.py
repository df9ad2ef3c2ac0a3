"""What many callers cost: time per request from one to a million, and the worst single request."""

import asyncio
import itertools
import statistics
import time
from collections.abc import Callable, Iterator

from decision.added_cost import Bench, Traffic, receive, send
from decision.held import Crowd
from decision.subjects import BARE, App, Clock, Subject, throttle
from decision.traffic import BROWSERS, scope
from throttle import MemoryStore

ALL_HELD = 4_000_000
"""`max_callers` at which a million callers are all held"""


async def cost_by_callers(counts: list[int], *, rounds: int, requests: int) -> dict[int, float]:
    """Microseconds of CPU for a whole request, medians; each caller comes back once in ten seconds."""
    clock = Clock()
    subject = Subject("throttle", lambda clock: throttle(clock, store=MemoryStore(max_callers=ALL_HELD)))
    benches = {n: Bench(subject, Traffic(f"{n:,} callers", BROWSERS, n, 10.0), clock) for n in counts}
    for bench in benches.values():
        await bench.warm_up(turns=1)
    taken: dict[int, list[float]] = {n: [] for n in counts}
    for _ in range(rounds):
        for n, bench in benches.items():
            taken[n].append(await bench.run(requests))
    return {n: statistics.median(row) for n, row in taken.items()}


def once_each(requests: int) -> Iterator[int]:
    """Callers who come once: as many as there are requests."""
    return iter(range(requests))


def all_refused(requests: int) -> Iterator[int]:
    """Callers who come twelve times on end, and are refused at the end."""
    return itertools.islice((n for n in itertools.count() for _ in range(12)), requests)


async def worst_requests(
    make: Callable[[Clock], App], who: Callable[[int], Iterator[int]], *, runs: int, requests: int, step: float
) -> list[float]:
    """The worst request of each run, in milliseconds of this thread's CPU.

    Making the scope counts in, so that a collection of garbage which it sets off is seen. What is the middleware's own
    comes back in every run; so the least of the runs is the figure, the others are the machine's noise.
    """
    found = []
    for _ in range(runs):
        clock = Clock()
        app = make(clock)
        await app(scope(BROWSERS, 0), receive, send)
        worst, taken = 0, time.thread_time_ns
        for number in who(requests):
            clock.pass_by(step)
            begun = taken()
            await app(scope(BROWSERS, number), receive, send)
            worst = max(worst, taken() - begun)
        found.append(worst / 1e6)
        await asyncio.sleep(0)
    return found


def crowded(clock: Clock) -> App:
    """The throttle, full of refused callers; the cap is an eighth of the default, its shards are as large."""
    store = MemoryStore(max_callers=131_072)
    Crowd(store, int(clock.now * 1_000_000)).hammers(140_000)
    clock.pass_by(2)
    return throttle(clock, store=store)


STALLS: list[tuple[str, Callable[[Clock], App], Callable[[int], Iterator[int]]]] = [
    ("bare site", BARE.make, once_each),
    ("throttle, each caller comes once", throttle, once_each),
    ("throttle, full of the refused, all hammer", crowded, all_refused),
]
