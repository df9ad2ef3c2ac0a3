"""What does the throttle add to a request, and what does a pool per host save?

    python -m benchmarks.transport_cost

First, microseconds that the adapters add to one request: each client bare and throttled, on the same inner transport
that answers at once (httpx, httpx2) or behind a middleware that does (aiohttp), none of them waiting for its turn.
Rounds are taken in turn, medians of the differences of each pair.
"""

import asyncio
import gc
import importlib
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any

from throttle.client import Rates

REQUESTS = 1_000
ROUNDS = 21
URL = "http://www.example.org/"
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


def httpx_like(name: str, is_throttled: bool) -> tuple[Ask, Callable[[], Awaitable[None]]]:
    httpx: Any = importlib.import_module(name)

    def answer(request: Any) -> Any:
        return httpx.Response(200, headers=FIELDS, stream=httpx.ByteStream(b"hello"))

    transport = httpx.MockTransport(answer)
    if is_throttled:
        ours = importlib.import_module(f"throttle.client.{name}")
        transport = ours.AsyncThrottledTransport(rates=FAST, transport=lambda: httpx.MockTransport(answer))
    client = httpx.AsyncClient(transport=transport)
    return lambda: client.get(URL), client.aclose


SUBJECTS = {name: (lambda is_throttled, name=name: httpx_like(name, is_throttled)) for name in ("httpx", "httpx2")}


async def round_(ask: Ask) -> float:
    gc.collect()
    started = time.process_time()
    for _ in range(REQUESTS):
        await ask()
    return (time.process_time() - started) / REQUESTS


async def added() -> None:
    for name, subject in SUBJECTS.items():
        bare, close_bare = subject(False)
        throttled, close_throttled = subject(True)
        pairs = []
        await round_(bare), await round_(throttled)
        for turn in range(ROUNDS):
            if turn % 2:
                first = await round_(bare)
                pairs.append((first, await round_(throttled)))
            else:
                second = await round_(throttled)
                pairs.append((await round_(bare), second))
        await close_bare()
        await close_throttled()
        differences = [after - before for before, after in pairs]
        bare_time = median(before for before, _ in pairs)
        print(
            f"{name:8} bare {1e6 * bare_time:6.1f} µs, added {1e6 * median(differences):5.1f} µs"
            f"  (least {1e6 * min(differences):.1f}, most {1e6 * max(differences):.1f})"
        )


def main() -> None:
    asyncio.run(added())


if __name__ == "__main__":
    main()
