"""One request of httpx's or httpx2's that does not go straight through: it waits, or its answer tells something.

It is sent as often as the flow says, and keeps what the last sending brought.
"""

from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from throttle.client.answer import Answer, Failure
from throttle.client.exchange import errors_as
from throttle.client.host import Host, Place
from throttle.client.httpx_body import AsyncBody, Body
from throttle.client.pools import Origin, Pool
from throttle.client.soft_block import PROBLEM_LENGTH_MAX
from throttle.client.told import answer_told, is_body_telling, plain

if TYPE_CHECKING:
    from throttle.client.transport import BothTransports


class Library:
    """httpx or httpx2: what is used of it here, and our errors as its own."""

    def __init__(self, module: ModuleType) -> None:
        httpx: Any = module
        self.httpx = httpx
        self.async_body = type("AsyncThrottledBody", (AsyncBody, httpx.AsyncByteStream), {})
        self.body = type("ThrottledBody", (Body, httpx.SyncByteStream), {})
        self.errors = errors_as(httpx.TransportError)
        self.replayable = httpx.ByteStream  # bytes can be sent again; what a generator gave is gone
        self.timeouts = (httpx.ConnectTimeout, httpx.ReadTimeout, httpx.WriteTimeout)
        # A full pool, a proxy's error, and what we did wrong ourselves say nothing of the host.
        self.failures = (*self.timeouts, httpx.NetworkError, httpx.RemoteProtocolError)


class _BothAttempts:
    """What the last sending brought, a response or an error, and the pool whose connection it holds.

    Given with either, it was sent already: the first `send()` only hears what came.
    """

    def __init__(
        self,
        transport: "BothTransports",
        host: Host,
        origin: Origin,
        request: Any,
        pool: Pool[Any] | None = None,
        *,
        response: Any = None,
        error: BaseException | None = None,
    ) -> None:
        self.host = host
        self._transport = transport
        self._origin = origin
        self._request = request
        self._pool = pool
        self._response = response
        self._error = error
        self._is_whole = host.politeness.is_block is not None

    def _is_sent(self) -> bool:
        return self._response is not None or self._error is not None

    def _kept(self, place: Place, body: type[Any]) -> Any:
        """The response, whose body gives the place back; or the error is raised, and nothing is held."""
        if self._error is not None:
            with self.host.lock:
                self.host.release(place)
            raise self._error
        body(self._response, self._transport.pools, self._pool, self.host, place)
        return self._response

    def _give_back(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            self._transport.pools.give_back(pool)

    def _answer(self) -> Answer:
        response = self._response
        return answer_told(self._transport.clock(), response.status_code, response.headers.raw, self._is_whole)

    def _is_body_telling(self, answer: Answer) -> bool:
        return (bool(answer.headers) or self._is_whole) and is_body_telling(answer, self._is_whole)

    def _failed(self, error: BaseException) -> Answer:
        """The host failed; an error that says nothing of the host is raised."""
        self._give_back()
        self._response = self._error = None
        library = self._transport.library
        if not isinstance(error, library.failures):
            raise error
        self._error = error
        failure = Failure.TIMEOUT if isinstance(error, library.timeouts) else Failure.CONNECT
        return Answer(self._transport.clock(), failure)


class AsyncHttpxAttempt(_BothAttempts):
    async def send(self) -> Answer:
        if not self._is_sent():
            try:
                self._pool = self._transport.pools.take(self._origin)
                self._response = await self._pool.transport.handle_async_request(self._request)
            except BaseException as error:
                return self._failed(error)
        if self._error is not None:
            return self._failed(self._error)
        answer = self._answer()
        if self._is_body_telling(answer):
            self._response.stream = peeked = _AsyncPeeked(self._response.stream)
            try:
                answer.body = plain(await peeked.peek(PROBLEM_LENGTH_MAX), answer.headers)
            except BaseException as error:
                await self._close()
                return self._failed(error)
        return answer

    async def discard(self) -> None:
        if self._error is None:
            await self._close()
        self._response = self._error = None

    def kept(self, place: Place) -> Any:
        return self._kept(place, self._transport.library.async_body)

    async def _close(self) -> None:
        try:
            await self._response.stream.aclose()
        finally:
            self._give_back()


class HttpxAttempt(_BothAttempts):
    """As `AsyncHttpxAttempt`."""

    def send(self) -> Answer:
        if not self._is_sent():
            try:
                self._pool = self._transport.pools.take(self._origin)
                self._response = self._pool.transport.handle_request(self._request)
            except BaseException as error:
                return self._failed(error)
        if self._error is not None:
            return self._failed(self._error)
        answer = self._answer()
        if self._is_body_telling(answer):
            self._response.stream = peeked = _Peeked(self._response.stream)
            try:
                answer.body = plain(peeked.peek(PROBLEM_LENGTH_MAX), answer.headers)
            except BaseException as error:
                self._close()
                return self._failed(error)
        return answer

    def discard(self) -> None:
        if self._error is None:
            self._close()
        self._response = self._error = None

    def kept(self, place: Place) -> Any:
        return self._kept(place, self._transport.library.body)

    def _close(self) -> None:
        try:
            self._response.stream.close()
        finally:
            self._give_back()


class _AsyncPeeked:
    """A stream whose first chunks were read, and come again."""

    def __init__(self, stream: Any) -> None:
        self.aclose = stream.aclose
        self._chunks = aiter(stream)
        self._start: list[bytes] = []

    async def peek(self, length: int) -> bytes:
        async for chunk in self._chunks:
            self._start.append(chunk)
            length -= len(chunk)
            if length <= 0:
                break
        return b"".join(self._start)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self._start:
            yield chunk
        async for chunk in self._chunks:
            yield chunk


class _Peeked:
    """As `_AsyncPeeked`."""

    def __init__(self, stream: Any) -> None:
        self.close = stream.close
        self._chunks = iter(stream)
        self._start: list[bytes] = []

    def peek(self, length: int) -> bytes:
        for chunk in self._chunks:
            self._start.append(chunk)
            length -= len(chunk)
            if length <= 0:
                break
        return b"".join(self._start)

    def __iter__(self) -> Iterator[bytes]:
        yield from self._start
        yield from self._chunks
