"""The link between this process's paces and the ledger in Redis 6.2 or later, or Valkey: two threads, for any driver.

One thread sends what is posted, all that is there in one round trip, and keeps the timers; one listens for news. What
they bring is told to a pace under its host's lock, and wakes whoever waits, in a thread or in any event loop. No
request ever waits for the server but for a lease; a server that is lost costs one `time_box`, then each worker is
alone (`shared_pace`).
"""

import heapq
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from throttle.client.fleet.call import Call, Reply, news_from, reply_from
from throttle.client.fleet.redis_script import LUA, channel, keys
from throttle.client.fleet.shared_pace import SharedPace
from throttle.client.pace import Pace

try:
    import redis
    from redis.client import PubSub
except ImportError as missing:
    raise ImportError("shared= needs redis: pip install 'asgi-throttle[client,redis]'") from missing

logger = logging.getLogger("throttle.client")

RETRY = 0.5
"""seconds between two attempts at a server that is lost"""
LISTEN = 1.0
"""seconds after which the listener looks whether it is still wanted"""


class RedisFleet:
    """All processes that name the same server, database and `prefix` are one fleet.

    `url`: redis://, rediss:// or unix://, as redis-py reads it. `time_box`: seconds that a call may take. Raises
    ValueError for a URL that is none; not for a server that does not answer.
    """

    def __init__(self, url: str, *, prefix: str = "throttle", time_box: float = 0.25) -> None:
        self.prefix = prefix
        self.worker = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        options: dict[str, Any] = {"socket_timeout": time_box, "socket_connect_timeout": time_box, "retry": None}
        self._server = redis.Redis.from_url(url, **options)
        self._listening = redis.Redis.from_url(url, **options | {"socket_timeout": None})
        self.calls = 0
        """that the server has answered"""
        self._seats: dict[str, list[_Seat]] = {}
        self._made = 0
        self._changed = threading.Condition()
        self._posted: list[tuple[_Seat | None, Call]] = []
        self._timers: list[tuple[float, int, _Seat]] = []
        self._is_up = True
        self._is_closing = False
        self._sha = ""
        self._threads: list[threading.Thread] = []

    def pace(self, host: str, own: Callable[[], Pace]) -> SharedPace:
        """This process's part in the pace of `host`; `own` makes one from nothing."""
        seat = _Seat()
        self._made += 1
        seat.pace = SharedPace(
            host,
            f"{self.worker}:{self._made}",
            own,
            post=lambda _, call: self._post(seat, call),
            look_at=lambda _, at: self._look_at(seat, at),
        )
        with self._changed:
            self._seats.setdefault(host, []).append(seat)
            if not self._threads:
                self._threads = [
                    threading.Thread(target=run, name=f"throttle-{name}", daemon=True)
                    for name, run in (("fleet", self._work), ("news", self._listen))
                ]
                for thread in self._threads:
                    thread.start()
            if not self._is_up:
                seat.pace.failed(time.monotonic())
        return seat.pace

    def leave(self, pace: SharedPace) -> None:
        """Nothing more is sent by it."""
        with self._changed:
            left = [seat for seat in self._seats.get(pace.name, ()) if seat.pace is not pace]
            if left:
                self._seats[pace.name] = left
            else:
                self._seats.pop(pace.name, None)
            self._posted.append((None, pace.bye(time.monotonic())))
            self._changed.notify()

    def close(self) -> None:
        """Leave everywhere; waits for the server, at most a time-box or two."""
        for seat in self._all():
            self.leave(seat.pace)
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        for thread in self._threads[:1]:
            thread.join()
        self._server.close()  # the listener closes its own, within a second

    def _all(self) -> list["_Seat"]:
        return [seat for seats in list(self._seats.values()) for seat in seats]

    # -- in the driver's thread

    def _post(self, seat: "_Seat", call: Call) -> None:
        with self._changed:
            self._posted.append((seat, call))
            self._changed.notify()

    def _look_at(self, seat: "_Seat", at: float) -> None:
        with self._changed:
            heapq.heappush(self._timers, (at, id(seat), seat))
            self._changed.notify()

    # -- in the fleet's thread

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait(self._patience())
                posted, self._posted = self._posted, []
                due = self._due(time.monotonic())
                is_closing = self._is_closing
            for seat in due:
                seat.tell(lambda pace: pace.timer(time.monotonic()))
            if not self._is_up:
                self._look_again()
            if posted and self._is_up:
                self._call(posted)
            elif posted:
                self._tell_failed()
            if is_closing:
                return

    def _patience(self) -> float | None:
        """Seconds until there is something to do by itself."""
        if self._posted or self._is_closing:
            return 0.0
        until = self._timers[0][0] - time.monotonic() if self._timers else None
        if not self._is_up:
            until = min(RETRY, until) if until is not None else RETRY
        return None if until is None else max(0.0, until)

    def _due(self, now: float) -> list["_Seat"]:
        found: list[_Seat] = []
        while self._timers and self._timers[0][0] <= now:
            found.append(heapq.heappop(self._timers)[2])
        return found

    def _call(self, posted: list[tuple["_Seat | None", Call]]) -> None:
        try:
            replies = [reply_from(raw) for raw in self._ask([call for _, call in posted])]
        except (redis.RedisError, OSError, ValueError) as error:  # ValueError: something else answers there
            self._lose(" ".join(str(error).split()) or type(error).__name__)
            return
        for (seat, _), reply in zip(posted, replies, strict=True):
            if seat is not None:
                seat.answer(reply)

    def _ask(self, calls: list[Call]) -> list[Any]:
        """Raises RedisError, OSError."""
        if not self._sha:
            self._sha = str(self._server.script_load(LUA))
        while True:
            pipe = self._server.pipeline(transaction=False)
            for call in calls:
                names = keys(self.prefix, call.host)
                pipe.evalsha(self._sha, len(names), *names, *call.arguments(0, channel(self.prefix)))
            try:
                replies = pipe.execute()
            except redis.exceptions.NoScriptError:  # the server was restarted, and none has run
                self._sha = str(self._server.script_load(LUA))
                continue
            self.calls += len(calls)
            return replies

    def _lose(self, reason: str) -> None:
        if self._is_up:
            self._is_up = False
            logger.warning("the shared pace's server is lost (%s): each worker keeps to its share, alone", reason)
        self._tell_failed()

    def _tell_failed(self) -> None:
        for seat in self._all():
            seat.tell(lambda pace: pace.failed(time.monotonic()))

    def _look_again(self) -> None:
        try:
            self._server.ping()
        except (redis.RedisError, OSError):
            return
        self._is_up = True
        logger.warning("the shared pace's server is back")
        for seat in self._all():
            seat.tell(lambda pace: pace.back(time.monotonic()))

    # -- in the listening thread

    def _listen(self) -> None:
        with self._listening:
            while not self._is_closing:
                self._listen_once()

    def _listen_once(self) -> None:
        try:
            with PubSub(self._listening.connection_pool, ignore_subscribe_messages=True) as messages:
                messages.subscribe(channel(self.prefix))
                while not self._is_closing:
                    message = messages.get_message(timeout=LISTEN)
                    if message is not None:
                        self._hear(message["data"])
        except (redis.RedisError, OSError):  # the other thread tells of it
            time.sleep(RETRY)

    def _hear(self, data: bytes) -> None:
        try:
            news = news_from(data.decode())
        except ValueError:
            return  # somebody else's
        for seat in self._seats.get(news.host, ()):
            seat.tell(lambda pace: pace.heard(news, time.monotonic()))


class _Seat:
    """A pace, and how it is told something."""

    pace: SharedPace

    def answer(self, reply: Reply) -> None:
        self.tell(lambda pace: pace.answered(reply, time.monotonic()))

    def tell(self, told: Callable[[SharedPace], None]) -> None:
        host = self.pace.host
        if host is None:
            return
        try:
            with host.lock:
                told(self.pace)
        except Exception:  # a listener's, or a bug: the thread serves all hosts, and must go on
            logger.exception("the shared pace of %s could not be told something", self.pace.name)
