"""Which bots the site has met: they wake before strangers, and places are kept for them.

Kept in each process, and asked before its store is, for a caller's rules depend on it; a shared store tells visits to
all its workers. Ten thousand addresses that come once each are strangers, and a feed reader that comes every half hour
is not. A caller cannot hasten it: visits count only some seconds apart, and only served ones.
"""

from typing import NamedTuple

from throttle.server.rule import MICROSECONDS
from throttle.server.stores.hit_log import STAMP, HitLog, unexpired


class Acquaintance(NamedTuple):
    """From when on a caller is one; in microseconds."""

    visits: int
    apart: int
    lasts: int

    @classmethod
    def of(cls, visits: int, apart_seconds: float, seconds: float) -> "Acquaintance":
        return cls(visits, round(apart_seconds * MICROSECONDS), round(seconds * MICROSECONDS))


NEVER = Acquaintance(0, 0, 0)


class Acquaintances:
    """The visits of at most `max_callers`. Strangers, who came once, are forgotten first, acquaintances last."""

    def __init__(self, max_callers: int = 262_144) -> None:
        self._visits = HitLog(max_callers)
        self._shards, self._spread = self._visits.shards, len(self._visits.shards)

    def __len__(self) -> int:
        return len(self._visits)

    def knows(self, key: int, now: int, who: Acquaintance) -> bool:
        """The caller was served so often, within the time that a visit lasts."""
        log = self._shards[key % self._spread].find(key)
        return len(log) >= who.visits * STAMP and log[-who.visits * STAMP :] >= _stamp(now + 1)

    def note(self, key: int, now: int, who: Acquaintance) -> bool:
        """The caller is served now. False where that belongs to a visit that was noted already."""
        shard = self._shards[key % self._spread]
        log = shard.find(key)
        if log and log[-STAMP:] > _stamp(now + who.lasts - who.apart):
            return False
        if who.lasts > shard.window:
            self._visits.hold_for(who.lasts)
        full = who.visits * STAMP
        shard.hold(key, (unexpired(log, _stamp(now + 1)) + _stamp(now + who.lasts))[-full:], now, full)
        return True


def _stamp(time: int) -> bytes:
    return time.to_bytes(STAMP, "big")
