"""What a flood costs: memory and CPU, while each caller comes once to a site that answers at once."""

import asyncio
import gc
import statistics
import time
from itertools import islice
from typing import Any

from decision.subjects import Clock, site
from resident import resident

from flooding.callers import invented, scope_of, steady
from flooding.subjects import make

BATCH = 500
A_MINUTE = 1_000_000


async def receive() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


async def send(message: Any) -> None:
    pass


async def _flood(name: str, minutes: float, seed: int) -> dict[str, Any]:
    """MiB of growth after each third of the time; µs of CPU a request in the median batch; a person's refusals."""
    clock = Clock()
    app = make(name, clock, site)
    person, refusals, growth, costs, worst = steady(0)[0], 0, [], [], []
    callers = invented(seed)
    count = int(minutes * A_MINUTE) // BATCH

    async def noted(message: Any) -> None:
        nonlocal refusals
        refusals += message.get("status", 200) != 200

    for caller in islice(callers, 2 * BATCH):  # what every subject builds up at its first requests
        await app(caller, receive, send)
    gc.collect()
    before, next_visit = resident(), clock.now
    for batch in range(count):
        scopes = list(islice(callers, BATCH))
        slowest, began = 0.0, time.process_time()
        last = began
        for scope in scopes:
            clock.pass_by(60 / A_MINUTE)
            await app(scope, receive, send)
            slowest, last = max(slowest, (ended := time.process_time()) - last), ended
        costs.append((last - began) / BATCH * 1e6)
        worst.append(slowest * 1e3)
        if clock.now >= next_visit:
            next_visit += person.every
            await app(scope_of(person.address, list(person.headers)), receive, noted)
        if (batch + 1) % max(1, count // 3) == 0:
            gc.collect()
            growth.append(resident() - before)
    return {
        "growth": growth[:3],
        "cost": statistics.median(costs),
        "worst": sorted(worst)[-max(1, len(worst) // 1000)],
        "refusals": refusals,
    }


def flood(name: str, minutes: float, seed: int) -> dict[str, Any]:
    return asyncio.run(_flood(name, minutes, seed))
