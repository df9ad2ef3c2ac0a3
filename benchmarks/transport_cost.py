"""What does the throttle add to a request of each client?

    python -m benchmarks.transport_cost

Microseconds of CPU, the client bare and throttled, none of them waiting for its turn. httpx and httpx2 on an inner
transport that answers at once with eight fields; aiohttp, which has none to put in its place, on a host on loopback.
Both ways run in turn in one process, in many short rounds, each of which begins with requests that do not count: the
other way's have taken the processor's caches. What was made before is out of the collector's sight.
Told are the median of the pairs' differences and of their ratios, and the difference of the fastest rounds, which says
more on a busy machine. Below them the same for the bare client against itself, which is the noise, and with a pace that
computes nothing, which is what the adapter and the host take. The machines alone: benchmarks.client_cost.
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

REQUESTS = 100
WARM = 10
ROUNDS = 150
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


class SteadyPace:
    """Says the same whatever it hears."""

    rate = 1e6
    capacity = 1.0
    catch_up = 0.0
    in_flight_max = 100.0

    def sent(self, now: float, height: int) -> None: ...
    def served(self, now: float, sent_at: float, height: int) -> None: ...


# What a subject is given besides the client: nothing is a bare one.
THROTTLED: dict[str, Any] = {"rates": FAST}
STEADY: dict[str, Any] = {"pace": lambda rates: SteadyPace()}
LABELS: dict[str, dict[str, Any]] = {"throttled": THROTTLED, "with a steady pace": STEADY, "bare again (noise)": {}}


def httpx_like(name: str, url: str, settings: dict[str, Any]) -> Client:
    httpx: Any = importlib.import_module(name)

    class AnswersAtOnce(httpx.AsyncBaseTransport):  # type: ignore[misc]  # which of the two is seen when it runs
        async def handle_async_request(self, request: Any) -> Any:
            return httpx.Response(200, headers=FIELDS, stream=httpx.ByteStream(b"hello"))

    transport = AnswersAtOnce()
    if settings:
        ours = importlib.import_module(f"throttle.client.{name}")
        transport = ours.AsyncThrottledTransport(transport=AnswersAtOnce, **settings)
    client = httpx.AsyncClient(transport=transport)
    return partial(client.get, "http://www.example.org/"), client.aclose


def aiohttp_(url: str, settings: dict[str, Any]) -> Client:
    import aiohttp

    from throttle.client.aiohttp import throttle_middleware

    session = aiohttp.ClientSession(middlewares=[throttle_middleware(**settings)] if settings else [])

    async def ask() -> None:
        async with session.get(url) as answer:
            await answer.read()

    return ask, session.close


SUBJECTS: dict[str, Callable[[str, dict[str, Any]], Client]] = {
    "httpx": partial(httpx_like, "httpx"),
    "httpx2": partial(httpx_like, "httpx2"),
    "aiohttp": aiohttp_,
}


async def round_(ask: Ask) -> float:
    for _ in range(WARM):
        await ask()
    started = time.process_time()
    for _ in range(REQUESTS):
        await ask()
    return (time.process_time() - started) / REQUESTS


async def pairs(bare: Ask, throttled: Ask) -> list[tuple[float, float]]:
    measured = []
    await round_(bare), await round_(throttled)
    gc.collect()
    gc.freeze()
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
        for label, settings in LABELS.items():
            (bare, close_bare), (other, close_other) = subject(url, {}), subject(url, settings)
            tell(f"{name:8}{label:20}", await pairs(bare, other))
            await close_bare()
            await close_other()


def tell(label: str, measured: list[tuple[float, float]]) -> None:
    differences = sorted(after - before for before, after in measured)
    fastest = min(after for _, after in measured) - min(before for before, _ in measured)
    print(
        f"{label} bare {1e6 * median(before for before, _ in measured):6.1f} µs,"
        f" added {1e6 * median(differences):5.1f} µs (× {median(after / before for before, after in measured):.2f};"
        f" quarters {1e6 * differences[ROUNDS // 4]:.1f} and {1e6 * differences[-ROUNDS // 4]:.1f};"
        f" of the fastest rounds {1e6 * fastest:.1f})"
    )


def main() -> None:
    with farm(open_hosts(1)) as hosts:
        asyncio.run(measure(hosts.urls[0]))


if __name__ == "__main__":
    main()
