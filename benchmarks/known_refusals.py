"""What does it cost to refuse a crawler that hammers, where hits are counted in a store elsewhere?

    python benchmarks/known_refusals.py        a server of this machine's own, on a unix socket

One known crawler that was just served asks again and again, through the whole middleware, one ask after another. With
the store asked each time, and as it is: the refusal is known here until something of it can change. Medians of rounds
that take turns; processor time of this process, and the time that the crawler waits.
"""

import asyncio
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from starlette.applications import Starlette

from throttle import Limits, ThrottleMiddleware
from throttle.server.stores.local import LocalStore

ROUNDS, ASKS = 7, 1000
AGENT = b"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
SCOPE = {"type": "http", "method": "GET", "path": "/", "root_path": "", "query_string": b"", "scheme": "http"}


async def receive() -> Any:
    await asyncio.sleep(60)


async def ask(app: ThrottleMiddleware) -> int:
    statuses: list[int] = []

    async def send(message: Any) -> None:
        if "status" in message:
            statuses.append(message["status"])

    await app({**SCOPE, "headers": [(b"user-agent", AGENT)], "client": ("192.0.2.7", 1)}, receive, send)
    return statuses[0]


async def round_of(app: ThrottleMiddleware) -> tuple[float, float]:
    """Microseconds of the processor, and of the clock, an ask."""
    used, began = time.process_time(), time.perf_counter()
    for _ in range(ASKS):
        assert await ask(app) == 503
    return (time.process_time() - used) / ASKS * 1e6, (time.perf_counter() - began) / ASKS * 1e6


async def main() -> None:
    store = LocalStore(f"benchmark {time.time_ns()}")
    apps: dict[str, ThrottleMiddleware] = {}
    for name in ("asked each time", "known here"):
        apps[name] = ThrottleMiddleware(Starlette(), store=store, limits=Limits(lone_crawler_seconds=600))
    plain = apps["asked each time"]
    plain._gate = store  # nothing stands in front of it
    plain._use(plain._book.settings)
    assert await store.ready()
    await ask(apps["known here"])
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in apps}
    for _ in range(ROUNDS):
        for name, app in apps.items():
            figures[name].append(await round_of(app))
    for name, rounds in figures.items():
        used, waited = (statistics.median(one[i] for one in rounds) for i in (0, 1))
        print(f"{name:16} {used:6.1f} µs of the processor, {waited:6.1f} µs until it is answered")
    store.close()


if __name__ == "__main__":
    asyncio.run(main())
