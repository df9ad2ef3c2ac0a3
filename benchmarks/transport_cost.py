"""What does the throttle add to a request of each client?

    python -m benchmarks.transport_cost

Microseconds of CPU, the client bare and throttled, none of them waiting for its turn. httpx and httpx2 on an inner
transport that answers at once with eight fields; aiohttp, which has none to put in its place, on a host on loopback.
Rounds are taken in pairs, in turn; the median of the pairs' differences, and the difference of the fastest rounds,
which says more on a busy machine. The machines alone: benchmarks.client_cost.
"""

import asyncio
import gc
import importlib
import time
from collections.abc import Awaitable, Callable
from functools import partial
from statistics import median
from typing import Any

from benchmarks.farm import farm
from benchmarks.farming.plan import open_hosts
from throttle.client import Rates

REQUESTS = 500
ROUNDS = 15
# Nobody waits for this pace, and it is not at its end, either.
FAST = Rates(start=1e6, most=1e7)
FIELDS = {
    "date": "Fri, 20 Nov 2026 12:00:00 GMT",
    "server": "nginx",
    "content-type": "text/html; charset=utf-8",
    "content-length": "5",
    "cache-control": "max-age=60",
    "etag": '"5c-1a2b"',
    "vary": "accept-encoding",
    "x-request-id": "3f1c",
}

Ask = Callable[[], Awaitable[object]]
Client = tuple[Ask, Callable[[], Awaitable[None]]]
"""how it asks, and how it is closed"""


def httpx_like(name: str, url: str, is_throttled: bool) -> Client:
    httpx: Any = importlib.import_module(name)

    class AnswersAtOnce(httpx.AsyncBaseTransport):  # type: ignore[misc]  # which of the two is seen when it runs
        async def handle_async_request(self, request: Any) -> Any:
            return httpx.Response(200, headers=FIELDS, stream=httpx.ByteStream(b"hello"))

    transport = AnswersAtOnce()
    if is_throttled:
        ours = importlib.import_module(f"throttle.client.{name}")
        transport = ours.AsyncThrottledTransport(rates=FAST, transport=AnswersAtOnce)
    client = httpx.AsyncClient(transport=transport)
    return partial(client.get, "http://www.example.org/"), client.aclose


def aiohttp_(url: str, is_throttled: bool) -> Client:
    import aiohttp

    from throttle.client.aiohttp import throttle_middleware

    session = aiohttp.ClientSession(middlewares=[throttle_middleware(rates=FAST)] if is_throttled else [])

    async def ask() -> None:
        async with session.get(url) as answer:
            await answer.read()

    return ask, session.close


SUBJECTS: dict[str, Callable[[str, bool], Client]] = {
    "httpx": partial(httpx_like, "httpx"),
    "httpx2": partial(httpx_like, "httpx2"),
    "aiohttp": aiohttp_,
}


async def round_(ask: Ask) -> float:
    gc.collect()
    started = time.process_time()
    for _ in range(REQUESTS):
        await ask()
    return (time.process_time() - started) / REQUESTS


async def pairs(bare: Ask, throttled: Ask) -> list[tuple[float, float]]:
    measured = []
    await round_(bare), await round_(throttled)
    for turn in range(ROUNDS):
        if turn % 2:
            first = await round_(bare)
            measured.append((first, await round_(throttled)))
        else:
            second = await round_(throttled)
            measured.append((await round_(bare), second))
    return measured


async def measure(url: str) -> None:
    for name, subject in SUBJECTS.items():
        (bare, close_bare), (throttled, close_throttled) = subject(url, False), subject(url, True)
        measured = await pairs(bare, throttled)
        await close_bare()
        await close_throttled()
        differences = sorted(after - before for before, after in measured)
        fastest = min(after for _, after in measured) - min(before for before, _ in measured)
        print(
            f"{name:8} bare {1e6 * median(before for before, _ in measured):6.1f} µs,"
            f" added {1e6 * median(differences):5.1f} µs"
            f" (quarters {1e6 * differences[ROUNDS // 4]:.1f} and {1e6 * differences[-ROUNDS // 4]:.1f};"
            f" of the fastest rounds {1e6 * fastest:.1f})"
        )


def main() -> None:
    with farm(open_hosts(1)) as hosts:
        asyncio.run(measure(hosts.urls[0]))


if __name__ == "__main__":
    main()
