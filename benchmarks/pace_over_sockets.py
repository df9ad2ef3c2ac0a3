"""Does the pace find over real sockets, in real time, what it finds in the simulation?

    python -m benchmarks.pace_over_sockets [--seconds 120] [--seed 1] [--situation 8/s]

The situations of benchmarks/hidden_limit.py, each a host of the farm with the simulation's own limit and latencies,
asked by 64 tasks with httpx2 over the very transport that people mount; all hosts of a group side by side, first the
quiet ones, then the brisk. What happens at some time in a situation happens as much sooner as the run is shorter.
Beside each the same situation, as short, in virtual time (5 seeds, and the spread of their goodput): goodput of what
the host would have given / refused, in percent; the bar is two points between the two.

Real time shares the machine: how late the event loop was is told, and a late loop is a slower client, since what a
pace without a burst loses by waking late it does not make up for. «As late» is the simulation with waits that end as
late as they did here.
"""

import argparse
import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from statistics import mean, median
from typing import Any

import httpx2

from benchmarks.farm import Farm, allow_files, farm
from benchmarks.farming.plan import HostPlan, address
from benchmarks.farming.situation import shortened
from benchmarks.hidden_limit import seeking
from benchmarks.simulator.clients import TASKS, Log
from benchmarks.simulator.score import Score, run, score
from benchmarks.simulator.situations import FOURTEEN, Situation
from throttle.client.httpx2 import AsyncThrottledTransport

BRISK = 30.0
"""requests a second, above which a situation is in the second group"""
SIMULATED = range(1, 6)
POINTS = 0.02


class LoggedTransport(httpx2.AsyncBaseTransport):
    """The library's own, noting what leaves and what comes back: the throttled transport is above it."""

    def __init__(self, log: Log, started: float) -> None:
        self._inner = httpx2.AsyncHTTPTransport(limits=httpx2.Limits(max_connections=None))
        self._log = log
        self._started = started

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        sent = time.monotonic()
        response = await self._inner.handle_async_request(request)
        landed = time.monotonic()
        self._log.note(sent - self._started, landed - self._started, response.status_code == 200)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


@dataclass
class SocketClient:
    """One throttled client with its 64 tasks; another of the same situation knows nothing of it."""

    situation: Situation
    url: str
    start: float
    seed: str
    log: Log = field(default_factory=Log)

    async def run(self, started: float) -> None:
        await asyncio.sleep(self.start)
        transport: Any = AsyncThrottledTransport(
            transport=lambda: LoggedTransport(self.log, started), random=Random(self.seed)
        )
        wanted = asyncio.Semaphore(0 if self.situation.bursts else 1 << 60)
        async with httpx2.AsyncClient(transport=transport, timeout=60, trust_env=False) as client:
            tasks = [asyncio.create_task(self._ask(client, wanted)) for _ in range(TASKS)]
            try:
                if self.situation.bursts is not None:
                    await self._burst(wanted, started, *self.situation.bursts)
                await asyncio.sleep(started + self.situation.seconds - time.monotonic())
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _ask(self, client: httpx2.AsyncClient, wanted: asyncio.Semaphore) -> None:
        number = 0
        while True:
            await wanted.acquire()
            number += 1
            await client.get(f"{self.url}{number}")

    async def _burst(self, wanted: asyncio.Semaphore, started: float, every: float, count: int) -> None:
        for turn in range(int(self.situation.seconds / every)):
            await asyncio.sleep(max(0.0, started + turn * every - time.monotonic()))
            for _ in range(count):
                wanted.release()


async def lateness(late: list[float]) -> None:
    """How much later than wished a sleep of 10 ms ends, again and again."""
    while True:
        before = time.monotonic()
        await asyncio.sleep(0.01)
        late.append(time.monotonic() - before - 0.01)


async def side_by_side(situations: Sequence[Situation], hosts: Farm, seed: int) -> tuple[list[Score], list[float]]:
    clients = [
        [
            SocketClient(situation, hosts.url(plan), start, f"{situation.name}/{seed}/{caller}")
            for caller, start in enumerate(situation.starts)
        ]
        for situation, plan in zip(situations, hosts.plans, strict=True)
    ]
    late: list[float] = []
    watch = asyncio.create_task(lateness(late))
    started = time.monotonic()
    await asyncio.gather(*(client.run(started) for group in clients for client in group))
    watch.cancel()
    return [score(situation, group) for situation, group in zip(situations, clients, strict=True)], late


def measure(names: Sequence[str], seconds: float, seed: int) -> tuple[int, int]:
    """How many are within the bar, of how many."""
    shifts = {name: Random(f"{name}/{seed}").uniform(0.0, 6.0) for name in names}
    situations = [shortened(name, seconds, shifts[name]) for name in names]
    plans = [
        HostPlan(address(turn), limit={"kind": "situation", "name": name, "seconds": seconds, "shift": shifts[name]})
        for turn, name in enumerate(names)
    ]
    with farm(plans) as hosts:
        scores, late = asyncio.run(side_by_side(situations, hosts, seed))
    within = 0
    for situation, real in zip(situations, scores, strict=True):
        short = shortened(situation.name, seconds)
        simulated = [run(short, seeking, one) for one in SIMULATED]
        as_late = [run(short, seeking, one, partial(Random(one).choice, late)) for one in SIMULATED]
        within += told(situation.name, real, simulated, as_late)
    late.sort()
    print(
        f"  the loop was {1e3 * median(late):.1f} ms late (median), {1e3 * mean(late):.1f} (mean),"
        f" {1e3 * late[len(late) * 99 // 100]:.0f} ms (p99)",
        flush=True,
    )
    return within, len(names)


def both(goodput: float, refused: float) -> str:
    return f"{100 * goodput:5.1f} / {100 * refused:5.2f}"


def told(name: str, real: Score, simulated: Sequence[Score], as_late: Sequence[Score]) -> bool:
    goodput, refused = mean(one.goodput for one in simulated), mean(one.refused for one in simulated)
    is_within = abs(real.goodput - goodput) <= POINTS and abs(real.refused - refused) <= POINTS
    spread = min(one.goodput for one in simulated), max(one.goodput for one in simulated)
    print(
        f"  {'✓' if is_within else ' '} {name:24} sockets {both(real.goodput, real.refused)}"
        f"   simulated {both(goodput, refused)}  ({100 * spread[0]:.1f} to {100 * spread[1]:.1f})"
        f""
        f"  as late {both(mean(one.goodput for one in as_late), mean(one.refused for one in as_late))}"
        f"   p95 {real.p95:.2f}× and {mean(one.p95 for one in simulated):.2f}×",
        flush=True,
    )
    return is_within


def briskness(situation: Situation) -> float:
    return situation.would_give(situation.seconds) / situation.seconds


def main() -> None:
    parser = argparse.ArgumentParser(description="The pace over real sockets, beside the simulation.")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--situation", default="", help="situations whose name contains this")
    given = parser.parse_args()
    allow_files()
    chosen = [one for one in FOURTEEN if given.situation in one.name]
    print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {given.seconds:g} s", flush=True)
    counts = [
        measure([one.name for one in group], given.seconds, given.seed)
        for group in (
            [one for one in chosen if briskness(one) <= BRISK],
            [one for one in chosen if briskness(one) > BRISK],
        )
        if group
    ]
    print(f"  within two points {sum(within for within, _ in counts)} of {sum(count for _, count in counts)}")


if __name__ == "__main__":
    main()
