"""One site as it would have been under one set of limits: the live store, and time that jumps from event to event.

Does what the middleware does with a verdict, without waiting: a request ends when its duration is over, a sleeper asks
again when it is woken, and for the last time when its delay is over. Never reads a clock.
"""

import heapq
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from throttle.server.policy import Limits
from throttle.server.rule import MICROSECONDS, Deferred, Hashes, Refused, Served
from throttle.server.sleepers import Sleeper
from throttle.server.stores.memory import MemoryStore

Who = TypeVar("Who")

Note = Callable[[Who, bool, str | None], None]
"""Told of each request, once: whose it was, whether it slept, and the rule that refused it (None: served)."""


class _Sleeping(Generic[Who]):
    """A request that waits for room."""

    __slots__ = ("deadline", "duration", "hashes", "prepared", "rank", "sleeper", "who")

    def __init__(
        self, who: Who, prepared: Any, hashes: Hashes, rank: int, duration: int, sleeper: Sleeper, deadline: int
    ) -> None:
        self.who = who
        self.prepared = prepared
        self.hashes = hashes
        self.rank = rank
        self.duration = duration
        self.sleeper = sleeper
        self.deadline = deadline


class ReplayedSite(Generic[Who]):
    """Must be used while an event loop runs, since sleepers hold futures of it; nothing awaits them."""

    def __init__(self, limits: Limits, note: Note[Who]) -> None:
        self.limits = limits
        self.store = MemoryStore()
        self._note = note
        self._sleeping: list[_Sleeping[Who]] = []
        self._events: list[tuple[int, int, _Sleeping[Who] | None]] = []
        """what happens when: the end of a request, or of a sleeper's delay"""
        self._counted = 0

    def ask(self, who: Who, prepared: Any, hashes: Hashes, now: int, rank: int, duration: int) -> None:
        """A request that comes at `now` and takes `duration`, once it is served; both in microseconds.

        `now` must not be earlier than in the call before.
        """
        if self._events and self._events[0][0] <= now:
            self.pass_to(now)
        verdict = self.store.admit(prepared, hashes, now, rank)
        if isinstance(verdict, Served):
            self._serve(now, duration)
            self._note(who, False, None)
        elif isinstance(verdict, Deferred):
            deadline = now + round(self.limits.defer_delay.seconds(verdict.load) * MICROSECONDS)
            sleeping = _Sleeping(who, prepared, hashes, rank, duration, verdict.sleeper, deadline)
            self._sleeping.append(sleeping)
            self._at(deadline, sleeping)
        else:
            self._note(who, False, verdict.rule)

    def pass_to(self, now: int) -> None:
        """Let happen what happens until `now`, in its order."""
        events = self._events
        while events and events[0][0] <= now:
            at, _, sleeping = heapq.heappop(events)
            if sleeping is None:
                self._release(at)
            elif sleeping in self._sleeping:
                self._ask_again(sleeping, at)
                self._wake(at)

    def finish(self) -> None:
        """Let happen all that is still to come."""
        while self._events:
            self.pass_to(self._events[0][0])

    def _at(self, when: int, sleeping: _Sleeping[Who] | None) -> None:
        self._counted += 1
        heapq.heappush(self._events, (when, self._counted, sleeping))

    def _serve(self, now: int, duration: int) -> None:
        if duration > 0:
            self._at(now + duration, None)
        else:
            self._release(now)

    def _release(self, now: int) -> None:
        self.store.release()
        if self._sleeping:
            self._wake(now)

    def _wake(self, now: int) -> None:
        """Those who were woken ask again, in the order in which they were; a refusal may wake the next."""
        while woken := [one for one in self._sleeping if one.sleeper.woken.done()]:
            for one in sorted(woken, key=lambda one: one.sleeper.order):
                self._ask_again(one, now)

    def _ask_again(self, one: _Sleeping[Who], now: int) -> None:
        verdict = self.store.admit(one.prepared, one.hashes, now, one.rank, one.sleeper)
        if isinstance(verdict, Deferred) and now < one.deadline:
            return
        self._sleeping.remove(one)
        self.store.leave(one.sleeper)
        if isinstance(verdict, Refused):
            self._note(one.who, True, verdict.rule)
        else:
            self._note(one.who, True, None)
            self._serve(now, one.duration)
