"""One request, sent on a place that the host has given, and a body that ends: by itself, by its length, or by time.

Over httpx2 if it is there, else httpx, through the same throttled transport that any client mounts; below it are a
crawl's own connections (`direct`), or the library's where the environment names a proxy.
"""

import asyncio
import importlib.util
import time
from collections.abc import Callable
from typing import Any

from throttle.client.host import Host, Place
from throttle.client.hosts import Hosts
from throttle.crawl.errand import Errand, Fetched
from throttle.crawl.result import Problem

# The client's own time-outs come first, since they tell the host's pace; this much later ours.
GRACE = 0.5
CONNECT_SECONDS = 10.0


class NoClientError(ImportError):
    def __init__(self) -> None:
        super().__init__("a crawl needs httpx2 or httpx: pip install 'asgi-throttle[crawl]'")


def client_library() -> str:
    """`httpx2`, or else `httpx`. Raises NoClientError."""
    for name in ("httpx2", "httpx"):
        if importlib.util.find_spec(name) is not None:
            return name
    raise NoClientError


def idle_connections_max(hosts: int) -> int:
    """Of so many hosts connections are kept; a quarter of the files that this process may open, as each may keep some.

    With fewer than there are hosts in turn, each request opens a connection.
    """
    try:
        from resource import RLIMIT_NOFILE, getrlimit
    except ImportError:  # Windows: no such limit on sockets
        return hosts
    files, _ = getrlimit(RLIMIT_NOFILE)
    return hosts if files < 0 else min(hosts, max(1, files // 4))


class Fetcher:
    """`wrap` puts something above the throttled transport, such as a cache; what that answers itself costs no place."""

    def __init__(
        self,
        hosts: Hosts,
        *,
        user_agent: str,
        timeout: float,
        body_max: int,
        wrap: Callable[[Any], Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
        **options: Any,
    ) -> None:
        self._httpx: Any = importlib.import_module(client_library())
        throttled = importlib.import_module(f"throttle.client.{client_library()}").AsyncThrottledTransport
        from throttle.crawl.direct import DirectTransports, is_direct  # h11 comes with the library

        if is_direct():
            options["transport"] = DirectTransports(self._httpx)
        transport = throttled(hosts, clock=clock, **options)
        self._transport = wrap(transport) if wrap is not None else transport
        self._body_max = body_max
        self._timeout = timeout
        self._clock = clock
        fields = [("User-Agent", user_agent), ("Accept", "*/*"), ("Accept-Encoding", "gzip, deflate")]
        self._headers = self._httpx.Headers(fields)

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def fetch(self, errand: Errand, host: Host, place: Place, *, body_max: int | None, keeps: bool) -> Fetched:
        """How it ended, never an error of the network. The place is given back in any case."""
        seconds = max(1.0, self._timeout - errand.spent)
        fetched = Fetched()
        started = self._clock()
        try:
            async with asyncio.timeout(seconds + GRACE):
                await self._fetch(errand, host, place, seconds, body_max or self._body_max, keeps, fetched)
        except TimeoutError:
            fetched.problem = Problem.TIMEOUT
            what = "no answer" if fetched.status is None else "the body did not end"
            fetched.detail = f"{what} within {seconds:.3g} s"
        finally:
            if not place.is_told:  # no request left: a cache has answered, or we were cancelled
                host.give_back(place)
            fetched.seconds = self._clock() - started
        return fetched

    async def _fetch(
        self, errand: Errand, host: Host, place: Place, seconds: float, body_max: int, keeps: bool, fetched: Fetched
    ) -> None:
        httpx = self._httpx
        timeout = {"connect": min(CONNECT_SECONDS, seconds), "read": seconds, "write": seconds, "pool": seconds}
        try:
            request = httpx.Request(
                errand.method,
                errand.target.url,
                headers=self._headers,
                extensions={"timeout": timeout, "throttle.place": (host, place)},
            )
            response = await self._transport.handle_async_request(request)
            try:
                fetched.status = response.status_code
                fetched.headers = response.headers
                await _read(response, body_max, keeps, fetched)
            finally:
                await response.aclose()
        except httpx.TimeoutException as error:
            fetched.problem = Problem.TIMEOUT
            what = "connection" if isinstance(error, httpx.ConnectTimeout) else "answer"
            fetched.detail = f"no {what} within {timeout['connect' if what == 'connection' else 'read']:.3g} s"
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, ValueError) as error:
            # ValueError: what a hostile answer does to decoders and header parsers.
            fetched.problem = Problem.CONNECT
            fetched.detail = _sentence(error)


async def _read(response: Any, body_max: int, keeps: bool, fetched: Fetched) -> None:
    chunks: list[bytes] = []
    stream = response.aiter_bytes() if "content-encoding" in response.headers else response.aiter_raw()
    async for chunk in stream:
        fetched.bytes_read += len(chunk)
        if keeps:
            chunks.append(chunk)
        if fetched.bytes_read > body_max:
            fetched.is_truncated = True
            break
    fetched.body = b"".join(chunks)[:body_max]


def _sentence(error: Exception) -> str:
    cause: BaseException = error
    while cause.__cause__ is not None or cause.__context__ is not None:
        cause = cause.__cause__ or cause.__context__ or cause
    text = str(cause) or str(error) or type(error).__name__
    return text[:500]
