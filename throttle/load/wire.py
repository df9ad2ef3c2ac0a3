"""Requests to one site over HTTP/1.1, each from an address of its caller's own, on connections that stay open.

Plain asyncio and a reader of our own, since the crowd runs beside the site that it tests and must cost it little.
"""

import asyncio
import contextlib
import socket
from collections import OrderedDict
from typing import cast

from throttle.load.answer import Answer, read_answer
from throttle.load.crowd import Caller
from throttle.load.http1 import AnswerError, AnswerReader

LOOPBACK = "127.0.0.1"
IDLE_MAX = 4_000
"""connections kept open for their callers' next requests; the longest unused goes first"""


def has_loopback_network() -> bool:
    """All of 127.0.0.0/8 is this machine's, as on Linux and Windows; elsewhere only 127.0.0.1 may be."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.2", 0))
        except OSError:
            return False
    return True


class Wire:
    """Sends requests to one site, at `host` (an address) and `port`; `name` is its Host field.

    Each leaves from its caller's address, in a network of the loopback, as long as `own_addresses`. With `forwards`,
    callers name their address in X-Forwarded-For, which the site must trust this machine to write.
    """

    def __init__(
        self,
        port: int,
        *,
        host: str = LOOPBACK,
        name: str | None = None,
        own_addresses: bool = True,
        forwards: bool = False,
        keeps_alive: bool = True,
    ) -> None:
        self._address = (host, port)
        self._name = f"{host}:{port}" if name is None else name
        self._own_addresses = own_addresses and not forwards
        self._forwards = forwards
        self._keeps_alive = keeps_alive
        self._heads: dict[Caller, bytes] = {}
        self._idle: OrderedDict[_Connection, None] = OrderedDict()
        self._idle_of: dict[str, list[_Connection]] = {}

    async def __call__(self, caller: Caller, path: str) -> Answer:
        """The answer; a connection that cannot be made or breaks is a failure, not an exception."""
        head = self._heads.get(caller)
        if head is None:
            head = self._heads[caller] = self._head(caller)
        request = b"GET " + path.encode("ascii", "ignore") + head
        if (connection := self._take(caller.address)) is not None:
            with contextlib.suppress(ConnectionError):  # the site let go of it just now: once more, on a new one
                return await self._exchange(connection, request, caller, is_new=False)
        try:
            connection = await self._connect(caller)
        except OSError as error:
            return Answer(failed=f"no connection: {error.strerror or error}")
        return await self._exchange(connection, request, caller)

    def close(self) -> None:
        """Let go of all idle connections."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()
        self._idle_of.clear()

    async def _exchange(
        self, connection: "_Connection", request: bytes, caller: Caller, *, is_new: bool = True
    ) -> Answer:
        """Raises ConnectionError only for a connection that is not new, where nothing of an answer has come."""
        is_whole = False
        try:
            reader = await connection.exchange(request)
            is_whole = True
        except (AnswerError, OSError) as error:
            if not is_new and not connection.has_heard:
                raise ConnectionError from None
            return Answer(failed=f"broken off: {error}")
        finally:
            if is_whole and reader.keeps_alive and self._keeps_alive:
                self._keep(caller.address, connection)
            else:
                connection.close()
        return read_answer(reader.status, reader.fields, bytes(reader.body))

    def _head(self, caller: Caller) -> bytes:
        lines = [" HTTP/1.1", f"Host: {self._name}", f"Accept: {caller.accept}"]
        if caller.agent:
            lines.append(f"User-Agent: {caller.agent}")
        if self._forwards:
            lines.append(f"X-Forwarded-For: {caller.address}")
        if not self._keeps_alive:
            lines.append("Connection: close")
        return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")

    async def _connect(self, caller: Caller) -> "_Connection":
        loop = asyncio.get_running_loop()
        made = socket.socket(socket.AF_INET6 if ":" in self._address[0] else socket.AF_INET)
        try:
            made.setblocking(False)
            if self._own_addresses:
                made.bind((caller.address, 0))
            await loop.sock_connect(made, self._address)
            _, connection = await loop.create_connection(_Connection, sock=made)
        except BaseException:
            made.close()
            raise
        return connection

    def _take(self, address: str) -> "_Connection | None":
        idle = self._idle_of.get(address)
        while idle:
            connection = idle.pop()
            if not idle:
                del self._idle_of[address]
            del self._idle[connection]
            if not connection.is_lost:
                return connection
        return None

    def _keep(self, address: str, connection: "_Connection") -> None:
        connection.address = address
        self._idle[connection] = None
        self._idle_of.setdefault(address, []).append(connection)
        if len(self._idle) > IDLE_MAX:
            oldest, _ = self._idle.popitem(last=False)
            of_address = self._idle_of[oldest.address]
            of_address.remove(oldest)
            if not of_address:
                del self._idle_of[oldest.address]
            oldest.close()


class _Connection(asyncio.Protocol):
    """One request after another."""

    def __init__(self) -> None:
        self.address = ""
        self.is_lost = False
        self.has_heard = False
        """something of the answer has come"""
        self._transport: asyncio.Transport | None = None
        self._reader: AnswerReader | None = None
        self._answered: asyncio.Future[AnswerReader] | None = None

    async def exchange(self, request: bytes) -> AnswerReader:
        """The complete answer. Raises AnswerError, or ConnectionError where the connection ends before it."""
        if self.is_lost or self._transport is None:
            raise ConnectionResetError("connection closed")
        self._reader = AnswerReader()
        self.has_heard = False
        self._answered = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answered

    def close(self) -> None:
        """At once: what may still come is of no interest."""
        if self._transport is not None and not self.is_lost:
            self.is_lost = True
            self._transport.abort()

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class

    def data_received(self, data: bytes) -> None:
        reader, answered = self._reader, self._answered
        if reader is None or answered is None or answered.done():
            return self.close()  # nobody asked
        self.has_heard = True
        try:
            reader.feed(data)
        except AnswerError as error:
            answered.set_exception(error)
        else:
            if reader.is_complete:
                answered.set_result(reader)
        return None

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True
        reader, answered = self._reader, self._answered
        if answered is None or reader is None or answered.done():
            return
        if error is not None:
            answered.set_exception(ConnectionResetError(str(error)))
            return
        try:
            reader.end()
        except AnswerError as early:
            answered.set_exception(early if self.has_heard else ConnectionResetError(str(early)))
        else:
            answered.set_result(reader)
