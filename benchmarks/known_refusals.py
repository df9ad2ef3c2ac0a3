"""What does it cost to refuse who hammers, where hits are counted in a store elsewhere?

    python benchmarks/known_refusals.py        a server of this machine's own, on a unix socket

One known crawler that was just served, refused by its last hit, and one browser, refused by its hit stack, ask again
and again, through the whole middleware, one ask after another. With the store asked each time, and as it is: refused
here, and the store told behind. Medians of rounds that take turns; processor time of this process, and the time that
the caller waits; asks and tellings that reached the store.
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
AGENTS = {
    "a crawler, by its last hit": b"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "a browser, by its hit stack": b"Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0",
}
SCOPE = {"type": "http", "method": "GET", "path": "/", "root_path": "", "query_string": b"", "scheme": "http"}


async def receive() -> Any:
    await asyncio.sleep(60)


class Counted(LocalStore):
    """Counts what reaches it."""

    asked = told = 0

    def admit(self, *asked: Any) -> Any:
        self.asked += 1
        return super().admit(*asked)

    def hold_refused(self, hits: Any, now: int) -> None:
        self.told += 1
        super().hold_refused(hits, now)


async def ask(app: ThrottleMiddleware, agent: bytes) -> int:
    statuses: list[int] = []

    async def send(message: Any) -> None:
        if "status" in message:
            statuses.append(message["status"])

    await app({**SCOPE, "headers": [(b"user-agent", agent)], "client": ("192.0.2.7", 1)}, receive, send)
    return statuses[0]


async def round_of(app: ThrottleMiddleware, agent: bytes) -> tuple[float, float]:
    """Microseconds of the processor, and of the clock, an ask."""
    used, began = time.process_time(), time.perf_counter()
    for number in range(ASKS):
        assert await ask(app, agent) == 503
        if number % 20 == 0:
            await asyncio.sleep(0)  # as between any two requests of a site: what is told leaves
    return (time.process_time() - used) / ASKS * 1e6, (time.perf_counter() - began) / ASKS * 1e6


async def main() -> None:
    store = Counted(f"benchmark {time.time_ns()}")
    apps: dict[str, ThrottleMiddleware] = {}
    for name in ("asked each time", "known here"):
        apps[name] = ThrottleMiddleware(Starlette(), store=store, limits=Limits(lone_crawler_seconds=600))
    plain = apps["asked each time"]
    plain._gate = store  # nothing stands in front of it
    plain._book = plain._in_force.use(plain._book.settings)
    assert await store.ready()
    for who, agent in AGENTS.items():
        for _ in range(21):
            await ask(apps["known here"], agent)
        figures: dict[str, list[tuple[float, float]]] = {name: [] for name in apps}
        reached = dict.fromkeys(apps, 0)
        for _ in range(ROUNDS):
            for name, app in apps.items():
                before = store.asked + store.told
                figures[name].append(await round_of(app, agent))
                reached[name] += store.asked + store.told - before
        for name, rounds in figures.items():
            used, waited = (statistics.median(one[i] for one in rounds) for i in (0, 1))
            print(
                f"{who:28} {name:16} {used:6.1f} µs of the processor, {waited:6.1f} µs until it is answered; "
                f"{reached[name]} calls to the store for {ROUNDS * ASKS} refusals"
            )
    store.close()


if __name__ == "__main__":
    asyncio.run(main())
