"""One crawl of the farm, in a process of its own, so that its memory and CPU are its own.

Reads a line of JSON and writes one with what came of it. Of what it reads all but `urls` may be left out:

urls            a file, one URL a line; `count` of them
rates           {address: requests a second it is known to bear}
open            no host has a limit: any pace is right
robots          robots.txt is obeyed
stop_after      so many results, once all URLs are read; none is kept
results         a file for a line [URL, status or problem] of each
loop            "asyncio", rather than uvloop
bare            httpx2 alone, 64 tasks and a transport for each host
"""

import asyncio
import json
import sys
import time
from array import array
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from random import Random
from typing import Any, TextIO

import httpx2
import uvloop

from benchmarks.farm import allow_files
from throttle.client import Rates
from throttle.crawl import CrawlJob, CrawlOptions, HostOptions

HEADERS = {"User-Agent": "bare", "Accept": "*/*", "Accept-Encoding": "gzip, deflate"}
FAST = Rates(start=1e6, most=1e7)


def options(told: dict[str, Any]) -> CrawlOptions:
    rates = told.get("rates")
    known = {address: HostOptions(rate=rate) for address, rate in (rates or {}).items()}
    return CrawlOptions(
        robots=bool(told.get("robots")),
        per_host=known,
        rates=FAST if told.get("open") else Rates(),
        timeout=60.0,
    )


async def crawl(told: dict[str, Any]) -> dict[str, Any]:
    kinds: Counter[str] = Counter()
    seen: set[int] = set()
    times = array("d")
    stop_after = told.get("stop_after")
    # Reading some lines at a time takes no longer than the loop can bear.
    with Path(told["urls"]).open() as urls, open_or_none(told.get("results")) as written:  # noqa: ASYNC230
        started, spent = time.perf_counter(), time.process_time()
        lines = (line.strip() for line in urls)
        async with CrawlJob(
            lines, contact="benchmark@example.org", options=options(told), random=Random(told.get("seed", 1))
        ) as job:
            async for result in job:
                kind = str(result.status) if result.problem is None else result.problem.value
                kinds[kind] += 1
                if written is not None:
                    print(json.dumps([result.url, kind]), file=written)
                if stop_after is None:
                    seen.add(result.url_id)
                    times.append(time.perf_counter() - started)
                elif kinds.total() >= stop_after and job.total >= told["count"]:
                    break
            took, spent = time.perf_counter() - started, time.process_time() - spent
            met = {name: one.rate for name, one in job.hosts.learned().items() if one.is_limit}
    return {
        "seconds": took,
        "cpu": spent,
        "results": kinds.total(),
        "repeated": len(times) - len(seen),
        "kinds": dict(kinds),
        "t90": times[len(times) * 9 // 10] if times else None,
        "limits": {name.partition(":")[0]: rate for name, rate in met.items()},
        "peak_mb": peak_mb(),
    }


async def bare(told: dict[str, Any]) -> dict[str, Any]:
    """What the library costs by itself."""
    urls = Path(told["urls"]).read_text().split()  # noqa: ASYNC240  # before anything runs
    limits = httpx2.Limits(max_connections=None)
    context = httpx2.create_ssl_context()
    transports: dict[str, httpx2.AsyncHTTPTransport] = {}
    left = iter(urls)

    async def ask() -> None:
        for url in left:
            request = httpx2.Request("GET", url, headers=HEADERS)
            host = request.url.host
            if host not in transports:
                transports[host] = httpx2.AsyncHTTPTransport(verify=context, limits=limits)
            response = await transports[host].handle_async_request(request)
            async for _ in response.aiter_raw():
                pass
            await response.aclose()

    started, spent = time.perf_counter(), time.process_time()
    await asyncio.gather(*(ask() for _ in range(64)))
    took, spent = time.perf_counter() - started, time.process_time() - spent
    for transport in transports.values():
        await transport.aclose()
    return {"seconds": took, "cpu": spent, "peak_mb": peak_mb()}


def open_or_none(name: str | None) -> AbstractContextManager[TextIO | None]:
    return nullcontext() if name is None else Path(name).open("w")


def peak_mb() -> float:
    """The most memory this process has held at once. (`ru_maxrss` would begin with that of its parent.)"""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__":
    allow_files()
    told = json.loads(sys.stdin.readline())
    run = asyncio.run if told.get("loop") == "asyncio" else uvloop.run  # the command's own
    print(json.dumps(run((bare if told.get("bare") else crawl)(told))))
