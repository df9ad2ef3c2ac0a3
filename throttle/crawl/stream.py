"""A connection as a stream of bytes, over the event loop's own transport, and how one comes to be.

httpcore's streams go through anyio, which serves two event loops and asks at each step which one it is: on Python 3.11
a quarter of what a request costs. A crawl runs on asyncio alone.
"""

import asyncio
import contextlib
import socket
import ssl
from collections import deque
from itertools import chain, zip_longest
from typing import Any

BUFFERED_MAX = 256 * 1024
"""bytes that nobody has read yet; with more, the server has to wait"""
NEXT_ADDRESS_AFTER = 0.25
"""seconds until the next of a name's addresses is tried as well (RFC 8305, 5)"""


class Stream(asyncio.Protocol):
    """One reader at a time; errors are the system's own (`OSError`)."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._chunks: deque[bytes] = deque()
        self._buffered = 0
        self._is_paused = False
        self._has_ended = False
        self._error: Exception | None = None
        self._reader: asyncio.Future[None] | None = None

    # -- the event loop tells

    def connection_made(self, transport: Any) -> None:  # uvloop's is no asyncio.Transport
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._chunks.append(data)
        self._buffered += len(data)
        if self._buffered > BUFFERED_MAX and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._has_ended = True
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._has_ended = True
        self._error = error
        self._wake()

    def _wake(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None and not reader.done():
            reader.set_result(None)

    # -- its user asks

    async def read(self, patience: float | None) -> bytes:
        """The next piece that came; nothing once it has ended. Raises TimeoutError after `patience` seconds."""
        if not self._chunks and not self._has_ended:
            self._reader = reader = self._loop.create_future()
            timer = None if patience is None else self._loop.call_later(patience, self._wake)
            try:
                await reader
            finally:
                self._reader = None
                if timer is not None:
                    timer.cancel()
        if self._chunks:
            data = self._chunks.popleft()
            self._buffered -= len(data)
            if self._is_paused and self._buffered <= BUFFERED_MAX // 2:
                self._is_paused = False
                self._transport.resume_reading()
            return data
        if self._error is not None:
            raise self._error
        if not self._has_ended:
            raise TimeoutError
        return b""

    def write(self, data: bytes) -> None:
        """Never waits: a request without a body is shorter than what a socket takes."""
        if self._transport.is_closing():
            raise self._error or ConnectionResetError("the server has closed the connection")
        self._transport.write(data)

    def close(self) -> None:
        """At once: nothing is half written, and a server may be slow to say farewell."""
        self._transport.abort()

    @property
    def is_silent(self) -> bool:
        """The server has not closed it, and sent nothing that nobody asked for."""
        return not (self._has_ended or self._chunks or self._transport.is_closing())


async def connected(host: str, port: int, tls: ssl.SSLContext | None) -> Stream:
    """To the first of the name's addresses that answers; the others are tried when one takes long or fails.

    Raises OSError. The event loops' own way to race addresses is missing in uvloop.
    """
    loop = asyncio.get_running_loop()
    told: dict[str, Any] = {} if tls is None else {"ssl": tls, "server_hostname": host}
    if host[-1:].isdigit() or ":" in host:  # an address, as a rule
        _, stream = await loop.create_connection(Stream, host, port, **told)
        return stream
    addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    raced = await _first(_in_turn(addresses))
    try:
        _, stream = await loop.create_connection(Stream, sock=raced, **told)
    except BaseException:
        raced.close()
        raise
    return stream


Address = tuple[Any, Any, int, str, Any]


def _in_turn(addresses: list[Address]) -> list[Address]:
    """The families take turns, the resolver's first one first."""
    first = [one for one in addresses if one[0] == addresses[0][0]]
    others = [one for one in addresses if one[0] != addresses[0][0]]
    return [one for one in chain.from_iterable(zip_longest(first, others)) if one is not None]


async def _first(addresses: list[Address]) -> socket.socket:
    """The first socket that connects; what else was begun is closed."""
    trying: set[asyncio.Task[socket.socket]] = set()
    failed: list[BaseException] = []
    left = iter(addresses)
    try:
        while True:
            address = next(left, None)
            if address is not None:
                trying.add(asyncio.create_task(_socket(address)))
            elif not trying:
                raise failed[0]
            patience = NEXT_ADDRESS_AFTER if address is not None else None
            done, trying = await asyncio.wait(trying, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if (error := task.exception()) is None:
                    trying |= done - {task}
                    return task.result()
                failed.append(error)
    finally:
        for task in trying:
            task.cancel()
            task.add_done_callback(_close_late)


def _close_late(task: "asyncio.Task[socket.socket]") -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()


async def _socket(address: Address) -> socket.socket:
    family, kind, protocol, _, target = address
    connecting = socket.socket(family, kind, protocol)
    try:
        connecting.setblocking(False)
        with contextlib.suppress(OSError):
            connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(connecting, target)
    except BaseException:
        connecting.close()
        raise
    return connecting
