"""Does our client get what our own server half gives, and is it hardly ever refused?

    python -m benchmarks.own_site

Virtual time, 5 seeds, the policy and the store that decide in production. The first minute is left out of the refused
share, since nothing can be known before the first refusal; the goodput counts it.
"""

import asyncio
from dataclasses import dataclass
from random import Random
from statistics import mean

from benchmarks.simulator.clients import FlowClient, Work
from benchmarks.simulator.clockwork import Clockwork
from benchmarks.simulator.policy_host import PolicyHost
from throttle.client.host import Host
from throttle.client.pace.seeking import SeekingPace
from throttle.server.agents import CallerClass


@dataclass(frozen=True)
class Visit:
    name: str
    caller_class: CallerClass
    seconds: float
    rate: float  # what the rules give
    crowds: tuple[tuple[float, float], ...] = ()


VISITS = [
    Visit("known crawler: one hit in 30 s", CallerClass.KNOWN_CRAWLER, 3600, 1 / 30),
    Visit("assumed bot: 10 hits in 15 s, refused hits count", CallerClass.ASSUMED_BOT, 1200, 10 / 15),
    Visit(
        "the same, and people hold all places for 12 s of each 2 min",
        CallerClass.ASSUMED_BOT,
        1200,
        10 / 15,
        tuple((start, start + 12.0) for start in range(60, 1200, 120)),
    ),
    Visit(
        "… for 20 s of each 2 min: sleeps of 16 s, then refused",
        CallerClass.ASSUMED_BOT,
        1200,
        10 / 15,
        tuple((start, start + 20.0) for start in range(60, 1200, 120)),
    ),
]


async def main() -> None:
    for visit in VISITS:
        for fields in (False, True):
            runs = [run(visit, fields, seed) for seed in range(1, 6)]
            goodput, refused, count = (mean(values) for values in zip(*runs, strict=True))
            told = "RateLimit fields" if fields else "Retry-After only"
            print(f"{visit.name:60} {told:17} {100 * goodput:6.1f} % / {100 * refused:5.2f} %  ({count:.1f} refused)")


def run(visit: Visit, fields: bool, seed: int) -> tuple[float, float, float]:
    """Goodput of what the rules give, refused share after the first minute, refusals in all."""
    random = Random(f"{visit.name}/{seed}")
    clockwork = Clockwork()
    site = PolicyHost(clockwork, random, visit.caller_class, fields=fields, crowds=visit.crowds)
    host = Host(visit.name, SeekingPace(random), 0.0, random)
    client = FlowClient(clockwork, site, host, 0, Work())
    clockwork.run(visit.seconds)
    log = client.log
    late = [served for landed, served in zip(log.landed, log.served, strict=True) if landed >= 60]
    # While people hold the places a bot gets nothing but what its stack saves up.
    gives = visit.rate * visit.seconds
    return sum(log.served) / gives, late.count(False) / max(1, len(late)), float(log.served.count(False))


if __name__ == "__main__":
    asyncio.run(main())
