"""Several workers on one real server, for tests of what they share.

Leases are short, and what must happen is waited for.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from tests.door import settled
from tests.servers import Server
from throttle.server.rule import Deferred, Key, LoadRule, Rule, Served, Verdict
from throttle.server.sleepers import Sleeper
from throttle.server.stores.redis import RedisStore

NO_KEYS = (0, 0, 0)
LOAD = LoadRule("load_defer", at_most=3, sleeping_max=2)
STACK = Rule("hit_stack", at_most=10, seconds=15, key=Key.CALLER, holds_refused=True)


class Worker(RedisStore):
    """One worker's store, with words for tests."""

    def __init__(self, url: str, **settings: Any) -> None:
        super().__init__(url, **{"lease_seconds": 1, "time_box": 5, **settings})
        self.bots = self.prepare([LOAD])
        self.people = self.prepare([STACK])

    async def bot(self, rank: int = 0, sleeper: Sleeper | None = None) -> Verdict:
        return await settled(self.admit(self.bots, NO_KEYS, 0, rank, sleeper))

    async def is_served(self) -> bool:
        return type(await self.bot()) is Served

    async def sleeps(self, rank: int = 0) -> Sleeper:
        verdict = await self.bot(rank)
        assert isinstance(verdict, Deferred)
        return verdict.sleeper

    async def person(self, key: int = 1) -> Verdict:
        return await settled(self.admit(self.people, (0, key, 0), 0, 0))


@asynccontextmanager
async def workers(server: Server, count: int, **settings: Any) -> AsyncIterator[list[Worker]]:
    """Workers of one new site."""
    site = settings.pop("site", secrets.token_hex(8))
    fleet = [Worker(server.url, site=site, **settings) for _ in range(count)]
    try:
        for worker in fleet:
            assert await worker.ready()
        yield fleet
    finally:
        for worker in fleet:
            while worker._running:
                worker.release()
            worker.close()
        await asyncio.sleep(0)


async def until(holds: Callable[[], bool], seconds: float = 20) -> float:
    began = time.perf_counter()
    while not holds():
        assert time.perf_counter() - began < seconds, "waited in vain"
        await asyncio.sleep(0.001)
    return time.perf_counter() - began


Scenario = Callable[[Server], Coroutine[Any, Any, None]]


def on_a_server(scenario: Scenario) -> Callable[[Server], None]:
    def test(server: Server) -> None:
        asyncio.run(scenario(server))

    test.__doc__ = scenario.__doc__
    return test
