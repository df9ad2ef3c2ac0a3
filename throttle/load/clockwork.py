"""Starts each request of the crowd at its instant, and counts what comes of it.

Knows no socket: `send` asks and answers. Time is the running loop's, so a virtual clock will do.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

from throttle.load.answer import Answer
from throttle.load.crowd import Ask, Caller, files_of
from throttle.load.flows import Flow, Wait
from throttle.load.report import Report

Send = Callable[[Caller, str], Awaitable[Answer]]

TIMEOUT_SECONDS = 30.0
"""after which a caller gives up"""
DRAIN_SECONDS = 5.0
"""for what is under way when the traffic ends"""


class Clockwork:
    """Runs a crowd against `send` and writes what happens into `report`."""

    def __init__(self, send: Send, report: Report, *, timeout: float = TIMEOUT_SECONDS) -> None:
        self._send = send
        self._report = report
        self._timeout = timeout
        self._start = 0.0
        self._under_way: set[asyncio.Task[object]] = set()

    async def run(
        self,
        plan: Iterable[Ask],
        flows: Iterable[tuple[float, Caller, Flow]] = (),
        *,
        seconds: float,
        drain: float = DRAIN_SECONDS,
    ) -> None:
        """Return when `seconds` are over and all is answered, at the latest `drain` later.

        `flows` are callers whose next request depends on the last answer, each with the instant at which it begins.
        What is unanswered at the end stays open in the report.
        """
        self._start = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as self._tasks:
            for begin, caller, flow in flows:
                self._begin(self._follow(caller, flow, begin, seconds))
            for ask in sorted(plan, key=lambda ask: ask.at):
                await self._until(ask.at)
                self._begin(self._one(ask))
            await self._until(seconds)
            while self._under_way and self._now() < seconds + drain:
                await asyncio.wait(self._under_way, timeout=seconds + drain - self._now())
            for task in self._under_way:
                task.cancel()

    def _now(self) -> float:
        return asyncio.get_running_loop().time() - self._start

    async def _until(self, at: float) -> None:
        await asyncio.sleep(max(0.0, at - self._now()))

    def _begin(self, work: Coroutine[Any, Any, object]) -> None:
        task: asyncio.Task[object] = self._tasks.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _one(self, ask: Ask) -> Answer:
        self._report.offer(ask.caller.kind)
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._send(ask.caller, ask.path)
        except TimeoutError:
            answer = Answer(failed=f"no answer in {self._timeout:g} s")
        # From the plan, not from the sending: if this process is late, that counts as well.
        self._report.count(ask.caller.kind, answer, self._now() - ask.at)
        if ask.loads_files and answer.is_served:
            for file in files_of(ask, answer.body, self._now()):
                self._begin(self._one(file))
        return answer

    async def _follow(self, caller: Caller, flow: Flow, begin: float, end: float) -> None:
        await self._until(begin)
        answer: Answer | None = None
        try:
            while self._now() < end:
                step = flow.send(answer)
                if isinstance(step, Wait):
                    answer = None
                    if self._now() + step.seconds >= end:
                        return
                    await asyncio.sleep(step.seconds)
                else:
                    answer = await self._one(Ask(self._now(), caller, step.path))
        except StopIteration:
            return
