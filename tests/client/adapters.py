"""Every adapter under one face, for the tests that all of them pass."""

import asyncio
import importlib
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import aiohttp

from throttle.client import Hosts, polite_hosts, throttled
from throttle.client.aiohttp import throttle_middleware

Chunks = AsyncIterator[bytes]
# Nothing here is asked over TLS, and each client's own context would take 20 ms.
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Asker(Protocol):
    """A client with a throttle in it; an answer is its status and its body."""

    hosts: Hosts
    client: Any

    async def ask(self, url: str, method: str = "GET", body: bytes | None = None) -> tuple[int, bytes]: ...

    async def upload(self, url: str, pieces: list[bytes]) -> tuple[int, bytes]:
        """A POST whose body is made as it is sent."""

    def streamed(self, url: str) -> AbstractAsyncContextManager[tuple[int, Chunks]]:
        """The body may be left unread."""

    async def close(self) -> None: ...


class HttpxAsker:
    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        httpx: Any = importlib.import_module(name)
        self.transport = importlib.import_module(f"throttle.client.{name}").AsyncThrottledTransport(
            verify=NO_CERTIFICATES, **settings
        )
        self.hosts: Hosts = self.transport.hosts
        self.client = httpx.AsyncClient(transport=self.transport, follow_redirects=True, timeout=20)

    async def ask(self, url: str, method: str = "GET", body: bytes | None = None) -> tuple[int, bytes]:
        response = await self.client.request(method, url, content=body)
        return response.status_code, response.content

    async def upload(self, url: str, pieces: list[bytes]) -> tuple[int, bytes]:
        async def body() -> Chunks:
            for piece in pieces:
                yield piece

        response = await self.client.post(url, content=body())
        return response.status_code, response.content

    @asynccontextmanager
    async def streamed(self, url: str) -> AsyncIterator[tuple[int, Chunks]]:
        async with self.client.stream("GET", url) as response:
            yield response.status_code, response.aiter_bytes()

    async def close(self) -> None:
        await self.client.aclose()


class BlockingHttpxAsker:
    """Each request in a thread."""

    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        httpx: Any = importlib.import_module(name)
        self.transport = importlib.import_module(f"throttle.client.{name}").ThrottledTransport(
            verify=NO_CERTIFICATES, **settings
        )
        self.hosts: Hosts = self.transport.hosts
        self.client = httpx.Client(transport=self.transport, follow_redirects=True, timeout=20)

    async def ask(self, url: str, method: str = "GET", body: bytes | None = None) -> tuple[int, bytes]:
        response = await asyncio.to_thread(self.client.request, method, url, content=body)
        return response.status_code, response.content

    async def upload(self, url: str, pieces: list[bytes]) -> tuple[int, bytes]:
        response = await asyncio.to_thread(self.client.post, url, content=iter(pieces))
        return response.status_code, response.content

    @asynccontextmanager
    async def streamed(self, url: str) -> AsyncIterator[tuple[int, Chunks]]:
        context = self.client.stream("GET", url)
        response = await asyncio.to_thread(context.__enter__)
        try:
            yield response.status_code, _from_thread(response.iter_bytes())
        finally:
            await asyncio.to_thread(context.__exit__, None, None, None)

    async def close(self) -> None:
        await asyncio.to_thread(self.client.close)


async def _from_thread(chunks: Iterator[bytes]) -> Chunks:
    while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
        yield chunk


class AiohttpAsker:
    def __init__(self, _: str, settings: dict[str, Any]) -> None:
        self.middleware = throttle_middleware(**settings)
        self.hosts = self.middleware.hosts
        self.client = aiohttp.ClientSession(
            middlewares=[self.middleware], connector=aiohttp.TCPConnector(limit=0), trust_env=True
        )

    async def ask(self, url: str, method: str = "GET", body: bytes | None = None) -> tuple[int, bytes]:
        async with getattr(self.client, method.lower())(url, data=body) as response:
            return response.status, await response.read()

    async def upload(self, url: str, pieces: list[bytes]) -> tuple[int, bytes]:
        async def body() -> Chunks:
            for piece in pieces:
                yield piece

        async with self.client.post(url, data=body()) as response:
            return response.status, await response.read()

    @asynccontextmanager
    async def streamed(self, url: str) -> AsyncIterator[tuple[int, Chunks]]:
        async with self.client.get(url) as response:
            yield response.status, response.content.iter_any()

    async def close(self) -> None:
        await self.client.close()


class WrappedAsker(AiohttpAsker):
    """A client that knows nothing of the throttle, with `throttled()` in front of it."""

    def __init__(self, _: str, settings: dict[str, Any]) -> None:
        self.hosts = polite_hosts(**settings)
        session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        self.client = throttled(session, _authority, hosts=self.hosts, retried={"get"})


def _authority(url: str, **_: Any) -> str:
    return url.split("/")[2]


@dataclass(frozen=True)
class Kind:
    """How an adapter is made, and what it has."""

    name: str
    make: Callable[[str, dict[str, Any]], Asker]
    module: str
    is_blocking: bool = False
    sees_each_hop: bool = True  # of a redirect; a wrapped client follows them by itself
    sees_bytes: bool = True  # whether a body can be sent again, it finds out by itself

    def open(self, **settings: Any) -> Asker:
        return self.make(self.module, settings)

    @property
    def own_error(self) -> type[Exception]:
        if self.make is WrappedAsker:
            return Exception
        module: Any = importlib.import_module(self.module)
        error: type[Exception] = module.ClientError if self.module == "aiohttp" else module.HTTPError
        return error


KINDS = [
    Kind("httpx", HttpxAsker, "httpx"),
    Kind("httpx blocking", BlockingHttpxAsker, "httpx", is_blocking=True),
    Kind("httpx2", HttpxAsker, "httpx2"),
    Kind("httpx2 blocking", BlockingHttpxAsker, "httpx2", is_blocking=True),
    Kind("aiohttp", AiohttpAsker, "aiohttp"),
    Kind("wrapped", WrappedAsker, "aiohttp", sees_each_hop=False, sees_bytes=False),
]
