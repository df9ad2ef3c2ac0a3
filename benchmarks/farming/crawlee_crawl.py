"""The same job by Crawlee, each host given to its ThrottlingRequestManager if it has one. In the peers' environment.

python crawlee_crawl.py URLS     writes a line of JSON
"""

import asyncio
import json
import logging
import sys
import time
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from crawlee import ConcurrencySettings, Request, service_locator
from crawlee.crawlers import HttpCrawler, HttpCrawlingContext
from crawlee.request_loaders import ThrottlingRequestManager
from crawlee.storage_clients import MemoryStorageClient
from crawlee.storages import RequestQueue


async def main(urls: list[str]) -> dict[str, float]:
    domains = sorted({urlsplit(url).hostname or "" for url in urls})
    service_locator.set_storage_client(MemoryStorageClient())
    manager = ThrottlingRequestManager(
        await RequestQueue.open(), domains=domains, request_manager_opener=RequestQueue.open
    )
    crawler = HttpCrawler(
        request_manager=manager,
        max_request_retries=4,
        request_handler_timeout=timedelta(seconds=60),
        concurrency_settings=ConcurrencySettings(min_concurrency=8, max_concurrency=64, desired_concurrency=64),
        configure_logging=False,
    )
    fine = 0

    @crawler.router.default_handler
    async def handle(context: HttpCrawlingContext) -> None:
        nonlocal fine
        fine += context.http_response.status_code == 200

    started = time.perf_counter()
    await crawler.run([Request.from_url(url) for url in urls])
    return {"seconds": time.perf_counter() - started, "fine": fine}


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    print(json.dumps(asyncio.run(main(Path(sys.argv[1]).read_text().split()))))
