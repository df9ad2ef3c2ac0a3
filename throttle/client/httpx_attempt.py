"""One request of httpx's or httpx2's: sent as often as the flow says, and then the body of its answer.

One object for both, made once a request. As the body it holds the connection and the host's place until it is closed.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from throttle.client.answer import Answer, Failure
from throttle.client.exchange import errors_as
from throttle.client.host import Host, Place
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
        self.async_attempt = type("AsyncHttpxAttempt", (AsyncHttpxAttempt, httpx.AsyncByteStream), {})
        self.attempt = type("HttpxAttempt", (HttpxAttempt, httpx.SyncByteStream), {})
        self.errors = errors_as(httpx.TransportError)
        self.replayable = httpx.ByteStream  # bytes can be sent again; what a generator gave is gone
        self.timeouts = (httpx.ConnectTimeout, httpx.ReadTimeout, httpx.WriteTimeout)
        # A full pool, a proxy's error, and what we did wrong ourselves say nothing of the host.
        self.failures = (*self.timeouts, httpx.NetworkError, httpx.RemoteProtocolError)


class _BothAttempts:
    """What the last sending brought, a response or an error, and what it holds: a connection, in the end a place."""

    place: Place | None = None  # once the exchange is done
    response: Any = None
    error: BaseException | None = None
    _pool: Pool[Any] | None = None
    _stream: Any = None  # the library's own body

    def __init__(self, transport: "BothTransports", host: Host, origin: Origin, request: Any) -> None:
        self._transport = transport
        self._host = host
        self._origin = origin
        self._request = request
        self._is_whole = host.politeness.is_block is not None

    def __del__(self) -> None:
        # The answer was dropped and not closed. Its connection stays open until its pool is closed for being idle;
        # its place need not wait for that.
        if self.place is not None:
            self.give_back()

    def kept(self) -> Any:
        """The response, whose body gives the place back; or the error is raised, and nothing is held."""
        if self.error is not None:
            self.give_back()
            raise self.error
        if self.response.is_closed:  # made with its content, by a mock or a cache: nobody will close its body
            self.give_back()
        return self.response

    def give_back(self) -> None:
        """The connection first, so that it is there for whoever gets the place."""
        pool, self._pool = self._pool, None
        if pool is not None:
            self._transport.pools.give_back(pool, self._transport.clock())
        place, self.place = self.place, None
        if place is not None:
            with self._host.lock:
                self._host.release(place)

    def _answer(self, response: Any) -> Answer:
        self.response = response
        self._stream, response.stream = response.stream, self
        return answer_told(self._transport.clock(), response.status_code, response.headers.raw, self._is_whole)

    def _failed(self, error: BaseException) -> Answer:
        """The host failed; an error that says nothing of the host is raised."""
        library = self._transport.library
        if not isinstance(error, library.failures):
            raise error
        self.error = error
        failure = Failure.TIMEOUT if isinstance(error, library.timeouts) else Failure.CONNECT
        return Answer(self._transport.clock(), failure)


class AsyncHttpxAttempt(_BothAttempts):
    async def send(self) -> Answer:
        pools = self._transport.pools
        if pools.has_surplus(self._transport.clock()):
            await self._close_surplus()
        self._pool = pool = pools.take(self._origin)
        try:
            response = await pool.transport.handle_async_request(self._request)
        except BaseException as error:
            self.give_back()
            return self._failed(error)
        answer = self._answer(response)
        if (answer.headers or self._is_whole) and is_body_telling(answer, self._is_whole):
            self._stream = peeked = _AsyncPeeked(self._stream)
            try:
                answer.body = plain(await peeked.peek(PROBLEM_LENGTH_MAX), answer.headers)
            except BaseException as error:
                await self.aclose()
                return self._failed(error)
        return answer

    async def discard(self) -> None:
        if self.error is None:
            await self.aclose()
        self.response = self.error = None

    def __aiter__(self) -> AsyncIterator[bytes]:
        body: AsyncIterator[bytes] = self._stream.__aiter__()
        return body

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            self.give_back()

    async def _close_surplus(self) -> None:
        for transport in self._transport.pools.surplus(self._transport.clock()):
            with contextlib.suppress(Exception):  # no concern of this request
                await transport.aclose()


class HttpxAttempt(_BothAttempts):
    """As `AsyncHttpxAttempt`."""

    def send(self) -> Answer:
        pools = self._transport.pools
        if pools.has_surplus(self._transport.clock()):
            self._close_surplus()
        self._pool = pool = pools.take(self._origin)
        try:
            response = pool.transport.handle_request(self._request)
        except BaseException as error:
            self.give_back()
            return self._failed(error)
        answer = self._answer(response)
        if (answer.headers or self._is_whole) and is_body_telling(answer, self._is_whole):
            self._stream = peeked = _Peeked(self._stream)
            try:
                answer.body = plain(peeked.peek(PROBLEM_LENGTH_MAX), answer.headers)
            except BaseException as error:
                self.close()
                return self._failed(error)
        return answer

    def discard(self) -> None:
        if self.error is None:
            self.close()
        self.response = self.error = None

    def __iter__(self) -> Iterator[bytes]:
        body: Iterator[bytes] = self._stream.__iter__()
        return body

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            self.give_back()

    def _close_surplus(self) -> None:
        for transport in self._transport.pools.surplus(self._transport.clock()):
            with contextlib.suppress(Exception):  # no concern of this request
                transport.close()


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
