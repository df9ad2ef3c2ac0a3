"""What does a pool per origin save over one pool for all?

    python -m benchmarks.pool_per_host [HOSTS]

64 tasks ask 1,000 hosts (or so many) on loopback in turn, each twice: the bare client with its one pool, which keeps
20 connections; the same with one pool that keeps all, as a crawler wants; and the throttled client with a pool for
each origin, which keep theirs. Requests a second, and CPU of the client a request, of the second round.
"""

import asyncio
import importlib
import sys
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.farm import allow_files, farm
from benchmarks.farming.plan import open_hosts
from throttle.client import Rates

TASKS = 64
FAST = Rates(start=1e6, most=1e7)


def subjects(name: str, hosts: int) -> Iterator[tuple[str, Any]]:
    httpx: Any = importlib.import_module(name)
    ours = importlib.import_module(f"throttle.client.{name}")
    # As long as a round takes on a slow machine.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=300)
    yield "bare, one pool", httpx.AsyncHTTPTransport()
    yield "bare, one pool that keeps all", httpx.AsyncHTTPTransport(limits=limits)
    yield "throttled, a pool per origin", ours.AsyncThrottledTransport(rates=FAST, pools_max=hosts, limits=limits)


async def ask_all(client: Any, urls: list[str]) -> None:
    left = iter(urls)

    async def worker() -> None:
        for url in left:
            answer = await client.get(url)
            assert answer.status_code == 200

    await asyncio.gather(*(worker() for _ in range(TASKS)))


async def measure(name: str, urls: list[str]) -> None:
    httpx: Any = importlib.import_module(name)
    for label, transport in subjects(name, len(urls)):
        async with httpx.AsyncClient(transport=transport, timeout=120, trust_env=False) as client:
            await ask_all(client, urls)
            started, spent = time.perf_counter(), time.process_time()
            await ask_all(client, urls)
            took, spent = time.perf_counter() - started, time.process_time() - spent
        print(
            f"{name:7} {label:30} {len(urls) / took:7.0f} a second, {1e3 * spent / len(urls):6.2f} ms of CPU a request"
        )


def main() -> None:
    allow_files()
    with farm(open_hosts(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)) as hosts:
        for name in ("httpx", "httpx2"):
            asyncio.run(measure(name, hosts.urls))


if __name__ == "__main__":
    main()
