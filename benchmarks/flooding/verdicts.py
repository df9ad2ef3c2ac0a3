"""What a flood does to those who come steadily: a site that can do so much and no more, in virtual time.

The site works on eight pages at once, 40 ms each: 200 a second. The server keeps at most 1,000 requests open and
answers 503 itself beyond (as uvicorn's --limit-concurrency does), whatever stands behind it; without that a site with
no gate would only queue. The flood offers 16,667 a second.
"""

import asyncio
import sys
from collections import defaultdict
from itertools import islice
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from flooding.callers import Steady, invented, scope_of, steady
from flooding.subjects import make
from tests import virtual_clock

WORKERS, PAGE_SECONDS = 8, 0.04
OPEN_MAX = 1000
PATIENCE = 20.0
"""seconds after which one who comes steadily gives up"""
CALM = 120.0
TICK = 0.01
A_SECOND = 1_000_000 / 60


class LoopClock:
    """The virtual loop's time, as subjects ask for it; some peers do in threads of their own."""

    def __init__(self) -> None:
        self.read = asyncio.get_running_loop().time


class Server:
    """The site behind its middleware, and the cap on open requests before both."""

    def __init__(self, name: str) -> None:
        self._workers = asyncio.Semaphore(WORKERS)
        self._app = make(name, LoopClock(), self._site)
        self._open = 0
        self.pages = 0

    def _site(self) -> Starlette:
        return Starlette(routes=[Route("/paper", self._page)])

    async def _page(self, request: Request) -> Response:
        async with self._workers:
            await asyncio.sleep(PAGE_SECONDS)
        self.pages += 1
        return PlainTextResponse("Load Control in Connotea")

    async def ask(self, scope: dict[str, Any]) -> tuple[int, str]:
        """The status, and the cookie that was given."""
        if self._open >= OPEN_MAX:
            return 503, ""
        self._open += 1
        heard: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if heard:
                await asyncio.get_running_loop().create_future()  # nobody hangs up
            heard.append({})
            return {"type": "http.request", "body": b"", "more_body": False}

        answer = [0, ""]

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                answer[0] = message["status"]
                for field, value in message["headers"]:
                    if field == b"set-cookie":
                        answer[1] = value.split(b";")[0].decode()

        try:
            await self._app(scope, receive, send)
        finally:
            self._open -= 1
        return answer[0], answer[1]


class Visitor:
    """One who comes steadily; a browser keeps its cookie."""

    def __init__(self, who: Steady, server: Server, report: dict[str, list[float | None]]) -> None:
        self.who = who
        self._server = server
        self._report = report
        self._cookie = ""

    async def come(self, until: float, counts_from: float) -> None:
        loop = asyncio.get_running_loop()
        begin = loop.time()
        at = self.who.begins
        async with asyncio.TaskGroup() as visits:
            while at < until:
                await asyncio.sleep(max(0, begin + at - loop.time()))
                visits.create_task(self._visit(at >= counts_from))
                at += self.who.every

    async def _visit(self, counts: bool) -> None:
        loop = asyncio.get_running_loop()
        headers = list(self.who.headers)
        if self._cookie:
            headers = [(k, v + b"; " + self._cookie.encode()) if k == b"cookie" else (k, v) for k, v in headers]
        began, status = loop.time(), 0
        try:
            async with asyncio.timeout(PATIENCE):
                status, cookie = await self._server.ask(scope_of(self.who.address, headers))
                self._cookie = cookie or self._cookie
        except TimeoutError:
            pass
        if counts:
            self._report[self.who.name].append(loop.time() - began if status == 200 else None)


async def _flood(name: str, seconds: float, seed: int, as_browsers: bool) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    server = Server(name)
    report: dict[str, list[float | None]] = defaultdict(list)
    end = CALM + seconds
    visitors = [Visitor(who, server, report) for who in steady(CALM)]
    coming = [loop.create_task(visitor.come(end, CALM)) for visitor in visitors]
    await asyncio.sleep(CALM)
    before, served, tasks = server.pages, 0, set[asyncio.Task[Any]]()
    callers, offered = invented(seed, as_browsers=as_browsers), 0

    def count(task: asyncio.Task[Any]) -> None:
        nonlocal served
        tasks.discard(task)
        served += not task.cancelled() and task.result()[0] == 200

    for tick in range(int(seconds / TICK)):
        due = int((tick + 1) * TICK * A_SECOND) - offered
        offered += due
        for scope in islice(callers, due):
            task = loop.create_task(server.ask(scope))
            tasks.add(task)
            task.add_done_callback(count)
        await asyncio.sleep(TICK)
    await asyncio.gather(*coming)
    for task in list(tasks):
        task.cancel()
    return {
        "callers": {name: _told(visits) for name, visits in report.items()},
        "flood": {"offered": offered, "served": served},
        "pages": server.pages - before,
    }


def _told(visits: list[float | None]) -> dict[str, float]:
    took = sorted(visit for visit in visits if visit is not None)
    return {
        "came": len(visits),
        "served": len(took),
        "median": took[len(took) // 2] if took else float("nan"),
        "slowest": took[-1] if took else float("nan"),
    }


def flood(name: str, seconds: float, seed: int, *, as_browsers: bool = False) -> dict[str, Any]:
    return virtual_clock.run(_flood(name, seconds, seed, as_browsers))
