"""One count for all workers and hosts, in Redis 6.2 or later, or Valkey: one script call an ask.

It is a memory store that asks elsewhere first. Its own books say what runs and sleeps in this process, whoever admitted
it, and each call carries their numbers. So losing the server is a non-event (`link.py`): decisions go on by the books
and by hits counted here, and the server learns what runs here with the first call after its return.

Never awaits a release. Never sends an address: keys hold hashes.
"""

import asyncio
import secrets
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from throttle.server.acquaintances import Acquaintance
from throttle.server.rule import Deferred, Hashes, LoadRule, Refused, Rule, Served, Verdict
from throttle.server.sleepers import Sleeper
from throttle.server.stores import Digest, Pause, RefusedHits
from throttle.server.stores.link import Link
from throttle.server.stores.memory import SERVED, MemoryStore, bed_key
from throttle.server.stores.outage import Outage
from throttle.server.stores.redis_address import Address, address_from
from throttle.server.stores.redis_calls import (
    SCRIPTS,
    Ask,
    Keys,
    Prepared,
    Report,
    Visit,
    Visits,
    header,
    refused_hits,
    sleepers_key,
    ticket,
    visits_in,
)
from throttle.server.stores.redis_settings import settings_of
from throttle.server.stores.resp import ReplyError

STORE_LOST = "store_lost"
"""the reason of refusals where `on_store_failure` is «refuse»"""
SOON = 0.01
"""seconds after which the server is told of a change that no ask has told it"""


class RedisStore(MemoryStore):
    """Counts for all processes that use the same server, database and `site`.

    `url`: redis://, rediss:// or unix:// (see `redis_address.py`). `settings` are those of `RedisSettings`; the URL's
    query may hold them too, such as `?site=papers&on_store_failure=refuse`. Raises ValueError for what makes no sense;
    not for a server that does not answer.
    """

    def __init__(self, url: str, **settings: Any) -> None:
        super().__init__()
        self._address, query = address_from(url)
        self.settings = settings_of(settings, query)
        self.name = str(self._address)
        self.keys = Keys(self.settings.prefix, self.settings.site)
        self.worker = ""
        self._lease = self.settings.lease_seconds
        self._beat = min(0.5, self._lease / 10)
        self._link: Link | None = None
        self._epoch = 0
        self._taken = 0
        """how many admissions, of those the server counted on this connection, have been heard of"""
        self._told = 0
        """`_owed` when the server was last told"""
        self._elsewhere = 0
        self._sleeping_in_all = 0
        self._asleep: dict[int, Sleeper] = {}
        """whom the server knows as asleep here, by arrival"""
        self._leaving: list[str] = []
        self._visits: list[Visit] = []
        """to be told to the other workers"""
        self._pause_seen: bytes | None = None
        self._wish: list[bytes | str] | None = None
        """a pause to be told"""
        self._soon: asyncio.TimerHandle | None = None
        self._now = 0
        self.times_lost = 0
        """how often the server was given up"""

    # What is known

    @property
    def load(self) -> int:
        return self._running + self._elsewhere

    @property
    def sleeping(self) -> int:
        return self._sleeping_in_all if self.is_up else len(self._sleepers)

    @property
    def is_up(self) -> bool:
        """The server decides."""
        return self._link is not None and self._link.is_up

    @property
    def digest(self) -> Digest:
        key = blake2b(f"{self.settings.site}\0{self.settings.secret}".encode()).digest()

        def hashed(parts: tuple[object, ...]) -> int:
            return int.from_bytes(blake2b(repr(parts).encode(), digest_size=8, key=key).digest(), "big")

        return hashed

    # Begin and end

    def open(self) -> None:
        super().open()
        if self._link is None or self._link.loop is not asyncio.get_running_loop():
            self._begin()

    def _begin(self) -> Link:
        """A link for this loop, in this process: another name, since a fork would share the old one."""
        self.worker = secrets.token_hex(8)
        self._epoch = self._taken = 0
        self._soon = None
        self._outage = Outage(self.name, self.settings.on_store_failure, self._clock)
        self._link = Link(
            self,
            self.find,
            scripts=SCRIPTS,
            channels=[self.keys.channel(self.worker), self.keys.visits],
            time_box=self.settings.time_box,
            beat=self._beat,
        )
        return self._link

    async def find(self) -> Address:
        """Where the server is; asked before each attempt to connect."""
        return self._address

    async def ready(self, seconds: float = 5.0) -> bool:
        """Wait until the server decides; False if it does not within so many seconds."""
        self.open()
        deadline = asyncio.get_running_loop().time() + seconds
        while not self.is_up and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110  once, at a start
            await asyncio.sleep(0.005)
        return self.is_up

    def close(self) -> None:
        super().close()
        if self._running <= 0:
            self._end()

    def _end(self) -> None:
        """The last request has ended: the server need not wait for the lease to lapse."""
        link = self._link
        if link is not None and not link.loop.is_closed():
            if self._soon is not None:
                self._soon.cancel()
            self._outage.forget()
            link.close(self._report(lambda: ["bye"]) if link.is_up else None)
            self._link = None

    # Asks

    def prepare(self, rules: Sequence[Rule | LoadRule], *, tells_quotas: bool = True) -> Any:
        timed = [rule for rule in rules if isinstance(rule, Rule)]
        beds = [rule.sleepers_key for rule in rules if isinstance(rule, LoadRule) and rule.sleepers_per_key is not None]
        return Prepared(tuple(rules), tells_quotas, super().prepare(rules, tells_quotas=tells_quotas), timed, beds)

    def admit(self, prepared: Any, hashes: Hashes, now: int, rank: int, sleeper: Sleeper | None = None) -> Any:
        link = self._link
        if link is None or link.loop is not asyncio.get_running_loop():
            if self._closed:
                return super().admit(prepared.alone, hashes, now, rank, sleeper)
            link = self._begin()
        if not prepared.rules:  # nothing to be asked; that it runs is told soon
            self._running += 1
            self._tell_soon()
            return SERVED
        if self._closed and sleeper is not None:
            return super().admit(prepared.alone, hashes, now, rank, sleeper)
        ask = Ask(self, prepared, hashes, now, rank, sleeper)
        if not link.takes_calls:
            return self.alone(ask)
        if self._leaving and link.is_up:
            link.send(self.heartbeat())  # so that nobody is refused for who has left
        link.send(ask)
        return self._settled(ask)

    def hold_refused(self, hits: Sequence[RefusedHits], now: int) -> None:
        if self.is_up:
            assert self._link is not None
            self._link.send(refused_hits(self, hits, now))
        else:
            super().hold_refused(hits, now)

    async def _settled(self, ask: Ask) -> Verdict:
        try:
            return await ask.future
        except asyncio.CancelledError:
            if not ask.future.cancelled():  # the verdict had come, and nobody takes it
                verdict = ask.future.result()
                if isinstance(verdict, Served):
                    self.release()
                elif isinstance(verdict, Deferred):
                    self.leave(verdict.sleeper)
            raise

    def alone(self, ask: Ask) -> Verdict:
        """The verdict without the server."""
        meanwhile, sleeper = self.settings.on_store_failure, ask.sleeper
        if meanwhile == "local":
            return super().admit(ask.prepared.alone, ask.hashes, ask.now, ask.rank, sleeper)
        if sleeper is not None:
            self._sleepers.remove(sleeper)
        if meanwhile == "refuse":
            return Refused(STORE_LOST, (), self._running + 1)
        self._running += 1
        return SERVED

    def header(self, now: int, rank: int, sleeper: Sleeper | None) -> bytes:
        self._told = self._owed
        arrival, room, key = (0, 0, None) if sleeper is None else (sleeper.order[1], sleeper.at_most, sleeper.key)
        self._now = max(self._now, now) if self.settings.now_is_given else -1
        # That a lease is over is noticed a heartbeat later, and a busy loop's heart beats late.
        lease = round((self._lease - 2 * self._beat) * 1_000_000)
        may_sleep = not self._closed
        books = self._now + 1, self._epoch, self._running, self._taken
        return header(*books, lease, rank, arrival, room, may_sleep, sleepers_key(key).encode())

    def answered(self, ask: Ask, reply: Any) -> None:
        if type(reply) is not list:
            return self._failed(ask, reply)
        self._hear(reply)
        kind, rule, load, _, _, _, arrival = reply[:7]
        prepared, sleeper, future = ask.prepared, ask.sleeper, ask.future
        if future.done():  # nobody waits for it
            if kind == 3 and sleeper is None:
                room = prepared.rules[rule - 1]
                self._leaving.append(ticket(arrival, room.at_most, bed_key(room, ask.hashes)))
            return self._tell_soon()
        if kind == 1:
            self._running += 1
            if sleeper is not None:
                self._forget(sleeper)
            future.set_result(Served(prepared.quotas(reply)) if prepared.tells_quotas and prepared.timed else SERVED)
        elif kind == 3:
            room = prepared.rules[rule - 1]
            if sleeper is None:
                sleeper = self._sleepers.add(ask.rank, room.at_most, bed_key(room, ask.hashes), arrival)
            else:
                self._sleepers.sleep_on(sleeper)
            self._asleep[arrival] = sleeper
            future.set_result(Deferred(room.name, prepared.quotas(reply), load + 1, sleeper))
        elif kind == 2:
            if sleeper is not None:
                self._forget(sleeper)
            future.set_result(Refused(prepared.rules[rule - 1].name, prepared.quotas(reply), load + 1))
        else:  # the server takes us for one that has gone
            ask.given_up()
        return None

    def _failed(self, call: Ask | Report, error: Any) -> None:
        if self._link is None:  # closed
            return call.given_up()
        if isinstance(error, ReplyError) and str(error).startswith("NOSCRIPT") and not call.future.done():
            return self._link.send_again(call)
        call.given_up()
        return self._link.refused(error if isinstance(error, Exception) else ValueError("an answer of another kind"))

    def _hear(self, reply: list[Any]) -> None:
        """What every answer tells."""
        if reply[0] == 0:
            return
        _, _, load, share, self._taken, self._sleeping_in_all, _, is_known, now, pause, called = reply[:11]
        self._elsewhere = load - share
        if pause != self._pause_seen:
            self._see_pause(pause, now)
        for arrival in called:
            self._call(arrival)
        if not is_known and self.is_up:  # forgotten there: flushed, evicted, or we were silent for too long
            assert self._link is not None
            self._link.send(self.greeting())

    # Releases and sleepers

    def release(self) -> None:
        if self.is_up:
            self._running -= 1
            self._tell_soon()
        else:
            super().release()
        if self._closed and self._running <= 0:
            self._end()

    def leave(self, sleeper: Sleeper) -> None:
        if not self.is_up:
            self._asleep.pop(sleeper.order[1], None)
            return super().leave(sleeper)
        self._sleepers.remove(sleeper)
        if self._asleep.get(sleeper.order[1]) is sleeper:
            del self._asleep[sleeper.order[1]]
            self._sleeping_in_all -= 1
            self._leaving.append(ticket(sleeper.order[1], sleeper.at_most, sleeper.key))
            self._tell_soon()
        return None

    def _forget(self, sleeper: Sleeper) -> None:
        """It sleeps no more, and the server knows."""
        self._sleepers.remove(sleeper)
        self._asleep.pop(sleeper.order[1], None)

    def _call(self, arrival: int) -> bool:
        """The server wakes a sleeper. False if there is none such."""
        sleeper = self._asleep.get(arrival)
        if sleeper is not None:
            self._sleepers.call_one(sleeper)
        return sleeper is not None

    def pushed(self, channel: bytes, message: bytes) -> None:
        if channel == self.keys.visits.encode():
            self._hear_of(message)
        elif not self._call(int(message.split()[0])):
            self._leaving.append(message.decode())
            self._tell_soon()

    # What is told without being asked

    @property
    def _owed(self) -> int:
        """Changes with what the server cannot know, and not when an admission of its arrives."""
        return self._running - self._taken

    def _tell_soon(self) -> None:
        if self._soon is None and self._link is not None:
            self._soon = self._link.loop.call_later(SOON, self._tell)

    def _tell(self) -> None:
        self._soon = None
        visits, self._visits = self._visits, []
        if not self.is_up:
            return
        assert self._link is not None
        if visits:
            self._link.send(Visits(self, visits))
        if self._owed != self._told or self._leaving or self._wish:
            self._link.send(self.heartbeat())

    def heartbeat(self) -> Report:
        return self._report(self._news)

    def _report(self, words: Any) -> Report:
        return Report(self, words)

    def _news(self) -> list[bytes | str]:
        if self._wish is not None:
            return self._wish
        leaving, self._leaving = self._leaving, []
        return ["tell", *leaving]

    def greeting(self) -> Report:
        return self._report(self._all_that_sleep)

    def _all_that_sleep(self) -> list[bytes | str]:
        self._leaving = []
        self._asleep = {sleeper.order[1]: sleeper for sleeper in self._sleepers}
        waiting = self._sleepers.waiting
        return ["hello", *(f"{one.order[0]} {ticket(one.order[1], one.at_most, one.key)}" for one in waiting)]

    def connecting(self) -> None:
        """What was sent before is not answered any more; the server is told so by a new number."""
        self._epoch += 1
        self._taken = 0

    def reported(self, report: Report, reply: Any) -> None:
        if type(reply) is not list:
            return self._failed(report, reply)
        self._hear(reply)
        if report.told is self._wish:
            self._wish = None
        if not report.future.done():
            report.future.set_result(True)
        return None

    async def report(self) -> bool:
        """Tell the fleet what runs here now. False if the server does not answer."""
        if not self.is_up:
            return False
        assert self._link is not None
        report = self.heartbeat()
        self._link.send(report)
        return await report.future

    # Acquaintances

    def note_visit(self, key: int, now: int, who: Acquaintance) -> bool:
        is_new = super().note_visit(key, now, who)
        if is_new and self.is_up:
            self._visits.append((key, who))
            self._tell_soon()
        return is_new

    def _hear_of(self, visits: bytes) -> None:
        now = round(self._clock() * 1_000_000)
        for key, who in visits_in(visits, self.worker):
            super().note_visit(key, now, who)

    # The pause

    def pause(self, seconds: float | None = None, *, early: bool = False) -> None:
        """As in a memory store, for the whole fleet: here at once, elsewhere within a second."""
        super().pause(seconds, early=early)
        self._wish = ["pause", str(0 if seconds is None else max(1, round(seconds * 1_000_000))), str(int(early))]
        self._tell_soon()

    def resume(self) -> None:
        super().resume()
        self._wish = ["resume"]
        self._tell_soon()

    def _see_pause(self, pause: bytes | None, now: int) -> None:
        self._pause_seen = pause
        if pause is None:
            self.paused = None
            return
        until, early = pause.split()
        here = round(self._clock() * 1_000_000)
        self.paused = Pause(here + int(until) - now if int(until) else None, early == b"1")

    # The server comes and goes

    def lost(self, reason: str) -> None:
        self._sleepers.call(self._running)
        self.times_lost += 1
        self._outage.begins(reason)

    def back(self) -> None:
        self._outage.ends()
        assert self._link is not None
        if self._asleep.keys() != {sleeper.order[1] for sleeper in self._sleepers}:
            self._link.send(self.greeting())
        if self._wish is not None:
            self._tell_soon()
