"""One origin's connections, for a crawl: HTTP/1.1 by h11, over the event loop's own sockets.

In place of the library's own transport, of which a crawl needs little: it has a place for each request, so no pool has
to make anybody wait, and it asks through no proxy. A request costs a third of the CPU so.
Requests, answers and errors are the library's, httpx2's or httpx's, so the throttled transport sees no difference.
"""

import asyncio
from collections.abc import AsyncIterator
from ssl import SSLContext
from typing import Any

import h11

from throttle.client.proxies import EnvironmentProxies
from throttle.crawl.stream import Stream, connected

HEAD_MAX = 100 * 1024
"""bytes of status and fields; httpcore's own"""
BODILESS = frozenset({"GET", "HEAD"})
IDLE_SECONDS = 5.0
"""a connection that was not used for longer is not used again: the server may be about to close it"""


def is_direct() -> bool:
    """Whether nothing in the environment names a proxy; else the library's own transport asks through that."""
    proxies = EnvironmentProxies()
    return proxies.proxy("http", "") is None and proxies.proxy("https", "") is None


class DirectTransports:
    """Makes the transport of an origin; `httpx` is the library."""

    def __init__(self, httpx: Any) -> None:
        self._httpx = httpx
        self._tls: SSLContext | None = None

    def __call__(self) -> "DirectTransport":
        return DirectTransport(self._httpx, self.tls)

    def tls(self) -> SSLContext:
        if self._tls is None:  # 20 ms, so once, and not for plain http
            context: SSLContext = self._httpx.create_ssl_context()
            context.set_alpn_protocols(["http/1.1"])
            self._tls = context
        return self._tls


class DirectTransport:
    """As `AsyncHTTPTransport` for one origin, with as many connections as there are requests open."""

    def __init__(self, httpx: Any, tls: Any) -> None:
        self._httpx = httpx
        self._tls = tls
        self._idle: list[_Connection] = []  # the longest idle first
        self._open: set[_Connection] = set()

    async def handle_async_request(self, request: Any) -> Any:
        httpx = self._httpx
        timeout = request.extensions.get("timeout") or {}
        connection = self._take() or await self._connect(request.url, timeout.get("connect"))
        try:
            answer = await connection.send(request, timeout.get("read"))
        except BaseException as error:
            self._drop(connection)
            self.raise_named(error)
            raise
        return httpx.Response(answer.status_code, headers=answer.headers.raw_items(), stream=_Body(self, connection))

    async def _connect(self, url: Any, seconds: float | None) -> "_Connection":
        is_tls = url.scheme == "https"
        try:
            async with asyncio.timeout(seconds):
                stream = await connected(
                    url.raw_host.decode("ascii"), url.port or (443 if is_tls else 80), self._tls() if is_tls else None
                )
        except TimeoutError as error:
            raise self._httpx.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise self._httpx.ConnectError(str(error)) from error
        connection = _Connection(stream)
        self._open.add(connection)
        return connection

    def _take(self) -> "_Connection | None":
        """The one that was idle for the shortest time."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable():
                return connection
            self._drop(connection)
        return None

    def give_back(self, connection: "_Connection") -> None:
        if connection.finish():
            self._idle.append(connection)
        else:
            self._drop(connection)

    def _drop(self, connection: "_Connection") -> None:
        self._open.discard(connection)
        connection.stream.close()

    def raise_named(self, error: BaseException) -> None:
        """As the library would have raised it; what it has no name for is not raised here."""
        httpx = self._httpx
        match error:
            case TimeoutError():
                raise httpx.ReadTimeout(str(error)) from error
            case OSError():
                raise httpx.ReadError(str(error)) from error
            case h11.RemoteProtocolError():
                raise httpx.RemoteProtocolError(str(error)) from error
            case h11.LocalProtocolError():
                raise httpx.LocalProtocolError(str(error)) from error

    async def aclose(self) -> None:
        self._idle.clear()
        for connection in list(self._open):
            self._drop(connection)


class _Connection:
    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_MAX)
        self._idle_since = 0.0
        self._patience: float | None = None

    async def send(self, request: Any, patience: float | None) -> h11.Response:
        method, http = request.method, self._http
        data = http.send(h11.Request(method=method, target=request.url.raw_path, headers=request.headers.raw)) or b""
        if method not in BODILESS:
            async for chunk in request.stream:
                data += http.send(h11.Data(chunk)) or b""
        data += http.send(h11.EndOfMessage()) or b""
        self.stream.write(data)
        self._patience = patience
        while True:
            event = await self.next_event()
            if isinstance(event, h11.Response):
                return event
            if isinstance(event, h11.ConnectionClosed):
                raise h11.RemoteProtocolError("the server has closed the connection without an answer")

    async def next_event(self) -> Any:
        http = self._http
        while (event := http.next_event()) is h11.NEED_DATA:
            http.receive_data(await self.stream.read(self._patience))
        return event

    def finish(self) -> bool:
        """True if another request may be sent on it."""
        http = self._http
        if not (http.our_state is h11.DONE and http.their_state is h11.DONE):
            return False
        http.start_next_cycle()
        self._idle_since = asyncio.get_running_loop().time()
        return True

    def is_usable(self) -> bool:
        return self.stream.is_silent and asyncio.get_running_loop().time() - self._idle_since < IDLE_SECONDS


class _Body:
    """Its closing gives the connection back."""

    def __init__(self, transport: DirectTransport, connection: _Connection) -> None:
        self._transport = transport
        self._connection: _Connection | None = connection

    async def __aiter__(self) -> AsyncIterator[bytes]:
        connection = self._connection
        while connection is not None:
            try:
                event = await connection.next_event()
            except Exception as error:
                self._transport.raise_named(error)
                raise
            if not isinstance(event, h11.Data):
                return
            yield bytes(event.data)

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._transport.give_back(connection)
