"""A site with a hidden token bucket, on loopback: it notes when each request arrived, whose it was, and its fate."""

import asyncio
import math
from dataclasses import dataclass

BODY = b"page"


@dataclass(frozen=True, slots=True)
class Hit:
    at: float
    worker: str
    served: bool


class Site:
    """`rate` a second with `burst` tokens; a page takes `service` seconds. `async with` serves it on a free port."""

    def __init__(self, rate: float, burst: float, service: float = 0.02) -> None:
        self.rate = rate
        self.burst = burst
        self.service = service
        self.hits: list[Hit] = []
        self.port = 0
        self._level = burst
        self._updated = 0.0
        self._workers: set[str] = set()
        self._came = asyncio.Event()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> "Site":
        self._updated = asyncio.get_running_loop().time()
        self._server = await asyncio.get_running_loop().create_server(lambda: _Connection(self), "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def all_have_come(self, workers: int) -> None:
        while len(self._workers) < workers:
            self._came.clear()
            await self._came.wait()

    def answer(self, worker: str) -> bytes:
        now = asyncio.get_running_loop().time()
        self._level = min(self.burst, self._level + self.rate * (now - self._updated))
        self._updated = now
        served = self._level >= 1
        self._level -= served
        if worker not in self._workers:
            self._workers.add(worker)
            self._came.set()
        self.hits.append(Hit(now, worker, served))
        if served:
            return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
        wait = max(1, math.ceil((1 - self._level) / self.rate))
        return b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: %d\r\nContent-Length: 0\r\n\r\n" % wait


class _Connection(asyncio.Protocol):
    def __init__(self, site: Site) -> None:
        self._site = site
        self._read = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *heads, self._read = (self._read + data).split(b"\r\n\r\n")
        for head in heads:
            fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])
            answer = self._site.answer(fields.get(b"x-worker", b"").decode())
            delay = self._site.service if b" 200 " in answer[:20] else 0.0
            asyncio.get_running_loop().call_later(delay, self._transport.write, answer)
