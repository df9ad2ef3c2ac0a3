"""One site as it would have been under one set of limits: the live store, and time that jumps from event to event.

Does what the middleware does with a verdict, without waiting: a request ends when its duration is over, a sleeper asks
again when it is woken, and for the last time when its delay is over. Never reads a clock.
"""

import heapq

from throttle.operate.replay.tally import Tally, Who
from throttle.server.caller import Rules
from throttle.server.rule import MICROSECONDS, Deferred, Hashes, Refused, Served
from throttle.server.sleepers import Sleeper
from throttle.server.stores.memory import MemoryStore

CALLERS = 1 << 17
"""held under each rule at once, an eighth of what a live store may hold: ten sites are replayed side by side, and a
smaller table is faster"""


class _Sleeping:
    """A request that waits for room."""

    __slots__ = ("deadline", "duration", "hashes", "rules", "sleeper", "tally", "who")

    def __init__(
        self, tally: Tally, who: Who, rules: Rules, hashes: Hashes, duration: int, sleeper: Sleeper, deadline: int
    ) -> None:
        self.tally = tally
        self.who = who
        self.rules = rules
        self.hashes = hashes
        self.duration = duration
        self.sleeper = sleeper
        self.deadline = deadline


class ReplayedSite:
    """Must be used while an event loop runs, since sleepers hold futures of it; nothing awaits them."""

    def __init__(self) -> None:
        self.store = MemoryStore(max_callers=CALLERS)
        self._sleeping: list[_Sleeping] = []
        self._events: list[tuple[int, int, _Sleeping | None]] = []
        """what happens when: the end of a request, or of a sleeper's delay"""
        self._counted = 0

    def ask(self, tally: Tally, who: Who, rules: Rules, hashes: Hashes, now: int, duration: int) -> None:
        """A request that comes at `now` and takes `duration`, once it is served; both in microseconds.

        `now` must not be earlier than in the call before. `tally` is told who slept or was refused.
        """
        if self._events and self._events[0][0] <= now:
            self.pass_to(now)
        verdict = self.store.admit(rules.prepared, hashes, now, rules.rank)
        if isinstance(verdict, Served):
            if duration > 0:
                self._at(now + duration, None)
            else:
                self._release(now)
        elif isinstance(verdict, Deferred):
            deadline = now + round(rules.limits.defer_delay.seconds(verdict.load) * MICROSECONDS)
            sleeping = _Sleeping(tally, who, rules, hashes, duration, verdict.sleeper, deadline)
            self._sleeping.append(sleeping)
            self._at(deadline, sleeping)
        else:
            tally.note(who, False, verdict.rule)

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

    def _at(self, when: int, sleeping: _Sleeping | None) -> None:
        self._counted += 1
        heapq.heappush(self._events, (when, self._counted, sleeping))

    def _release(self, now: int) -> None:
        self.store.release()
        if self._sleeping:
            self._wake(now)

    def _wake(self, now: int) -> None:
        """Those who were woken ask again, in the order in which they were; a refusal may wake the next."""
        while woken := [one for one in self._sleeping if one.sleeper.woken.done()]:
            for one in sorted(woken, key=lambda one: one.sleeper.order):
                self._ask_again(one, now)

    def _ask_again(self, one: _Sleeping, now: int) -> None:
        verdict = self.store.admit(one.rules.prepared, one.hashes, now, one.rules.rank, one.sleeper)
        if isinstance(verdict, Deferred) and now < one.deadline:
            return
        self._sleeping.remove(one)
        self.store.leave(one.sleeper)
        if isinstance(verdict, Refused):
            one.tally.note(one.who, True, verdict.rule)
            return
        one.tally.note(one.who, True, None)
        if one.duration > 0:
            self._at(now + one.duration, None)
        else:
            self.store.release()
