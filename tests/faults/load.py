"""A site under load, on a store whose server a fault befalls: what the callers notice, in figures."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.servers import Server
from throttle import ThrottleMiddleware
from throttle.server.stores.redis import RedisStore

CALLERS = 20
CHROME = b"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"


async def page(scope: Any, receive: Any, send: Any) -> None:
    await asyncio.sleep(0.002)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


class Pipe:
    """Passes connections on to a server; those open when it is told to `swallow` are never heard of again."""

    def __init__(self, server: Server) -> None:
        self._to = server
        self._writers: list[asyncio.StreamWriter] = []
        self._swallowed: set[int] = set()
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> str:
        """Its URL."""
        self._listening = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return f"redis://127.0.0.1:{self._listening.sockets[0].getsockname()[1]}"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_unix_connection(self._to.socket)
        number = len(self._writers)
        self._writers += [writer, there_writer]
        for source, sink in ((reader, there_writer), (there_reader, writer)):
            self._tasks.append(asyncio.create_task(self._pump(number, source, sink)))

    async def _pump(self, number: int, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65_536):
            if number not in self._swallowed:
                sink.write(data)
        if number not in self._swallowed:
            sink.close()

    def swallow(self) -> None:
        self._swallowed = set(range(len(self._writers)))

    async def close(self) -> None:
        self._listening.close()
        for writer in self._writers:
            writer.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@dataclass
class Site:
    """One worker of a site, its callers, and what became of them."""

    server: Server
    store: RedisStore
    app: ThrottleMiddleware
    statuses: Counter[int] = field(default_factory=Counter)
    failures: list[BaseException] = field(default_factory=list)
    longest: float = 0.0
    """seconds of the slowest request"""
    lag: float = 0.0
    """seconds by which the event loop itself was late at worst"""
    came_back_after: float | None = None

    async def request(self, address: str) -> int:
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/",
            "headers": [(b"user-agent", CHROME)],
            "client": (address, 1234),
        }
        statuses: list[int] = []

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        async def receive() -> Any:
            await asyncio.Event().wait()

        await self.app(scope, receive, send)
        return statuses[0]

    async def call_on(self, caller: int) -> None:
        number = 0
        while True:
            number += 1
            began = time.perf_counter()
            try:
                status = await self.request(f"10.{caller}.{number // 250 % 250}.{number % 250}")
            except Exception as failure:
                self.failures.append(failure)
            else:
                self.statuses[status] += 1
                self.longest = max(self.longest, time.perf_counter() - began)

    async def watch_the_loop(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.005)
            self.lag = max(self.lag, time.perf_counter() - began - 0.005)

    @property
    def was_lost(self) -> bool:
        """The store was given up at least once."""
        return self.store.times_lost > 0

    def begin_counting(self) -> None:
        self.longest = self.lag = 0.0

    async def until(self, holds: Callable[[], bool], seconds: float = 20.0) -> float:
        """Wait until something holds; the seconds it took."""
        began = time.perf_counter()
        while not holds():
            assert time.perf_counter() - began < seconds, "waited in vain"
            await asyncio.sleep(0.002)
        return time.perf_counter() - began

    async def more(self, requests: int) -> None:
        """Until so many more have been answered."""
        goal = self.statuses.total() + requests
        await self.until(lambda: self.statuses.total() >= goal)

    async def comes_back(self, within: float = 1.0) -> None:
        """The store decides again, soon after its server can."""
        self.came_back_after = await self.until(lambda: self.store.is_up)
        assert self.came_back_after <= within + self.lag

    def says(self, name: str) -> str:
        back = "-" if self.came_back_after is None else f"{self.came_back_after:.2f} s"
        return (
            f"{name}: {self.statuses.total()} requests, {len(self.failures)} failures, "
            f"longest {self.longest * 1000:.0f} ms, loop late {self.lag * 1000:.0f} ms, back after {back}"
        )


@asynccontextmanager
async def site_under_load(server: Server, **settings: Any) -> AsyncIterator[Site]:
    """A site whose store is up, asked by so many callers without a break. No request may fail."""
    if isinstance(pipe := settings.pop("through", None), Pipe):
        settings["url"] = await pipe.open()
    store = RedisStore(settings.pop("url", server.url), **{"lease_seconds": 2, **settings})
    site = Site(server, store, ThrottleMiddleware(page, store=store))
    store.open()
    tasks = [asyncio.create_task(site.watch_the_loop())]
    await store.ready(0.5)
    tasks += [asyncio.create_task(site.call_on(caller)) for caller in range(CALLERS)]
    try:
        await site.more(200)
        site.begin_counting()
        yield site
        await site.more(200)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        store.close()
        await asyncio.sleep(0)
        if pipe is not None:
            await pipe.close()
    assert not site.failures, site.failures[0]
    assert store.load == 0


Fault = Callable[[Site], Awaitable[None]]


def against(
    record: Callable[[str, object], None],
    server: Server,
    fault: Fault,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
    **settings: Any,
) -> Site:
    """A fault under load; its figures are recorded with the test (`pytest -rP` shows them)."""

    async def run() -> Site:
        async with site_under_load(server, **settings) as site:
            await fault(site)
        return site

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        site = runner.run(run())
    name = fault.__name__.replace("_", " ")
    print(site.says(name))  # noqa: T201  for who asks for the figures
    record(name, site.says(name))
    return site
