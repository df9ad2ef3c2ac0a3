"""The flow as a client middleware of aiohttp's: `aiohttp.ClientSession(middlewares=[throttle_middleware()])`.

Each redirect passes it under its own host. aiohttp's `total` time-out runs while a request waits for its turn, and a
middleware cannot stop that clock: give the session `ClientTimeout(total=None, sock_connect=30, sock_read=60)`. The
slots are the limit, so its connector needs none: `TCPConnector(limit=0)`.
"""

import time
from collections.abc import Callable
from typing import Unpack

try:
    import aiohttp
except ImportError as missing:
    raise ImportError("throttle.client.aiohttp needs aiohttp: pip install 'asgi-throttle[aiohttp]'") from missing

from throttle.client.answer import Answer, Failure
from throttle.client.driver import drive_async
from throttle.client.exchange import Refused, errors_as
from throttle.client.host import Host, HostStats, Place
from throttle.client.hosts import Hosts
from throttle.client.settings import Settings, given_or_new
from throttle.client.soft_block import PROBLEM_LENGTH_MAX
from throttle.client.told import answer_told, is_body_telling, tells_nothing

FAILURES = (aiohttp.ClientOSError, aiohttp.ServerConnectionError, OSError)
# Of a proxy, or of a connection that we distrust: neither says how fast the host may be asked.
OTHERS = (aiohttp.ClientProxyConnectionError, aiohttp.ServerFingerprintMismatch)
_ERRORS = errors_as(aiohttp.ClientError)


def throttle_middleware(
    hosts: Hosts | None = None, *, clock: Callable[[], float] = time.monotonic, **settings: Unpack[Settings]
) -> "Middleware":
    """A middleware for any number of sessions; `hosts` is a table shared with other clients."""
    return Middleware(given_or_new(hosts, settings), clock)


class Middleware:
    """Every request waits for its host's turn; its slot is held until the connection is given back."""

    def __init__(self, hosts: Hosts, clock: Callable[[], float]) -> None:
        self.hosts = hosts
        self.clock = clock

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        now = self.clock()
        host = self.hosts.host(request.url.host_port_subcomponent or "", now)
        with host.lock:
            place = host.place_at_once(now)
        attempt = _Attempt(request, handler, host, self.clock)
        if place is not None:  # as mostly
            try:
                attempt.response = response = await handler(request)
                if self._is_served(response, host, place):
                    return _held(response, host, place)
            except BaseException as error:
                attempt.error = error
        is_replayable = isinstance(request.body, bytes | aiohttp.BytesPayload)
        try:
            place = await drive_async(
                host, attempt, now, self.clock, method=request.method, is_replayable=is_replayable, place=place
            )
        except Refused as refused:
            raise _ERRORS[type(refused)](*refused.told) from None
        return attempt.kept(place)

    def _is_served(self, response: aiohttp.ClientResponse, host: Host, place: Place) -> bool:
        """Its answer tells nothing else, and the host has been told."""
        if host.politeness.is_block is not None or not tells_nothing(response.status, response.raw_headers):
            return False
        now = self.clock()
        with host.lock:
            host.served(place, now, response.status)
        return True

    def stats(self) -> dict[str, HostStats]:
        """What is known of each host."""
        return self.hosts.stats(self.clock())


def _held(response: aiohttp.ClientResponse, host: Host, place: Place) -> aiohttp.ClientResponse:
    """The response, whose connection gives the place back."""

    def give_back() -> None:
        with host.lock:
            host.release(place)

    connection = response.connection
    if connection is None:  # the whole body has come with the header
        give_back()
    else:
        connection.add_callback(give_back)
    return response


class _Attempt:
    """What the last sending brought, a response or an error; the first may have gone already."""

    __slots__ = ("_clock", "_handler", "_host", "_request", "error", "response")

    def __init__(
        self,
        request: aiohttp.ClientRequest,
        handler: aiohttp.ClientHandlerType,
        host: Host,
        clock: Callable[[], float],
    ) -> None:
        self._request = request
        self._handler = handler
        self._host = host
        self._clock = clock
        self.response: aiohttp.ClientResponse | None = None
        self.error: BaseException | None = None

    async def send(self) -> Answer:
        if self.response is None and self.error is None:
            try:
                self.response = await self._handler(self._request)
            except FAILURES as error:
                self.error = error
        if self.error is not None:
            return self._failed(self.error)
        response = self.response
        assert response is not None
        is_whole = self._host.politeness.is_block is not None
        answer = answer_told(self._clock(), response.status, response.raw_headers, is_whole=is_whole)
        if is_body_telling(answer, is_whole) and (response.content_length or PROBLEM_LENGTH_MAX) <= PROBLEM_LENGTH_MAX:
            try:
                answer.body = await response.read()  # it is kept for the next who reads
            except BaseException as error:
                response.close()
                return self._failed(error)
        return answer

    async def discard(self) -> None:
        if self.response is not None:
            self.response.release()
        self.response = self.error = None

    def kept(self, place: Place) -> aiohttp.ClientResponse:
        """The response, whose connection gives the place back; or the error is raised, and nothing is held."""
        if self.error is not None:
            with self._host.lock:
                self._host.release(place)
            raise self.error
        assert self.response is not None
        return _held(self.response, self._host, place)

    def _failed(self, error: BaseException) -> Answer:
        """The host failed; an error that says nothing of the host is raised."""
        self.error = error
        if isinstance(error, OTHERS) or not isinstance(error, FAILURES):
            raise error
        return Answer(self._clock(), Failure.TIMEOUT if isinstance(error, TimeoutError) else Failure.CONNECT)
