"""Does our client get what our own server half gives, and is it hardly ever refused?

    python -m benchmarks.own_site

Virtual time, 5 seeds, the policy and the store that decide in production. The first minute is left out of the refused
share, since nothing can be known before the first refusal; the goodput counts it.

What the rules give is what an oracle is served: it knows the rules and when people come, and paces evenly. Beside it
stands what is served to one who knows the rules but not when people come, keeps one request open at most and obeys
what it is told: nobody who cannot foresee gets more, or is refused more rarely.
"""

import asyncio
from dataclasses import dataclass
from random import Random
from statistics import mean

from benchmarks.simulator.clients import FlowClient, LimiterClient, Work
from benchmarks.simulator.clockwork import Clockwork
from benchmarks.simulator.hosts import Reply
from benchmarks.simulator.policy_host import PolicyHost
from throttle.client.host import Host
from throttle.client.pace.seeking import SeekingPace
from throttle.server.agents import CallerClass


@dataclass(frozen=True)
class Visit:
    name: str
    caller_class: CallerClass
    seconds: float
    interval: float  # seconds between two hits, as the rules allow while there is room
    crowds: tuple[tuple[float, float], ...] = ()


SEEDS = range(1, 6)
VISITS = [
    Visit("known crawler: one hit in 30 s", CallerClass.KNOWN_CRAWLER, 3600, 30.0),
    Visit("assumed bot: 10 hits in 15 s, refused hits count", CallerClass.ASSUMED_BOT, 1200, 1.5),
    Visit(
        "the same, and people hold all places for 12 s of each 2 min",
        CallerClass.ASSUMED_BOT,
        1200,
        1.5,
        tuple((start, start + 12.0) for start in range(60, 1200, 120)),
    ),
    Visit(
        "… for 20 s of each 2 min: sleeps of 16 s, then refused",
        CallerClass.ASSUMED_BOT,
        1200,
        1.5,
        tuple((start, start + 20.0) for start in range(60, 1200, 120)),
    ),
]


class Oracle:
    """A thousandth slower than the rules allow; `foresees` when people come."""

    def __init__(self, visit: Visit, foresees: bool) -> None:
        self.visit = visit
        self.foresees = foresees
        self.next_at = 0.0

    def ready_at(self, now: float, in_flight: int) -> float:
        if in_flight:
            return float("inf")
        if self.foresees:
            for start, end in self.visit.crowds:
                if start - 0.1 <= max(now, self.next_at) < end:
                    return end
        return self.next_at

    def sent(self, now: float) -> None:
        self.next_at = now + 1.001 * self.visit.interval

    def answered(self, now: float, sent_at: float, reply: Reply) -> float:
        if reply.status != 200:
            self.next_at = max(self.next_at, now + (reply.retry_after or 0.0))
        elif now - sent_at > 1.0:  # it slept, and was counted when it woke
            self.next_at = max(self.next_at, now + self.visit.interval)
        return 0.0


async def main() -> None:
    for visit in VISITS:
        print(visit.name)
        gives = mean(served for served, _, _ in (run(visit, seed, foresees=True) for seed in SEEDS))
        obeying = [run(visit, seed, foresees=False) for seed in SEEDS]
        for fields in (False, True):
            told = "RateLimit fields" if fields else "Retry-After only"
            print(f"  {told:17} {line([run(visit, seed, fields) for seed in SEEDS], gives)}")
        print(f"  {'cannot foresee':17} {line(obeying, gives)}")
        share = gives * visit.interval / visit.seconds
        print(f"  {'oracle':17} {gives:.0f} served, {100 * share:.1f} % of the time's worth")


def line(runs: list[tuple[int, float, int]], gives: float) -> str:
    served, refused, count = (mean(values) for values in zip(*runs, strict=True))
    return f"{100 * served / gives:6.1f} % / {100 * refused:5.2f} %  ({count:.1f} refused)"


def run(visit: Visit, seed: int, fields: bool = False, *, foresees: bool | None = None) -> tuple[int, float, int]:
    """Served, refused share after the first minute, refusals in all; of our client, or an oracle if it `foresees` or
    not.
    """
    random = Random(f"{visit.name}/{seed}")
    clockwork = Clockwork()
    site = PolicyHost(clockwork, random, visit.caller_class, fields=fields, crowds=visit.crowds)
    client: FlowClient | LimiterClient
    if foresees is None:
        client = FlowClient(clockwork, site, Host(visit.name, SeekingPace(random), 0.0, random), 0, Work())
    else:
        client = LimiterClient(clockwork, site, Oracle(visit, foresees), 0, Work())
    clockwork.run(visit.seconds)
    log = client.log
    late = [served for landed, served in zip(log.landed, log.served, strict=True) if landed >= 60]
    return sum(log.served), late.count(False) / max(1, len(late)), log.served.count(False)


if __name__ == "__main__":
    asyncio.run(main())
