"""Results on their way to the queue: gathered, written by one thread, told only once they are written.

At most BATCH results or SECONDS of them are unwritten besides the one batch that is being written; a kill loses
these, and they are fetched again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from throttle.crawl.queue import Added, NewUrl, Queue, RobotsText
from throttle.crawl.result import Result

BATCH, SECONDS = 100, 0.05

P = ParamSpec("P")
T = TypeVar("T")


class QueueThread:
    """The one thread on which a queue is used. The event loop goes on meanwhile."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="crawl-queue")

    def __call__(self, work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> "asyncio.Future[T]":
        return asyncio.get_running_loop().run_in_executor(self._pool, lambda: work(*arguments, **named))

    def close(self) -> None:
        self._pool.shutdown(wait=True)


class Recorder:
    """`on_recorded(first, added, all)` is called after each batch, in order; `on_error` once, and nothing after it."""

    def __init__(
        self,
        queue: Queue,
        thread: QueueThread,
        on_recorded: Callable[[list[Result], Added, list[Result]], None],
        on_error: Callable[[Exception], None],
    ) -> None:
        self._queue = queue
        self._thread = thread
        self._on_recorded = on_recorded
        self._on_error = on_error
        self._results: list[Result] = []
        self._urls: list[NewUrl] = []
        self._robots: list[RobotsText] = []
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        self._has_failed = False

    @property
    def unwritten(self) -> int:
        return len(self._results) + len(self._robots) + (self._writing is not None)

    def add(self, result: Result, urls: list[NewUrl]) -> None:
        """A result, and the URLs that its page has led to: recorded together or not at all."""
        self._results.append(result)
        self._urls.extend(urls)
        self._plan()

    def add_robots(self, text: RobotsText) -> None:
        self._robots.append(text)
        self._plan()

    def _plan(self) -> None:
        if self._has_failed or self._writing is not None:
            return
        if len(self._results) >= BATCH:
            self._write_now()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SECONDS, self._write_now)

    def _write_now(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        # All of it, even beyond BATCH: what came while the last batch was written does not wait for two more.
        results, self._results = self._results, []
        urls, self._urls = self._urls, []
        robots, self._robots = self._robots, []
        try:
            first, added = await self._thread(self._queue.record, results, urls, robots)
        except Exception as error:
            self._writing = None
            self._has_failed = True
            self._on_error(error)
            return
        self._writing = None
        self._on_recorded(first, added, results)
        if self._results or self._robots:
            self._plan()

    async def flush(self) -> None:
        """Returns when everything is written, or writing has failed."""
        while not self._has_failed and self.unwritten:
            if self._writing is None:
                self._write_now()
            assert self._writing is not None
            await asyncio.shield(_ended(self._writing))


async def _ended(task: Awaitable[None]) -> None:
    await asyncio.wait([asyncio.ensure_future(task)])
