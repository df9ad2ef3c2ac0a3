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
from throttle.client.told import answer_told, is_body_telling

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
        attempt = _Attempt(request, handler, host, self.clock)
        is_replayable = isinstance(request.body, bytes | aiohttp.BytesPayload)
        try:
            place = await drive_async(
                host, attempt, now, self.clock, method=request.method, is_replayable=is_replayable
            )
        except Refused as refused:
            raise _ERRORS[type(refused)](*refused.told) from None
        return attempt.kept(place)

    def stats(self) -> dict[str, HostStats]:
        """What is known of each host."""
        return self.hosts.stats(self.clock())


class _Attempt:
    __slots__ = ("_clock", "_error", "_handler", "_host", "_request", "_response")

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
        self._response: aiohttp.ClientResponse | None = None
        self._error: BaseException | None = None

    async def send(self) -> Answer:
        try:
            self._response = response = await self._handler(self._request)
        except FAILURES as error:
            return self._failed(error)
        is_whole = self._host.politeness.is_block is not None
        answer = answer_told(self._clock(), response.status, response.raw_headers, is_whole=is_whole)
        if is_body_telling(answer, is_whole) and (response.content_length or PROBLEM_LENGTH_MAX) <= PROBLEM_LENGTH_MAX:
            try:
                answer.body = await response.read()  # it is kept for the next who reads
            except BaseException as error:
                response.close()
                if isinstance(error, FAILURES):
                    return self._failed(error)
                raise
        return answer

    async def discard(self) -> None:
        if self._response is not None:
            self._response.release()
        self._response = self._error = None

    def kept(self, place: Place) -> aiohttp.ClientResponse:
        """The response, whose connection gives the place back; or the error is raised, and nothing is held."""

        def give_back() -> None:
            with self._host.lock:
                self._host.release(place)

        if self._response is None or self._error is not None:
            give_back()
            assert self._error is not None
            raise self._error
        connection = self._response.connection
        if connection is None:  # the whole body has come with the header
            give_back()
        else:
            connection.add_callback(give_back)
        return self._response

    def _failed(self, error: BaseException) -> Answer:
        if isinstance(error, OTHERS):
            raise error
        self._error = error
        return Answer(self._clock(), Failure.TIMEOUT if isinstance(error, TimeoutError) else Failure.CONNECT)
