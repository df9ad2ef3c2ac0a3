"""Does `load_max="auto"` come near the best fixed limit, on sites that do not fit here?

    python -m benchmarks.load_limit                    ours, the half that was not tuned on
    python -m benchmarks.load_limit --tuned            ... the half that was
    python -m benchmarks.load_limit --everything       all situations
    python -m benchmarks.load_limit --peers            other people's ways besides
    python -m benchmarks.load_limit --only loop --as-they-come
                                                       ... without what is done for them in the loop, and for threads
    python -m benchmarks.load_limit --cost             what it costs a request

Virtual time, the very policy, gate and machine. People, 2 % of the traffic, always pass. The best fixed limit is found
by search: the one that gives machines most while people's p95 stays within a bar of theirs alone (1.5 times where pages
cost alike, 1.3 where they differ); where none keeps the bar, the one that comes nearest. A limit passes a situation if
it is within 10 % of both: of that bar, and of what the best gives machines. At half load it passes if at most 0.5 % of
the machines' requests slept or were refused; on one or two processors if people's bar is kept, since both cannot be.

A line: the best fixed limit and people's p95 under it, then for each seed people's p95 against theirs alone and
machines' goodput against the best fixed, then the machines that slept or were refused, and the number over time: a
tenth of it was at most the first, half of it the second, nine tenths the third.
"""

import argparse
import asyncio
import json
import time
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from benchmarks.busy.judge import Reference, Score, reference, score
from benchmarks.busy.peers import Aimd, Envoy, Gradient2, Vegas
from benchmarks.busy.run import MakeFinder
from benchmarks.busy.site import Fixed
from benchmarks.busy.situations import Situation, situations
from throttle import Limits, ThrottleMiddleware
from throttle.server.load_limit import LoadLimit
from throttle.server.policy import AUTO

OURS = "auto"
FINDERS: dict[str, MakeFinder] = {
    OURS: lambda situation, random: LoadLimit(situation.machine.cores, random.random),
    "fixed 15": lambda situation, random: Fixed(15),
    "Gradient2": lambda situation, random: Gradient2(),
    "Envoy": lambda situation, random: Envoy(random),
    "Vegas": lambda situation, random: Vegas(random),
    "AIMD": lambda situation, random: Aimd(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Does the gate find the best limit?")
    parser.add_argument("--tuned", action="store_true", help="the half that was tuned on")
    parser.add_argument("--everything", action="store_true", help="both halves")
    parser.add_argument("--peers", action="store_true", help="other people's ways besides")
    parser.add_argument("--only", default="", help="situations whose name contains this")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument(
        "--references", help="a file that keeps the best fixed limits: their search takes most of the time"
    )
    parser.add_argument(
        "--as-they-come", action="store_true", help="nobody lets people first in the loop and in the threads"
    )
    parser.add_argument("--cost", action="store_true", help="what it costs a request")
    arguments = parser.parse_args()
    if arguments.cost:
        return cost()
    chosen = [
        situation
        for situation in situations()
        if arguments.only in situation.name
        and (arguments.everything or arguments.only or situation.is_held_out is not arguments.tuned)
    ]
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    names = list(FINDERS) if arguments.peers else [OURS]
    asyncio.run(report(chosen, seeds, names, References(arguments.references), not arguments.as_they_come))
    return None


class References:
    """The best fixed limits, searched once."""

    def __init__(self, file: str | None) -> None:
        self._file = None if file is None else Path(file)
        self._known: dict[str, list[Any]] = {}
        if self._file is not None and self._file.exists():
            self._known = json.loads(self._file.read_text())

    def of(self, situation: Situation, seed: int) -> Reference:
        key = f"{situation.name}, {situation.settle:g} s and {situation.lasts:g} s, bar {situation.bar:g}, seed {seed}"
        if key not in self._known:
            self._known[key] = list(reference(situation, seed))
            if self._file is not None:
                self._file.write_text(json.dumps(self._known, indent=1))
        return Reference(*self._known[key])


async def report(
    chosen: list[Situation], seeds: range, names: list[str], references: References, lets_people_first: bool
) -> None:
    """Runs within an event loop, since sleepers hold futures of it."""
    passed = dict.fromkeys(names, 0)
    started = time.perf_counter()
    for situation in chosen:
        best = {seed: references.of(situation, seed) for seed in seeds}
        for name in names:
            scores = [
                score(situation, FINDERS[name], best[seed], seed, lets_people_first=lets_people_first) for seed in seeds
            ]
            passed[name] += sum(one.passes for one in scores)
            print(line(situation, name, best[seeds[0]], scores), flush=True)
    runs = len(chosen) * len(seeds)
    print("\n".join(f"{name}: passes {count} of {runs}" for name, count in passed.items()))
    print(f"({time.perf_counter() - started:.0f} s)")


def line(situation: Situation, name: str, best: Reference, scores: list[Score]) -> str:
    passes = "✓" if all(one.passes for one in scores) else " "
    ratios = " ".join(f"{one.ratio:5.2f}" for one in scores)
    goodputs = " ".join(f"{one.goodput:5.2f}" for one in scores)
    hindered = max(one.hindered for one in scores)
    shown = f"{situation.name:57} best {best.load_max:3} {best.ratio:4.2f} of {best.bar:4.2f}"
    what = situation.name if name != OURS else shown
    numbers = "–".join(str(number) for number in scores[0].numbers)
    return f"{passes} {name:9} {what:78} people {ratios} machines {goodputs} hindered {hindered:6.1%} N {numbers}"


def cost() -> None:
    """Processor time of the machine alone, for each request that is served."""
    for rate, running, kinds in ((10, 4, 3), (50, 4, 20), (200, 8, 5), (1000, 16, 5), (1000, 16, 64)):
        events, random = [], Random(1)
        for number in range(20_000):
            came = number * 1_000_000 // rate
            took = int(running / rate * 1e6 * random.lognormvariate(0, 0.5))
            events += [(came, 0, number), (came + took, 1, number)]
        events.sort()
        limit = LoadLimit(4, random.random)
        began = {}
        start = time.process_time()
        for now, is_end, number in events:
            if is_end:
                limit.ended((number % kinds, 0), began.pop(number), now)
            else:
                limit.arrived(now)
                began[number] = limit.began(now)
        seconds = time.process_time() - start
        print(f"{rate:5} requests/s, {running:2} in flight, {kinds:2} kinds: {seconds / 20_000 * 1e6:.1f} µs a request")
    for rate in (5, 50, 500, None):
        figures = asyncio.run(through_the_middleware(rate))
        told = "one after another" if rate is None else f"{rate} requests a second"
        print(
            f"a whole request through the middleware, {told}: load_max=15 {figures['15']:.1f} µs, "
            f"auto {figures[AUTO]:.1f} µs"
        )


async def through_the_middleware(rate: int | None) -> dict[str, float]:
    """Processor time of a served request of an application that does nothing, by a clock on which they are so many a
    second and each takes 4 ms; medians of rounds that take turns.
    """
    now = 0.0

    async def nothing(scope: Any, receive: Any, send: Any) -> None:
        nonlocal now
        now += 0.004
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def send(message: Any) -> None:
        pass

    scope = {"type": "http", "method": "GET", "path": "/", "root_path": "", "headers": [(b"user-agent", b"reader/1")]}
    apps = {
        str(load_max): ThrottleMiddleware(
            nothing,
            limits=Limits(load_max=load_max, stack_hits=None),
            clock=time.monotonic if rate is None else lambda: now,
        )
        for load_max in (15, AUTO)
    }
    rounds: dict[str, list[float]] = {name: [] for name in apps}
    for _ in range(15):
        for name, app in apps.items():
            start = time.process_time()
            for number in range(3000):
                await app({**scope, "client": (f"192.0.2.{number % 250}", 1)}, send, send)
                now += max(0.0, 1 / (rate or 1) - 0.004)
            rounds[name].append((time.process_time() - start) / 3000 * 1e6)
    return {name: median(found) for name, found in rounds.items()}


if __name__ == "__main__":
    main()
