"""Starts each request of the crowd at its instant, and counts what comes of it.

Knows no socket: `send` asks and answers. Time is the running loop's unless given, so a virtual clock will do.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from throttle.load.answer import Answer
from throttle.load.crawls import Crawl
from throttle.load.crowd import Ask, Caller, files_of
from throttle.load.report import Report

SendTo = Callable[[Caller, str], Awaitable[Answer]]

TIMEOUT_SECONDS = 30.0
"""after which a caller gives up"""
DRAIN_SECONDS = 5.0
"""for what is under way when the traffic ends"""


class Clockwork:
    """Runs a crowd against `send` and writes what happens into `report`."""

    def __init__(
        self,
        send: SendTo,
        report: Report,
        *,
        timeout: float = TIMEOUT_SECONDS,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._send = send
        self._report = report
        self._timeout = timeout
        self._clock = clock
        self._start = 0.0
        self._requests: set[asyncio.Task[Answer]] = set()

    async def run(
        self,
        plan: Iterable[Ask],
        crawls: Iterable[tuple[float, Caller, Crawl]] = (),
        *,
        seconds: float,
        drain: float = DRAIN_SECONDS,
    ) -> None:
        """Return when `seconds` are over and all is answered, at the latest `drain` later.

        The plan is in order of time. `crawls` are callers whose next request depends on the last answer, each with
        the instant at which it begins; they end with the traffic. What is unanswered then stays open in the report.
        """
        if self._clock is None:
            self._clock = asyncio.get_running_loop().time
        self._start = self._clock()
        async with asyncio.TaskGroup() as self._tasks:
            following = [self._tasks.create_task(self._follow(*crawl)) for crawl in crawls]
            for ask in plan:
                await self._until(ask.at)
                self._report.late.append(max(0.0, self._now() - ask.at))
                self._begin(ask)
            await self._until(seconds)
            for task in following:
                task.cancel()
            while self._requests and self._now() < seconds + drain:
                await asyncio.wait(self._requests, timeout=seconds + drain - self._now())
            for request in self._requests:
                request.cancel()

    def _now(self) -> float:
        assert self._clock is not None
        return self._clock() - self._start

    async def _until(self, at: float) -> None:
        await asyncio.sleep(max(0.0, at - self._now()))

    def _begin(self, ask: Ask) -> asyncio.Task[Answer]:
        work = self._one(ask)
        try:
            task = self._tasks.create_task(work)
        except RuntimeError:  # the run was cancelled just now, and so is whoever begins something more
            work.close()
            raise asyncio.CancelledError from None
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)
        return task

    async def _one(self, ask: Ask) -> Answer:
        kind = ask.caller.kind
        self._report.offer(kind)
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._send(ask.caller, ask.path)
        except TimeoutError:
            answer = Answer(failed=f"no answer in {self._timeout:g} s")
        # From the plan, not from the sending: if this process is late, that counts as well.
        now = self._now()
        self._report.count(kind, answer, now - ask.at, ask.at)
        if ask.loads_files and answer.is_served:
            for file in files_of(ask, answer.body, now):
                self._begin(file)
        return answer

    async def _follow(self, begin: float, caller: Caller, crawl: Crawl) -> None:
        async def get(path: str) -> Answer:
            # Shielded: at the end the crawl is cancelled, and what it asked for last may still be answered.
            return await asyncio.shield(self._begin(Ask(self._now(), caller, path)))

        await self._until(begin)
        await crawl(get)
