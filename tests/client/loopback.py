"""A site on loopback for the adapters' tests, in a thread of its own, so that blocking clients meet it, too.

It writes down what it was asked and when, and answers by path:

    /hello       200, at once                       /echo        200, the body that was sent
    /times/N/S   N times the status S, then 200     /redirect    302 to the query
    /held        200 and a first piece; the rest when `let_go()` was called
    /reset/N     N times it hangs up, then 200      /block       429 with the problem that is a block
    /stream/N    N pieces of 1,000 bytes            /silent      nothing, until it closes
"""

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

PIECE = b"x" * 1000
PROBLEM = b'{"type": "https://iana.org/assignments/http-problem-types#abnormal-usage-detected"}'


@dataclass
class Asked:
    at: float
    method: str
    target: str  # with scheme and authority when it was asked as a proxy
    fields: dict[str, str]
    body: bytes


class Site:
    """`retry_after` is told with each 429 and 503."""

    def __init__(self, retry_after: str | None = None) -> None:
        self.asked: list[Asked] = []
        self.open = 0
        self.open_most = 0
        self.connections = 0
        self.retry_after = retry_after
        self._counts: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._is_up = threading.Event()
        self.port = 0
        self._thread.start()
        assert self._is_up.wait(20)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.port}"

    def paths(self) -> list[str]:
        return [asked.target for asked in list(self.asked)]

    def let_go(self) -> None:
        self._loop.call_soon_threadsafe(self._go.set)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(20)

    # -- in its thread

    def _run(self) -> None:
        asyncio.run(self._serve_until_the_end())

    async def _serve_until_the_end(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._go, self._end = asyncio.Event(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._is_up.set()
        await self._end.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # what was closed is told so

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                while await self._serve(reader, writer):
                    pass
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
        method, target, _ = head[0].split(" ")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        self.open += 1
        self.open_most = max(self.open_most, self.open)
        try:
            body = await _body(reader, fields)
            self.asked.append(Asked(time.monotonic(), method, target, fields, body))
            return await self._answer(target, body, writer)
        finally:
            self.open -= 1

    async def _answer(self, target: str, body: bytes, writer: asyncio.StreamWriter) -> bool:
        split = urlsplit(target)
        match split.path.split("/")[1:]:
            case ["times", count, status] if self._is_among_first(target, int(count)):
                told = "" if self.retry_after is None else f"Retry-After: {self.retry_after}\r\n"
                writer.write(_head(int(status), 5, told) + b"later")
            case ["reset", count] if self._is_among_first(target, int(count)):
                return False
            case ["echo"]:
                writer.write(_head(200, len(body)) + body)
            case ["redirect"]:
                writer.write(_head(302, 0, f"Location: {split.query}\r\n"))
            case ["held"]:
                writer.write(_head(200, 10) + b"first")
                await writer.drain()
                await self._go.wait()
                writer.write(b"-last")
            case ["stream", count]:
                writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                for _ in range(int(count)):
                    writer.write(b"%x\r\n%b\r\n" % (len(PIECE), PIECE))
                    await writer.drain()
                writer.write(b"0\r\n\r\n")
            case ["block"]:
                writer.write(_head(429, len(PROBLEM), "Content-Type: application/problem+json\r\n") + PROBLEM)
            case ["silent"]:
                await self._go.wait()
                return False
            case _:
                writer.write(_head(200, 5) + b"hello")
        await writer.drain()
        return True

    def _is_among_first(self, target: str, count: int) -> bool:
        self._counts[target] += 1
        return self._counts[target] <= count


def _head(status: int, length: int, fields: str = "") -> bytes:
    return f"HTTP/1.1 {status} So\r\nContent-Length: {length}\r\n{fields}\r\n".encode()


async def _body(reader: asyncio.StreamReader, fields: dict[str, str]) -> bytes:
    if fields.get("transfer-encoding") != "chunked":
        return await reader.readexactly(int(fields.get("content-length", "0")))
    pieces = []
    while size := int(await reader.readuntil(b"\r\n"), 16):
        pieces.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readexactly(2)
    return b"".join(pieces)


@contextlib.contextmanager
def site(retry_after: str | None = None) -> Iterator[Site]:
    """A site that is gone afterwards."""
    opened = Site(retry_after)
    try:
        yield opened
    finally:
        opened.close()
