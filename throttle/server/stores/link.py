"""The link to a store's server: made, greeted, watched, given up and made anew.

It takes calls while it is up, and while it is made for the first time. What is not answered within the time-box is
given up, and the link is down until a probe has been answered in time. So a dead, hung or slow server costs a delay to
the requests of one time-box, and to nobody else. A server that returns meets few and small questions: each worker tries
every 0.1 to 0.4 s, and asks nothing else until it has been answered.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from throttle.server.stores.redis_address import Address
from throttle.server.stores.resp import Call, Connection, ReplyError, command

PATIENCE = 1.0
"""seconds after which a connection that says nothing is made anew"""


class Owner(Protocol):
    """Whose link it is."""

    def greeting(self) -> Call:
        """The first call on a new connection, which tells all that is known here."""

    def heartbeat(self) -> Call: ...

    def connecting(self) -> None:
        """A new connection follows; no reply comes to what was sent before."""

    def lost(self, reason: str) -> None: ...

    def back(self) -> None: ...

    def pushed(self, channel: bytes, message: bytes) -> None:
        """A message on one of our channels."""


class Link:
    """One server, one connection at a time. `find` is asked for its address before each attempt.

    `scripts` are loaded on each connection, `channels` are listened to, `beat` seconds pass between heartbeats.
    """

    def __init__(
        self,
        owner: Owner,
        find: Callable[[], Awaitable[Address]],
        *,
        scripts: list[str],
        channels: Sequence[str],
        time_box: float,
        beat: float,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.is_up = False
        self.takes_calls = True
        self._owner = owner
        self._find = find
        self._loading = [command("SCRIPT", "LOAD", script) for script in scripts]
        self._channels = channels
        self._time_box = time_box
        self._beat_seconds = beat
        self._connection: Connection | None = None
        self._is_greeted = False
        self._is_loading = False
        self._moved_to: tuple[str, int] | None = None
        self._early: list[Call] = []
        """those that wait for the first connection"""
        self._early_since = self.loop.time()
        self._probe: _Probe | None = None
        self._overdue: float | None = None
        self._look_timer: asyncio.TimerHandle | None = None
        self._beat_timer = self.loop.call_later(beat, self._beat)
        self._retry_timer: asyncio.TimerHandle | None = None
        self._attempt = self.loop.create_task(self._connect())

    def close(self, goodbye: Call | None = None) -> None:
        """Say a last word, if the link is up, and end."""
        for timer in (self._look_timer, self._beat_timer, self._retry_timer):
            if timer is not None:
                timer.cancel()
        self._attempt.cancel()
        connection, self._connection = self._connection, None
        if connection is not None:
            if goodbye is not None and self.is_up:
                connection.send(goodbye)
            connection.close()
        self.is_up = self.takes_calls = False

    # Calls

    def send(self, call: Call) -> None:
        """Only while it takes calls."""
        self._watch()
        if self.is_up:
            assert self._connection is not None
            self._connection.send(call)
        else:
            if not self._early:
                self._early_since = self.loop.time()
            self._early.append(call)

    def send_again(self, call: Call) -> None:
        """After an answer that says that the server has forgotten its scripts."""
        if self._connection is None:
            return call.given_up()
        if not self._is_loading:
            self._is_loading = True
            for words in self._loading:
                loading = _Words(words)
                self._connection.send(loading)
            loading.future.add_done_callback(self._loaded)
        return self._connection.send(call)

    def _loaded(self, _: object) -> None:
        self._is_loading = False

    def refused(self, error: Exception) -> None:
        """A call was answered with an error: the server cannot serve us, as it is or as what it takes us for."""
        words = str(error).split()
        if words[:1] == ["MOVED"] and ":" in words[-1]:
            host, _, port = words[-1].rpartition(":")
            self._moved_to = host, int(port)
        self._lose(str(error))
        if self._connection is not None:
            self._connection.abort()

    # Watching

    def _watch(self) -> None:
        if self._look_timer is None:
            self._look_timer = self.loop.call_later(self._time_box, self._look)

    def _look(self) -> None:
        """Is an answer overdue? Then look once more: a busy loop reads late what came in time."""
        self._look_timer = None
        overdue, self._overdue = self._overdue, None
        connection = self._connection
        since = self._early_since if self._early else connection.waits_since if connection is not None else None
        if since is None:
            return
        now = self.loop.time()
        if overdue is not None and since <= overdue:
            self._lose(f"no answer within {self._time_box * 1000:.0f} ms")
        elif since <= now - self._time_box:
            self._overdue = now - self._time_box
            self._look_timer = self.loop.call_later(0.001, self._look)
        else:
            self._look_timer = self.loop.call_at(since + self._time_box, self._look)

    def _beat(self) -> None:
        self._beat_timer = self.loop.call_later(self._beat_seconds * random.uniform(0.9, 1.1), self._beat)
        connection = self._connection
        if connection is None or not self._is_greeted:
            return
        since = connection.waits_since
        if self.is_up:
            self.send(self._owner.heartbeat())
        elif since is None:
            self._send_probe(connection)
        elif since < self.loop.time() - PATIENCE:
            connection.abort()

    def _send_probe(self, connection: Connection) -> None:
        self._probe = _Probe(self._owner.greeting(), self._rise)
        connection.send(self._probe)
        self._watch()

    def _rise(self) -> None:
        """A probe was answered in time."""
        self.is_up = self.takes_calls = True
        self._probe = None
        self._owner.back()
        early, self._early = self._early, []
        for call in early:
            self.send(call)

    def _lose(self, reason: str) -> None:
        was_asked, self.is_up, self.takes_calls = self.takes_calls, False, False
        if was_asked:
            self._owner.lost(reason)
        early, self._early = self._early, []
        for call in early:
            call.given_up()
        if self._connection is not None and self._is_greeted:
            self._connection.give_up()

    # What the connection tells

    def heard(self) -> None:
        connection = self._connection
        if connection is not None and self._is_greeted and not self.is_up and not connection.sent and not self._probe:
            self._send_probe(connection)  # what was late has come; perhaps it was only a hiccup

    def pushed(self, message: list[Any]) -> None:
        if message[0] == b"message":
            self._owner.pushed(message[1], message[2])

    def disconnected(self, connection: Connection, error: Exception | None) -> None:
        if connection is self._connection:
            self._connection, self._is_greeted, self._is_loading, self._probe = None, False, False, None
            self._lose(str(error or "the connection was closed"))
            self._retry()

    # Making it

    def _retry(self) -> None:
        if self._retry_timer is None:
            self._retry_timer = self.loop.call_later(random.uniform(0.1, 0.4), self._try_again)

    def _try_again(self) -> None:
        self._retry_timer = None
        self._attempt = self.loop.create_task(self._connect())

    async def _connect(self) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                address = await self._find()
                if self._moved_to is not None:
                    address, self._moved_to = address.moved_to(*self._moved_to), None
                connection = await address.connect(lambda: Connection(self))
                self._connection = connection
                self._owner.connecting()
                await self._greet(connection, address)
        except (OSError, ReplyError) as error:  # OSError: time-outs, too
            self._lose(str(error) or f"no answer within {PATIENCE:.0f} s")
            if self._connection is None:
                self._retry()
            else:
                self._connection.abort()
        else:
            self._is_greeted = True
            self._send_probe(connection)

    async def _greet(self, connection: Connection, address: Address) -> None:
        """Raises ReplyError, or OSError when the connection ends."""
        hello = ["HELLO", "3"]
        if address.password is not None:
            hello += ["AUTH", address.user or "default", address.password]
        await self._answer(connection, command(*hello, "SETNAME", "throttle"))
        if address.database:
            await self._answer(connection, command("SELECT", str(address.database)))
        # The confirmations are messages, not replies; an error would be one, and stands before the PONG.
        await self._answer(connection, command("SUBSCRIBE", *self._channels) + command("PING"))
        for words in self._loading:
            await self._answer(connection, words)

    async def _answer(self, connection: Connection, words: bytes) -> None:
        call = _Words(words)
        connection.send(call)
        reply = await call.future
        if isinstance(reply, ReplyError):
            raise reply


class _Words:
    """A command as it stands."""

    def __init__(self, words: bytes) -> None:
        self._words = words
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def encode(self) -> bytes:
        return self._words

    def replied(self, reply: Any) -> None:
        if not self.future.done():
            self.future.set_result(reply)

    def given_up(self) -> None:
        if not self.future.done():
            self.future.set_result(ReplyError("the connection was closed"))


class _Probe:
    """A heartbeat that finds out whether the server answers in time."""

    def __init__(self, call: Call, rise: Callable[[], None]) -> None:
        self._call = call
        self._rise = rise
        self._is_late = False
        self.encode = call.encode

    def replied(self, reply: Any) -> None:
        self._call.replied(reply)
        if not self._is_late and not isinstance(reply, ReplyError):
            self._rise()

    def given_up(self) -> None:
        self._is_late = True
