"""One crawling process: tasks that always want one more page, until its standard input ends."""

import argparse
import asyncio
import contextlib
import sys

import httpx2

from throttle.client.fleet.redis_fleet import RedisFleet
from throttle.client.httpx2 import AsyncThrottledTransport


async def crawl(url: str, shared: str, name: str, tasks: int) -> None:
    fleet = RedisFleet(shared) if shared else None
    transport = AsyncThrottledTransport() if fleet is None else AsyncThrottledTransport(shared=fleet)
    async with httpx2.AsyncClient(transport=transport, headers={"x-worker": name}) as client:

        async def task() -> None:
            while True:
                with contextlib.suppress(httpx2.HTTPError):
                    await client.get(url)

        running = [asyncio.create_task(task()) for _ in range(tasks)]
        await asyncio.to_thread(sys.stdin.read)
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    if fleet is not None:
        fleet.close()
    print(fleet.calls if fleet is not None else 0, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--shared", default="", help="URL of the ledger's server; without it the process is alone")
    parser.add_argument("--name", default="worker")
    parser.add_argument("--tasks", type=int, default=16)
    arguments = parser.parse_args()
    asyncio.run(crawl(arguments.url, arguments.shared, arguments.name, arguments.tasks))


if __name__ == "__main__":
    main()
