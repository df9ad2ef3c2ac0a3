"""The flow under httpx and httpx2: all of both, but for the classes that each library wants to see.

`httpx.py` and `httpx2.py` join what is here to their library. Waiting is done above the connection pools, so it
counts against no time-out of the client's, and a pool has a connection for whoever gets to it. A request that need not
wait and whose answer tells nothing goes straight through; each other one becomes an attempt (`httpx_attempt`).
"""

import contextlib
import time
from collections.abc import Callable, Iterable
from threading import Thread
from typing import Any, ClassVar, Unpack

from throttle.client.driver import drive, drive_async
from throttle.client.exchange import Refused
from throttle.client.host import Host, HostStats, Place
from throttle.client.hosts import Hosts
from throttle.client.httpx_attempt import AsyncHttpxAttempt, HttpxAttempt, Library
from throttle.client.pools import Origin, Pools
from throttle.client.proxies import EnvironmentProxies
from throttle.client.settings import SETTINGS, Settings, capped, given_or_new
from throttle.client.told import tells_nothing

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
        """Without arguments it finds each host's pace by itself.

        hosts      a table shared with other clients (`polite_hosts`); else one is made of the settings among
                   `options`, which are those of every adapter (`Settings`)
        transport  makes the inner transport of an origin, in place of the library's own; then none of its `options`
        pools_max  so many idle pools stay open; one that is idle for longer than its connections are kept is closed
        clock      monotonic seconds
        options    settings, and what the library's own transport takes, but for `retries`, which would pass no gate

        What cannot be meant raises TypeError or ValueError here.
        """
        unknown = options.keys() - Options.__annotations__.keys()
        if unknown:
            raise TypeError(f"unknown: {', '.join(sorted(unknown))}; known are {', '.join(Options.__annotations__)}")
        inner: dict[str, Any] = {name: value for name, value in options.items() if name not in SETTINGS}
        settings: Any = {name: value for name, value in options.items() if name in SETTINGS}
        if transport is not None and inner:
            raise TypeError(f"{', '.join(sorted(inner))}: give these to what `transport` makes, it makes every pool")
        limits = inner.get("limits")
        if hosts is None and limits is not None and limits.max_connections and not inner.get("http2"):
            settings = capped(settings, limits.max_connections)
        self.hosts = given_or_new(hosts, settings)
        self._has_own_hosts = hosts is None
        self.clock = clock
        self.pools: Pools[Any] = Pools(
            (lambda origin: transport())
            if transport is not None
            else _InnerTransports(self.library, getattr(self.library.httpx, self.inner), inner),
            clock,
            idle_max=pools_max,
            idle_seconds=KEEPALIVE_SECONDS if limits is None else limits.keepalive_expiry or float("inf"),
        )

    def stats(self) -> dict[str, HostStats]:
        """What is known of each host."""
        return self.hosts.stats(self.clock())

    def _is_served(self, response: Any, host: Host, place: Place) -> bool:
        """Its answer tells nothing else, and the host has been told."""
        if host.politeness.is_block is not None or not tells_nothing(response.status_code, response.headers.raw):
            return False
        now = self.clock()
        with host.lock:
            host.served(place, now, response.status_code)
        return True


class AsyncTransport(BothTransports):
    """Every request waits for its host's turn; its slot is held until the answer's body is closed.

    One that brings a place with it, `extensions={"throttle.place": (host, place)}`, is sent at once and not again:
    a crawl's frontier has asked the host, and tries again itself, so that no task waits for one host alone.
    """

    inner = "AsyncHTTPTransport"

    async def handle_async_request(self, request: Any) -> Any:
        now = self.clock()
        origin = request.url.scheme, request.url.netloc
        brought = request.extensions.get("throttle.place")
        host, place = brought or (self.hosts.host(origin[1], now), None)
        with host.lock:
            if brought is None:
                place = host.place_at_once(now)
            else:
                host.retry_budget.earn()
        pools, pool = self.pools, None
        if place is None:
            attempt = AsyncHttpxAttempt(self, host, origin, request)
        else:
            try:
                if now > pools.surplus_from:
                    await self._close_surplus(now)
                pool = pools.take(origin)
                response = await pool.transport.handle_async_request(request)
                if self._is_served(response, host, place):
                    self.library.async_body(response, pools, pool, host, place)
                    return response
                attempt = AsyncHttpxAttempt(self, host, origin, request, pool, response=response)
            except BaseException as error:
                attempt = AsyncHttpxAttempt(self, host, origin, request, pool, error=error)
        is_replayable = brought is None and isinstance(request.stream, self.library.replayable)
        try:
            place = await drive_async(
                host, attempt, now, self.clock, method=request.method, is_replayable=is_replayable, place=place
            )
        except Refused as refused:
            raise self.library.errors[type(refused)](*refused.told) from None
        return attempt.kept(place)

    async def aclose(self) -> None:
        """Every pool is closed; what is open in one fails."""
        for transport in self.pools.all():
            await transport.aclose()
        if self._has_own_hosts and self.hosts.has_company:
            Thread(target=self.hosts.close).start()  # a file or a server is told, and no loop waits for them

    async def _close_surplus(self, now: float) -> None:
        for transport in self.pools.surplus(now):
            with contextlib.suppress(Exception):  # no concern of this request
                await transport.aclose()


class Transport(BothTransports):
    """As `AsyncTransport`, for threads: any number of them."""

    inner = "HTTPTransport"

    def handle_request(self, request: Any) -> Any:
        now = self.clock()
        origin = request.url.scheme, request.url.netloc
        host = self.hosts.host(origin[1], now)
        with host.lock:
            place = host.place_at_once(now)
        pools, pool = self.pools, None
        if place is None:
            attempt = HttpxAttempt(self, host, origin, request)
        else:
            try:
                if now > pools.surplus_from:
                    self._close_surplus(now)
                pool = pools.take(origin)
                response = pool.transport.handle_request(request)
                if self._is_served(response, host, place):
                    self.library.body(response, pools, pool, host, place)
                    return response
                attempt = HttpxAttempt(self, host, origin, request, pool, response=response)
            except BaseException as error:
                attempt = HttpxAttempt(self, host, origin, request, pool, error=error)
        is_replayable = isinstance(request.stream, self.library.replayable)
        try:
            place = drive(
                host, attempt, now, self.clock, method=request.method, is_replayable=is_replayable, place=place
            )
        except Refused as refused:
            raise self.library.errors[type(refused)](*refused.told) from None
        return attempt.kept(place)

    def close(self) -> None:
        """Every pool is closed; what is open in one fails."""
        for transport in self.pools.all():
            transport.close()
        if self._has_own_hosts:
            self.hosts.close()

    def _close_surplus(self, now: float) -> None:
        for transport in self.pools.surplus(now):
            with contextlib.suppress(Exception):  # no concern of this request
                transport.close()
