"""What became of whom, counted in bounded memory however long the log is."""

from collections import Counter

from throttle.server.agents import CallerClass
from throttle.server.stores.hit_log import STAMP, HitLog

COUNTED = 1 << 17
NAMED = 10_000
BURST_MAX = 1000
"""the longest burst that is told apart from longer ones"""
HONEST = 60_000_000
"""microseconds for which a burst may go on beyond the hit stack and still be a person's"""


class Distinct:
    """How many different hashes were added: exact up to 131,072, then estimated within 1 %, in the same memory.

    Adaptive sampling (Wegman; Flajolet, «On adaptive sampling», 1990): once full, only every second hash is kept, then
    every fourth.
    """

    __slots__ = ("_kept", "_mask")

    def __init__(self) -> None:
        self._kept: set[int] = set()
        self._mask = 0

    def add(self, hashed: int) -> None:
        if hashed & self._mask == 0:
            self._kept.add(hashed)
            if len(self._kept) > COUNTED:
                self._mask = self._mask << 1 | 1
                self._kept = {one for one in self._kept if one & self._mask == 0}

    def __len__(self) -> int:
        return len(self._kept) * (self._mask + 1)


Who = tuple[int, str, bytes, int]
"""Whose request it was: the hash under which its hits count, address, agent, microseconds since 1970. A bare tuple,
since one is made for each line."""


class RefusedCaller:
    """One caller that was refused."""

    __slots__ = ("address", "agent", "by", "caller_class", "first")

    def __init__(self, caller_class: CallerClass, address: str, agent: bytes, first: int) -> None:
        self.caller_class = caller_class
        self.address = address
        self.agent = agent
        self.first = first
        """microseconds since 1970 of the first refused request"""
        self.by: Counter[str] = Counter()


class WorstCallers:
    """Who was refused most. Of more than 10,000 callers those with the fewest refusals are forgotten now and then."""

    def __init__(self) -> None:
        self._callers: dict[int, RefusedCaller] = {}

    def note(self, who: Who, caller_class: CallerClass, rule: str) -> None:
        key, address, agent, at = who
        caller = self._callers.get(key)
        if caller is None:
            if len(self._callers) >= 2 * NAMED:
                self._callers = dict(self._most(NAMED))
            caller = self._callers[key] = RefusedCaller(caller_class, address, agent, at)
        caller.by[rule] += 1

    def most(self, count: int) -> list[RefusedCaller]:
        return [caller for _, caller in self._most(count)]

    def _most(self, count: int) -> list[tuple[int, RefusedCaller]]:
        return sorted(self._callers.items(), key=lambda item: -item[1].by.total())[:count]


class Tally:
    """What became of the requests of one class under one set of limits."""

    def __init__(self, caller_class: CallerClass, worst: WorstCallers | None = None) -> None:
        self.caller_class = caller_class
        self._worst = worst
        self.requests = 0
        self.callers = Distinct()
        self.callers_refused = Distinct()
        self.slept = 0
        self.refused_by: Counter[str] = Counter()

    def note(self, who: Who, has_slept: bool, rule: str | None) -> None:
        """A request slept, or was refused by a rule, or both; those that are served at once are the rest."""
        if has_slept:
            self.slept += 1
        if rule is not None:
            self.refused_by[rule] += 1
            self.callers_refused.add(who[0])
            if self._worst is not None:
                self._worst.note(who, self.caller_class, rule)

    @property
    def refused(self) -> int:
        return self.refused_by.total()

    @property
    def served(self) -> int:
        return self.requests - self.refused


class Bursts:
    """The longest burst of any caller: its most hits within a window.

    A burst is honest that comes down to `full` hits again within a minute: a person opens many pages at once, then
    reads; a machine goes on.
    """

    def __init__(self, window: int, full: int) -> None:
        self._window = window
        self._full = full
        hits = HitLog(3 * COUNTED)
        hits.hold_for(window)
        self._shards = hits.shards
        self._beyond: dict[int, tuple[int, int, int]] = {}
        """callers beyond `full`: since when, the latest hit, the most hits"""
        self.longest = 0
        self.honest = 0

    def note(self, key: int, now: int) -> None:
        shard = self._shards[key % len(self._shards)]
        log, stamp = shard.find(key), now.to_bytes(STAMP, "big")
        while log and log[:STAMP] <= stamp:
            log = log[STAMP:]
        log = log[-(BURST_MAX - 1) * STAMP :] + (now + self._window).to_bytes(STAMP, "big")
        shard.hold(key, log, now, self._full * STAMP)
        hits = len(log) // STAMP
        if hits > self.longest:
            self.longest = hits
        if hits <= self._full:
            if hits > self.honest:
                self.honest = hits
            if key in self._beyond:
                self._end(self._beyond.pop(key))
        else:
            since, _, most = self._beyond.get(key, (now, now, 0))
            self._beyond[key] = (since, now, max(most, hits))
            if len(self._beyond) > NAMED:
                self._forget(now - self._window)

    def finish(self) -> None:
        """All bursts under way are over."""
        for burst in self._beyond.values():
            self._end(burst)
        self._beyond.clear()

    def _end(self, burst: tuple[int, int, int]) -> None:
        since, latest, most = burst
        if latest - since <= HONEST and most > self.honest:
            self.honest = most

    def _forget(self, before: int) -> None:
        over = [key for key, (_, latest, _) in self._beyond.items() if latest <= before]
        for key in over or list(self._beyond)[: NAMED // 2]:
            self._end(self._beyond.pop(key))
