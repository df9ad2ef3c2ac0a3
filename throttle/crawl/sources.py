"""Where a crawl's URLs come from: the command line, lists in files or on standard input, sitemaps."""

import asyncio
import importlib
import sys
import threading
from collections.abc import AsyncIterator, Iterable
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from throttle.client.hosts import Hosts
from throttle.crawl.fetch import client_library
from throttle.crawl.sitemap import BYTES_MAX, DEPTH_MAX, NoSitemapError, sitemap
from throttle.crawl.url_list import ListError, lines
from throttle.crawl.web_url import NotFetchableError, web_url

CHUNK = 1000
SITEMAP_SECONDS = 60.0


def is_url(source: str) -> bool:
    return "://" in source or source.startswith("mailto:")


async def lines_of(name: str) -> AsyncIterator[str]:
    """The lines of a file, or of standard input for `-`, read beside the event loop. Raises ListError."""
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[list[str] | Exception | None] = asyncio.Queue(2)

    def read() -> None:
        def put(chunk: list[str] | Exception | None) -> None:
            asyncio.run_coroutine_threadsafe(chunks.put(chunk), loop).result()

        try:
            with ExitStack() as stack:
                stream: Any = _standard_input() if name == "-" else stack.enter_context(Path(name).open("rb"))
                found = lines(stream, "standard input" if name == "-" else name)
                while chunk := list(islice(found, CHUNK)):
                    put(chunk)
            put(None)
        except (ListError, OSError) as error:
            put(error if isinstance(error, ListError) else ListError(f"{name}: {error.strerror}"))
        except (RuntimeError, asyncio.CancelledError):
            pass  # the loop has ended meanwhile

    # A daemon, since a read of standard input cannot be interrupted.
    threading.Thread(target=read, daemon=True, name="crawl-list").start()
    while (chunk := await chunks.get()) is not None:
        if isinstance(chunk, Exception):
            raise chunk
        for line in chunk:
            yield line


def _standard_input() -> BinaryIO:
    """With a buffer of its own: where a read still waits at the end, Python would abort over the lock of stdin's."""
    return open(sys.stdin.fileno(), "rb", closefd=False)


class Sitemaps:
    """Reads sitemaps politely, through the hosts of a crawl. `notes` say what could not be read."""

    def __init__(self, hosts: Hosts, user_agent: str) -> None:
        self._httpx: Any = importlib.import_module(client_library())
        throttled = importlib.import_module(f"throttle.client.{client_library()}").AsyncThrottledTransport
        self._client = self._httpx.AsyncClient(
            transport=throttled(hosts),
            headers={"User-Agent": user_agent},
            follow_redirects=True,
            timeout=SITEMAP_SECONDS,
        )
        self.notes: list[str] = []

    async def pages(self, where: Iterable[str]) -> AsyncIterator[str]:
        """Every page they name, and the sitemaps that these name."""
        seen = set()
        async with self._client:
            left = [(name, 0) for name in where]
            while left:
                name, depth = left.pop(0)
                if name in seen:
                    continue
                seen.add(name)
                try:
                    data = await self._read(name, is_given=depth == 0)
                    pages, further = await asyncio.to_thread(sitemap, data)
                except (NoSitemapError, NotFetchableError, OSError, self._httpx.HTTPError) as error:
                    self.notes.append(f"sitemap {name}: {error}")
                    continue
                for page in pages:
                    yield page
                if further and depth >= DEPTH_MAX:
                    self.notes.append(f"sitemap {name}: an index more than {DEPTH_MAX} deep is not read")
                else:
                    left += [(one, depth + 1) for one in further]

    async def _read(self, name: str, *, is_given: bool) -> bytes:
        if is_given and not is_url(name):
            return await asyncio.to_thread(Path(name).read_bytes)
        data = b""
        async with asyncio.timeout(10 * SITEMAP_SECONDS), self._client.stream("GET", web_url(name).url) as response:
            if response.status_code != 200:
                raise NoSitemapError(f"answered {response.status_code}")
            async for chunk in response.aiter_bytes():
                data += chunk
                if len(data) > BYTES_MAX:
                    break
        return data
