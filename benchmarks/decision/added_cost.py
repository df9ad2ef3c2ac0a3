"""CPU time that a middleware adds to a request, against the bare site in the same round.

A round runs every subject once, in a drawn order, each between two turns of the bare site. Scopes are made in small
batches outside the time taken. Medians over the rounds.
"""

import asyncio
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from decision.subjects import BARE, HITS, App, Clock, Subject
from decision.traffic import in_turn, scope

BATCH = 50
"""scopes made ahead: as many as stay in a core's cache, since a server makes each just before its request"""
SETTLE = 0.05
"""seconds for a subject's threads to end"""
SEED = 11


@dataclass(frozen=True)
class Traffic:
    """Who asks, how many they are, and how many seconds pass between two requests of one of them."""

    name: str
    kind: Sequence[bytes]
    callers: int
    pace: float
    is_refused: bool = False
    """each caller first makes more hits than it may"""


@dataclass(frozen=True)
class Cost:
    """Medians over the rounds; microseconds of CPU a request."""

    subject: str
    total: float
    added: float
    spread: float
    """half the distance between the quartiles of `added`"""
    ratio: float
    """to the bare site in the same round"""


async def receive() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


async def send(message: Any) -> None:
    pass


class Bench:
    """One subject under one kind of traffic; its time and its callers' histories last for all rounds.

    The clock is one for all, since peers share the module that reads it; each takes its own time up where it left it.
    """

    def __init__(self, subject: Subject, traffic: Traffic, clock: Clock) -> None:
        self.subject, self.traffic = subject, traffic
        self._clock, self._now = clock, clock.now
        self._app: App = subject.make(clock)
        self._numbers = in_turn(traffic.callers)
        self._step = traffic.pace / traffic.callers

    async def warm_up(self, turns: int = 2) -> None:
        """Fill the callers' histories and all caches; then look whether the answers are those that are meant."""
        traffic = self.traffic
        turns = HITS + 1 if traffic.is_refused else turns
        await self.run(max(300, turns * traffic.callers))
        self._clock.set(self._now)
        seen: set[int] = set()

        async def noted(message: Any) -> None:
            seen.add(message.get("status", 0))

        for _ in range(20):
            self._clock.pass_by(self._step)
            await self._app(scope(traffic.kind, next(self._numbers)), receive, noted)
        self._now = self._clock.now
        is_refused = traffic.is_refused and self.subject is not BARE and not self.subject.is_floor
        wanted = {0, 200} if not is_refused else {0, 429} if self.subject.is_peer else {0, 503}
        if seen != wanted:
            raise RuntimeError(f"{self.subject.name}, {traffic.name}: answered {seen - {0}}, not {wanted - {0}}")

    async def run(self, requests: int) -> float:
        """Microseconds of CPU a request. One batch goes ahead uncounted: caches still hold what ran before."""
        self._clock.set(self._now)
        app, clock, step, kind, taken = self._app, self._clock, self._step, self.traffic.kind, 0.0
        batches = max(1, requests // BATCH)
        for batch in range(batches + 1):
            scopes = [scope(kind, next(self._numbers)) for _ in range(BATCH)]
            begun = time.process_time()
            for each in scopes:
                clock.pass_by(step)
                await app(each, receive, send)
            if batch:
                taken += time.process_time() - begun
            await asyncio.sleep(0)
        if self.subject.has_threads:
            await asyncio.sleep(SETTLE)
        self._now = clock.now
        return taken / (batches * BATCH) * 1e6


async def costs(subjects: Sequence[Subject], traffic: Traffic, *, rounds: int, requests: int) -> list[Cost]:
    """The bare site first, then each subject in the order given."""
    drawn = random.Random(SEED)
    clock = Clock()
    bare = Bench(BARE, traffic, clock)
    benches = [Bench(subject, traffic, clock) for subject in subjects]
    await bare.warm_up()
    for bench in benches:
        await bench.warm_up()
    own: dict[str, list[float]] = {bench.subject.name: [] for bench in benches}
    beside: dict[str, list[float]] = {bench.subject.name: [] for bench in benches}
    for _ in range(rounds):
        for bench in drawn.sample(benches, len(benches)):
            before = await bare.run(requests // 2)
            own[bench.subject.name].append(await bench.run(requests))
            beside[bench.subject.name].append((before + await bare.run(requests // 2)) / 2)
    every = [each for row in beside.values() for each in row]
    found = [Cost(BARE.name, statistics.median(every), 0.0, 0.0, 1.0)]
    for name, row in own.items():
        added = [mine - theirs for mine, theirs in zip(row, beside[name], strict=True)]
        low, _, high = statistics.quantiles(added, n=4) if len(added) > 1 else (added[0],) * 3
        ratio = statistics.median(mine / theirs for mine, theirs in zip(row, beside[name], strict=True))
        found.append(Cost(name, statistics.median(row), statistics.median(added), (high - low) / 2, ratio))
    return found
