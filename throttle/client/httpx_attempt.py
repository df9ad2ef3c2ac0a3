"""One request of httpx's or httpx2's: sent as often as the flow says; its place and connection held by its body."""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from types import ModuleType
from typing import Any

from throttle.client.answer import Answer, Failure
from throttle.client.exchange import errors_as
from throttle.client.host import Host, Place
from throttle.client.pools import Origin, Pool, Pools
from throttle.client.soft_block import PROBLEM_LENGTH_MAX
from throttle.client.told import answer_told, is_problem


class Library:
    """httpx or httpx2: what is used of it here, and our errors as its own."""

    def __init__(self, module: ModuleType) -> None:
        httpx: Any = module
        self.httpx = httpx
        self.async_body = type("AsyncBody", (AsyncBody, httpx.AsyncByteStream), {})
        self.body = type("Body", (Body, httpx.SyncByteStream), {})
        self.errors = errors_as(httpx.TransportError)
        self.replayable = httpx.ByteStream  # bytes can be sent again; what a generator gave is gone
        self.timeouts = (httpx.ConnectTimeout, httpx.ReadTimeout, httpx.WriteTimeout)
        # A full pool, a proxy's error, and what we did wrong ourselves say nothing of the host.
        self.failures = (*self.timeouts, httpx.NetworkError, httpx.RemoteProtocolError)


class _BothAttempts:
    """What the last sending brought, a response or an error, and what it holds: a connection, in the end a place."""

    __slots__ = ("_clock", "_host", "_library", "_origin", "_pool", "_pools", "_request", "error", "place", "response")

    def __init__(
        self,
        library: Library,
        pools: Pools[Any],
        clock: Callable[[], float],
        host: Host,
        origin: Origin,
        request: Any,
    ) -> None:
        self._library = library
        self._pools = pools
        self._clock = clock
        self._host = host
        self._origin = origin
        self._request = request
        self._pool: Pool[Any] | None = None
        self.place: Place | None = None  # once the exchange is done
        self.response: Any = None
        self.error: BaseException | None = None

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
            self._pools.give_back(pool, self._clock())
        place, self.place = self.place, None
        if place is not None:
            with self._host.lock:
                self._host.release(place)

    def _answer(self) -> Answer:
        response = self.response
        is_whole = self._host.politeness.is_block is not None
        return answer_told(self._clock(), response.status_code, response.headers.raw, is_whole=is_whole)

    def _failed(self, error: BaseException) -> Answer:
        """The host failed; an error that says nothing of the host is raised."""
        if not isinstance(error, self._library.failures):
            raise error
        self.error = error
        failure = Failure.TIMEOUT if isinstance(error, self._library.timeouts) else Failure.CONNECT
        return Answer(self._clock(), failure)


class AsyncHttpxAttempt(_BothAttempts):
    __slots__ = ()

    async def send(self) -> Answer:
        if self._pools.has_surplus(self._clock()):
            await self._close_surplus()
        self._pool = self._pools.take(self._origin)
        try:
            self.response = response = await self._pool.transport.handle_async_request(self._request)
        except BaseException as error:
            self.give_back()
            return self._failed(error)
        response.stream = body = self._library.async_body(response.stream, self)
        answer = self._answer()
        if is_problem(answer):
            try:
                answer.body = await body.peek(PROBLEM_LENGTH_MAX)
            except BaseException as error:
                await body.aclose()
                return self._failed(error)
        return answer

    async def discard(self) -> None:
        if self.error is None:
            await self.response.stream.aclose()
        self.response = self.error = None

    async def _close_surplus(self) -> None:
        for transport in self._pools.surplus(self._clock()):
            with contextlib.suppress(Exception):  # no concern of this request
                await transport.aclose()


class HttpxAttempt(_BothAttempts):
    __slots__ = ()

    def send(self) -> Answer:
        if self._pools.has_surplus(self._clock()):
            self._close_surplus()
        self._pool = self._pools.take(self._origin)
        try:
            self.response = response = self._pool.transport.handle_request(self._request)
        except BaseException as error:
            self.give_back()
            return self._failed(error)
        response.stream = body = self._library.body(response.stream, self)
        answer = self._answer()
        if is_problem(answer):
            try:
                answer.body = body.peek(PROBLEM_LENGTH_MAX)
            except BaseException as error:
                body.close()
                return self._failed(error)
        return answer

    def discard(self) -> None:
        if self.error is None:
            self.response.stream.close()
        self.response = self.error = None

    def _close_surplus(self) -> None:
        for transport in self._pools.surplus(self._clock()):
            with contextlib.suppress(Exception):  # no concern of this request
                transport.close()


class AsyncBody:
    """The library's own body; when it is closed, connection and place are given back."""

    def __init__(self, stream: Any, attempt: AsyncHttpxAttempt) -> None:
        self._stream = stream
        self._attempt = attempt

    async def peek(self, length: int) -> bytes:
        """The first chunks, of `length` bytes or more if there are; they are still to be read."""
        self._stream = _AsyncPeeked(self._stream)
        start: bytes = await self._stream.peek(length)
        return start

    def __aiter__(self) -> AsyncIterator[bytes]:
        return aiter(self._stream)

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            self._attempt.give_back()


class Body:
    """As `AsyncBody`."""

    def __init__(self, stream: Any, attempt: HttpxAttempt) -> None:
        self._stream = stream
        self._attempt = attempt

    def peek(self, length: int) -> bytes:
        self._stream = _Peeked(self._stream)
        start: bytes = self._stream.peek(length)
        return start

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._stream)

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            self._attempt.give_back()


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
