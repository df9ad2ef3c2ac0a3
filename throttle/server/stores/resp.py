"""One connection that speaks RESP3: what is asked in one turn of the event loop travels together.

An own connection, since redis-py's costs 55 to 65 µs of Python a call with 64 waiting. It knows no command, and no
time-outs.
"""

import asyncio
import logging
from collections import deque
from typing import Any, Protocol, cast

try:
    import hiredis
except ImportError:
    raise ImportError("a store in Redis or Valkey needs hiredis: pip install 'asgi-throttle[redis]'") from None

logger = logging.getLogger("throttle")

ReplyError = hiredis.ReplyError


class Call(Protocol):
    """What waits for one reply."""

    def encode(self) -> bytes:
        """The command as it stands when it is sent."""

    def replied(self, reply: Any) -> None:
        """Told the server's reply, a `ReplyError` where it is one; also after it was given up."""

    def given_up(self) -> None:
        """No reply is waited for any more. May be told twice."""


class Owner(Protocol):
    """Whom a connection tells."""

    def heard(self) -> None:
        """Something was read."""

    def pushed(self, message: list[Any]) -> None:
        """A message that no call asked for."""

    def disconnected(self, connection: "Connection", error: Exception | None) -> None:
        """It is over."""


class Connection(asyncio.Protocol):
    """Calls out, replies in, in order."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._reader = hiredis.Reader(replyError=ReplyError)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self.sent: deque[tuple[float, Call]] = deque()
        """when they were sent, by the loop's clock, and those that wait for a reply"""
        self._next: list[Call] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one, too, but not by its class

    def send(self, call: Call) -> None:
        """It leaves at the end of this turn of the loop, with all others of the turn."""
        if not self._next:
            self._loop.call_soon(self.flush)
        self._next.append(call)

    def flush(self) -> None:
        if not self._next or self._transport is None:
            return
        calls, self._next = self._next, []
        now = self._loop.time()
        commands = []
        for call in calls:
            try:
                commands.append(call.encode())
            except Exception:  # one that cannot be written must not take the others with it
                logger.exception("a call to the store could not be written")
                call.given_up()
            else:
                self.sent.append((now, call))
        self._transport.write(b"".join(commands))

    def data_received(self, data: bytes) -> None:
        reader, sent = self._reader, self.sent
        try:
            reader.feed(data)
            while (reply := reader.gets()) is not False:
                if type(reply) is hiredis.PushNotification:
                    self._owner.pushed(reply)
                else:
                    sent.popleft()[1].replied(reply)
        except (hiredis.ProtocolError, IndexError):  # not a server of this kind, or a bug of its
            self.abort()
        self._owner.heard()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._owner.disconnected(self, error)
        self.give_up()

    def give_up(self) -> None:
        """Tell all calls that nobody waits; those that have not left never will."""
        unsent, self._next = self._next, []
        for call in [*(call for _, call in self.sent), *unsent]:
            call.given_up()

    @property
    def waits_since(self) -> float | None:
        """When the oldest call that has no reply was sent."""
        return self.sent[0][0] if self.sent else None

    def abort(self) -> None:
        """Give it up at once."""
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """Send what is to be sent, then end it."""
        self.flush()
        if self._transport is not None:
            self._transport.close()


def command(*words: bytes | str) -> bytes:
    """A command as it travels."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        packed = word if isinstance(word, bytes) else word.encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(packed), packed))
    return b"".join(parts)
