"""The flow under httpx and httpx2: all of both, but for the classes that each library wants to see.

`httpx.py` and `httpx2.py` join what is here to their library. Waiting is done above the connection pools, so it
counts against no time-out of the client's, and a pool has a connection for whoever gets to it.
"""

import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from types import ModuleType
from typing import Any, ClassVar, Unpack

from throttle.client.answer import Answer, Failure
from throttle.client.driver import AsyncBell, Bell, drive, drive_async
from throttle.client.exchange import HostRests, HostStopped, Refused, exchange
from throttle.client.host import Host, HostStats, Place
from throttle.client.hosts import Hosts
from throttle.client.pools import Origin, Pool, Pools
from throttle.client.proxies import EnvironmentProxies
from throttle.client.settings import SETTINGS, Settings, table_of_hosts
from throttle.client.soft_block import PROBLEM_LENGTH_MAX
from throttle.client.told import answer_told, is_problem

POOLS_MAX = 500  # idle ones; each may keep a socket, and a process may have 1,024 by default
KEEPALIVE_SECONDS = 5.0  # httpx's own


class Options(Settings, total=False):
    """Beside the settings, what httpx's own transports take; see there. `limits` count per origin."""

    verify: Any
    cert: Any
    trust_env: bool
    http1: bool
    http2: bool
    limits: Any
    proxy: Any
    uds: str | None
    local_address: str | None
    socket_options: Iterable[Any] | None


class Library:
    """httpx or httpx2: what is used of it here, and our errors as its own."""

    def __init__(self, module: ModuleType) -> None:
        httpx: Any = module
        self.httpx = httpx
        self.async_body = type("AsyncBody", (AsyncBody, httpx.AsyncByteStream), {})
        self.body = type("Body", (Body, httpx.SyncByteStream), {})
        self.errors: dict[type[Refused], Any] = {
            error: type(error.__name__, (error, httpx.TransportError), {"__doc__": error.__doc__})
            for error in (HostRests, HostStopped)
        }
        self.timeouts = (httpx.ConnectTimeout, httpx.ReadTimeout, httpx.WriteTimeout)
        # A full pool, a proxy's error, and what we did wrong ourselves say nothing of the host.
        self.failures = (*self.timeouts, httpx.NetworkError, httpx.RemoteProtocolError)

    def own(self, refused: Refused) -> Exception:
        error: Exception = self.errors[type(refused)](*refused.told)
        return error


class _InnerTransports:
    """Makes the library's own transport for an origin, with the caller's options."""

    def __init__(self, library: Library, transport: Callable[..., Any], options: dict[str, Any]) -> None:
        self._httpx = library.httpx
        self._transport = transport
        self._verify = {name: options.pop(name) for name in ("verify", "cert", "trust_env") if name in options}
        self._ssl_context: Any = None
        self._options = options
        is_told = "proxy" in options or not self._verify.get("trust_env", True)
        self._environment = None if is_told else EnvironmentProxies()
        # Slots are the limit; the library's own 100 would queue what a host bears beyond it.
        options.setdefault("limits", self._httpx.Limits(max_connections=None, max_keepalive_connections=20))

    def __call__(self, origin: Origin) -> Any:
        if self._ssl_context is None:  # 20 ms, so once for all pools
            self._ssl_context = self._httpx.create_ssl_context(**self._verify)
        options = self._options
        if self._environment is not None:
            options = options | {"proxy": self._environment.proxy(origin[0], origin[1].decode("ascii"))}
        return self._transport(verify=self._ssl_context, **options)


class BothTransports:
    """What the asynchronous and the blocking one share: how they are made, and what they tell."""

    library: ClassVar[Library]
    inner: ClassVar[str]

    def __init__(
        self,
        hosts: Hosts | None = None,
        *,
        transport: Callable[[], Any] | None = None,
        pools_max: int = POOLS_MAX,
        clock: Callable[[], float] = time.monotonic,
        **options: Unpack[Options],
    ) -> None:
        unknown = options.keys() - Options.__annotations__.keys()
        if unknown:
            raise TypeError(f"unknown: {', '.join(sorted(unknown))}; known are {', '.join(Options.__annotations__)}")
        inner: dict[str, Any] = {name: value for name, value in options.items() if name not in SETTINGS}
        settings: Any = {name: value for name, value in options.items() if name in SETTINGS}
        if transport is not None and inner:
            raise TypeError(f"{', '.join(sorted(inner))}: give these to what `transport` makes, it makes every pool")
        limits = inner.get("limits")
        self.hosts = table_of_hosts(hosts, settings)
        self.clock = clock
        self.pools: Pools[Any] = Pools(
            (lambda origin: transport())
            if transport is not None
            else _InnerTransports(self.library, getattr(self.library.httpx, self.inner), inner),
            idle_max=pools_max,
            idle_seconds=KEEPALIVE_SECONDS if limits is None else limits.keepalive_expiry or float("inf"),
        )

    def stats(self) -> dict[str, HostStats]:
        """What is known of each host."""
        return self.hosts.stats(self.clock())


class AsyncTransport(BothTransports):
    """Every request waits for its host's turn; its slot is held until the answer's body is closed.

    One that brings a place with it, `extensions={"throttle.place": (host, place)}`, is sent at once and not again:
    a crawl's frontier has asked the host, and tries again itself, so that no task waits for one host alone.
    """

    inner = "AsyncHTTPTransport"

    async def handle_async_request(self, request: Any) -> Any:
        origin = (request.url.scheme, request.url.netloc)
        now = self.clock()
        host, taken = request.extensions.get("throttle.place") or (None, None)
        if host is None:
            host = self.hosts.host(origin[1].decode("ascii"), now)
        bell, attempt = AsyncBell(), _AsyncAttempt(self, host, origin, request)
        is_replayable = taken is None and _is_replayable(self, request)
        flow = exchange(host, bell.ring, now, method=request.method, is_replayable=is_replayable, place=taken)
        try:
            place = await drive_async(flow, bell, attempt, self.clock)
        except Refused as refused:
            raise self.library.own(refused) from None
        return attempt.kept(place)

    async def aclose(self) -> None:
        """Every pool is closed; what is open in one fails."""
        for transport in self.pools.all():
            await transport.aclose()


class Transport(BothTransports):
    """As `AsyncTransport`, for threads: any number of them."""

    inner = "HTTPTransport"

    def handle_request(self, request: Any) -> Any:
        origin = (request.url.scheme, request.url.netloc)
        now = self.clock()
        with self.hosts.lock:
            host = self.hosts.host(origin[1].decode("ascii"), now)
        bell, attempt = Bell(), _Attempt(self, host, origin, request)
        flow = exchange(host, bell.ring, now, method=request.method, is_replayable=_is_replayable(self, request))
        try:
            place = drive(flow, host, bell, attempt, self.clock)
        except Refused as refused:
            raise self.library.own(refused) from None
        return attempt.kept(place)

    def close(self) -> None:
        """Every pool is closed; what is open in one fails."""
        for transport in self.pools.all():
            transport.close()


def _is_replayable(transport: BothTransports, request: Any) -> bool:
    """Bytes can be sent again; what a generator gave is gone."""
    return isinstance(request.stream, transport.library.httpx.ByteStream)


class _BothAttempts:
    """A request, and the response or the error that its last sending brought."""

    __slots__ = ("_host", "_origin", "_owner", "_request", "error", "response")

    def __init__(self, owner: Any, host: Host, origin: Origin, request: Any) -> None:
        self._owner = owner
        self._host = host
        self._origin = origin
        self._request = request
        self.response: Any = None
        self.error: Exception | None = None

    def _failed(self, error: Exception) -> Answer:
        self.error = error
        timeouts = self._owner.library.timeouts
        return Answer(self._owner.clock(), Failure.TIMEOUT if isinstance(error, timeouts) else Failure.CONNECT)

    def _answer(self) -> Answer:
        response = self.response
        is_whole = self._host.politeness.is_block is not None
        return answer_told(self._owner.clock(), response.status_code, response.headers.raw, is_whole=is_whole)

    def kept(self, place: Place) -> Any:
        """The response, whose body holds the place until it is closed; or the error is raised."""
        if self.error is not None:
            with self._host.lock:
                self._host.release(place)
            raise self.error
        self.response.stream.place = place
        return self.response


class _AsyncAttempt(_BothAttempts):
    __slots__ = ()

    async def send(self) -> Answer:
        owner: AsyncTransport = self._owner
        for surplus in owner.pools.surplus(owner.clock()):
            with contextlib.suppress(Exception):  # no concern of this request
                await surplus.aclose()
        pool = owner.pools.take(self._origin)
        try:
            self.response = await pool.transport.handle_async_request(self._request)
        except BaseException as error:
            owner.pools.give_back(pool, owner.clock())
            if isinstance(error, owner.library.failures):
                return self._failed(error)
            raise
        self.response.stream = body = owner.library.async_body(self.response.stream, self._host, owner, pool)
        answer = self._answer()
        if is_problem(answer):
            try:
                answer.body = await body.peek(PROBLEM_LENGTH_MAX)
            except BaseException as error:
                await body.aclose()
                if isinstance(error, owner.library.failures):
                    return self._failed(error)
                raise
        return answer

    async def discard(self) -> None:
        if self.error is None:
            await self.response.stream.aclose()
        self.response = self.error = None


class _Attempt(_BothAttempts):
    __slots__ = ()

    def send(self) -> Answer:
        owner: Transport = self._owner
        for surplus in owner.pools.surplus(owner.clock()):
            with contextlib.suppress(Exception):  # no concern of this request
                surplus.close()
        pool = owner.pools.take(self._origin)
        try:
            self.response = pool.transport.handle_request(self._request)
        except BaseException as error:
            owner.pools.give_back(pool, owner.clock())
            if isinstance(error, owner.library.failures):
                return self._failed(error)
            raise
        self.response.stream = body = owner.library.body(self.response.stream, self._host, owner, pool)
        answer = self._answer()
        if is_problem(answer):
            try:
                answer.body = body.peek(PROBLEM_LENGTH_MAX)
            except BaseException as error:
                body.close()
                if isinstance(error, owner.library.failures):
                    return self._failed(error)
                raise
        return answer

    def discard(self) -> None:
        if self.error is None:
            self.response.stream.close()
        self.response = self.error = None


class _BothBodies:
    """The library's own body; when it is closed, connection and slot are given back, in this order."""

    def __init__(self, stream: Any, host: Host, owner: BothTransports, pool: Pool[Any]) -> None:
        self.place: Place | None = None  # known when the exchange is done
        self._stream = stream
        self._host = host
        self._owner = owner
        self._pool: Pool[Any] | None = pool
        self._peeked: list[bytes] = []
        self._chunks: Any = None

    def _give_back(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            self._owner.pools.give_back(pool, self._owner.clock())
        place, self.place = self.place, None
        if place is not None:
            with self._host.lock:
                self._host.release(place)


class AsyncBody(_BothBodies):
    async def peek(self, length: int) -> bytes:
        """The first chunks, of `length` bytes or more; they are still to be read."""
        self._chunks = aiter(self._stream)
        async for chunk in self._chunks:
            self._peeked.append(chunk)
            if sum(map(len, self._peeked)) >= length:
                break
        return b"".join(self._peeked)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return aiter(self._stream) if self._chunks is None else self._from_the_start()

    async def _from_the_start(self) -> AsyncIterator[bytes]:
        for chunk in self._peeked:
            yield chunk
        async for chunk in self._chunks:
            yield chunk

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            self._give_back()


class Body(_BothBodies):
    def peek(self, length: int) -> bytes:
        """As `AsyncBody.peek`."""
        self._chunks = iter(self._stream)
        for chunk in self._chunks:
            self._peeked.append(chunk)
            if sum(map(len, self._peeked)) >= length:
                break
        return b"".join(self._peeked)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._stream) if self._chunks is None else self._from_the_start()

    def _from_the_start(self) -> Iterator[bytes]:
        yield from self._peeked
        yield from self._chunks

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            self._give_back()
