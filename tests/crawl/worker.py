"""A crawl in a process of its own, to be killed: `python worker.py JOB URLS`. It prints each result it tells first."""

import asyncio
import os
import sys
from pathlib import Path

from throttle.client.settings import Rates
from throttle.crawl import CrawlJob, CrawlOptions


async def main(job: str, lines: list[str]) -> None:
    options = CrawlOptions(rates=Rates(start=200.0))
    async with CrawlJob(lines, contact="tests@example.org", job=job, options=options) as crawl:
        async for result in crawl:
            if not result.is_earlier:
                os.write(1, f"{result.url} {result.status}\n".encode())


asyncio.run(main(sys.argv[1], Path(sys.argv[2]).read_text().split()))
