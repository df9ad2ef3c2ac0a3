"""The body of an answer of httpx's or httpx2's. Until it is closed it holds a connection and the host's place."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from throttle.client.host import Host, Place
from throttle.client.pools import Pool, Pools


class _BothBodies:
    """The response is given it in the place of the library's own, which still does the reading."""

    _place: Place | None = None

    def __init__(self, response: Any, pools: Pools[Any], pool: Pool[Any], host: Host, place: Place) -> None:
        self._stream, response.stream = response.stream, self
        self._pools = pools
        self._pool = pool
        self._host = host
        self._place = place
        if response.is_closed:  # made with its content, by a mock or a cache: nobody will close its body
            self.give_back()

    def __del__(self) -> None:
        # The answer was dropped and not closed. Its connection stays open until its pool is closed for being idle;
        # its place need not wait for that.
        if self._place is not None:
            self.give_back()

    def give_back(self) -> None:
        """The connection first, so that it is there for whoever gets the place."""
        place, self._place = self._place, None
        if place is not None:
            self._pools.give_back(self._pool)
            host = self._host
            with host.lock:
                host.release(place)


class AsyncBody(_BothBodies):
    def __aiter__(self) -> AsyncIterator[bytes]:
        chunks: AsyncIterator[bytes] = self._stream.__aiter__()
        return chunks

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            self.give_back()


class Body(_BothBodies):
    """As `AsyncBody`."""

    def __iter__(self) -> Iterator[bytes]:
        chunks: Iterator[bytes] = self._stream.__iter__()
        return chunks

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            self.give_back()
