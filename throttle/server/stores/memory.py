"""The four steps of admission in Python, for one process and one event loop; exact.

Never awaits inside a decision, never reads a clock, never holds more than `max_callers` callers a rule.
"""

import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from throttle.server.acquaintances import Acquaintance, Acquaintances
from throttle.server.rule import (
    CENTURY,
    MICROSECONDS,
    Deferred,
    Hashes,
    LoadRule,
    Quota,
    Refused,
    Rule,
    Served,
    Verdict,
)
from throttle.server.sleepers import Sleeper, Sleepers
from throttle.server.stores import Digest, Pause, RefusedHits
from throttle.server.stores.hit_log import BYTES_A_CALLER, DEEP, SHARDS, STAMP, HitLog, Shard, unexpired

SERVED = Served()
_oldest = struct.Struct(">Q").unpack_from


@dataclass(slots=True, eq=False)
class _Timed:
    """A timed rule with its numbers in the store's units."""

    rule: Rule
    name: str
    key: int
    window: int
    """microseconds"""
    full: int
    """bytes of a caller's hits when no more is served"""
    holds_refused: bool
    from_load: int
    shards: list[Shard]
    spread: int
    """how many shards there are"""


_Asked = tuple[_Timed, Shard, int, bytes]
"""a rule, the shard and key of its hits, and those that have not expired"""


@dataclass(slots=True, eq=False)
class Prepared:
    """The rules for one class of caller, in the policy's order."""

    rules: list[_Timed | LoadRule]
    timed: list[_Timed]
    tells_quotas: bool


def bed_key(rule: LoadRule, hashes: Hashes) -> int | None:
    """Under what a sleeper is counted with others; None where nobody asks."""
    return None if rule.sleepers_per_key is None else hashes[rule.sleepers_key]


class MemoryStore:
    """Counts for the requests of this process.

    `max_callers` bounds the callers that are held under each rule, and `max_bytes` those under all rules together, at
    150 bytes a caller with one hit, in equal parts. (Each hit more takes eight bytes, for as long as it counts.) Beyond
    it callers seen once are forgotten first; those who are refused stay, up to a third of it. `clock` is the
    middleware's.

    Raises ValueError for a cap below 192 callers (three generations of 64 shards), or a megabyte.
    """

    def __init__(
        self,
        *,
        max_callers: int = 1_048_576,
        max_bytes: int = 512 << 20,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if isinstance(max_callers, bool) or not isinstance(max_callers, int) or max_callers < 3 * SHARDS:
            raise ValueError(f"MemoryStore(max_callers={max_callers!r}): a whole number from {3 * SHARDS} is needed")
        if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1 << 20:
            raise ValueError(f"MemoryStore(max_bytes={max_bytes!r}): a whole number from {1 << 20} is needed")
        self.max_callers = max_callers
        self.max_bytes = max_bytes
        self._clock = clock  # asked for the end of a pause only, never in a decision
        self.paused: Pause | None = None
        self._running = 0
        self._closed = False
        self._sleepers = Sleepers()
        self._hits: dict[str, HitLog] = {}
        self._acquaintances = Acquaintances()

    @property
    def load(self) -> int:
        return self._running

    @property
    def running(self) -> int:
        return self._running

    @property
    def sleeping(self) -> int:
        return len(self._sleepers)

    def prepare(self, rules: Sequence[Rule | LoadRule], *, tells_quotas: bool = True) -> Prepared:
        own = [rule if isinstance(rule, LoadRule) else self._timed(rule) for rule in rules]
        return Prepared(own, [rule for rule in own if isinstance(rule, _Timed)], tells_quotas)

    def _timed(self, rule: Rule) -> _Timed:
        hits = self._hits.get(rule.name)
        if hits is None:
            hits = self._hits[rule.name] = HitLog(min(self.max_callers, self.max_bytes // BYTES_A_CALLER))
            self._share_out()
        window = round(rule.seconds * MICROSECONDS)
        hits.hold_for(window)
        return _Timed(
            rule,
            rule.name,
            int(rule.key),
            window,
            rule.at_most * STAMP,
            rule.holds_refused,
            rule.from_load,
            hits.shards,
            len(hits.shards),
        )

    def _share_out(self) -> None:
        """A part of the memory for each rule, whenever there is one more."""
        room = min(self.max_callers, self.max_bytes // BYTES_A_CALLER // len(self._hits))
        for hits in self._hits.values():
            hits.hold_at_most(room)

    def admit(
        self,
        prepared: Prepared,
        hashes: Hashes,
        now: int,
        rank: int,
        sleeper: Sleeper | None = None,
    ) -> Verdict:
        after = (now + 1).to_bytes(8, "big")
        if sleeper is not None:
            if self._closed:
                room = next(rule for rule in prepared.rules if isinstance(rule, LoadRule))
                return self._refused(room.name, prepared, hashes, now, sleeper, [])
            self._sleepers.called.discard(sleeper)  # the place reserved for it must not stand in its way
        asked: list[_Asked] = []
        for rule in prepared.rules:
            if isinstance(rule, LoadRule):
                if self._running + len(self._sleepers.called) >= rule.at_most:
                    return self._no_room(rule, prepared, hashes, now, rank, sleeper, asked)
                continue
            if rule.from_load and self._running + len(self._sleepers.called) < rule.from_load:
                continue
            key = hashes[rule.key]
            shard = rule.shards[key % rule.spread]
            # 1. Forget what has expired.
            log = shard.young.get(key)
            if log is None:
                log = shard.old.get(key, b"")
            while log and log < after:  # its oldest hit leaves by now: bytes compare from the left
                log = log[8:] if len(log) < DEEP else unexpired(log, after)
            # 2. Compare, in the policy's order (as with the load above).
            if len(log) >= rule.full:
                # 3. Hold a refused hit where the rule says so.
                if rule.holds_refused:
                    log = (log + (now + rule.window).to_bytes(8, "big"))[-rule.full :]
                    shard.hold(key, log, now, rule.full)
                asked.append((rule, shard, key, log[-rule.full :]))  # more are held if the limit was lowered
                return self._refused(rule.name, prepared, hashes, now, sleeper, asked)
            asked.append((rule, shard, key, log))
        # 4. Hold what is served.
        if sleeper is not None:
            self._sleepers.remove(sleeper)
        self._running += 1
        quotas: list[Quota] = []
        for rule, shard, key, log in asked:
            log += (now + rule.window).to_bytes(8, "big")
            if now < shard.turn_at and len(shard.young) < shard.room:
                shard.young[key] = log
            else:
                shard.hold(key, log, now, rule.full)
            if prepared.tells_quotas:
                quotas.append((rule.rule, (rule.full - len(log)) // 8, _oldest(log)[0] - now))
        return Served(quotas) if quotas else SERVED

    def _refused(
        self, rule: str, prepared: Prepared, hashes: Hashes, now: int, sleeper: Sleeper | None, asked: list[_Asked]
    ) -> Refused:
        if sleeper is not None:
            self.leave(sleeper)
        return Refused(rule, self._quotas(prepared, hashes, now, asked), self._running + 1)

    def _no_room(
        self,
        rule: LoadRule,
        prepared: Prepared,
        hashes: Hashes,
        now: int,
        rank: int,
        sleeper: Sleeper | None,
        asked: list[_Asked],
    ) -> Refused:
        if self._closed or (sleeper is None and not self._may_sleep(rule, hashes)):
            return self._refused(rule.name, prepared, hashes, now, sleeper, asked)
        if sleeper is None:
            sleeper = self._sleepers.add(rank, rule.at_most, bed_key(rule, hashes))
        else:
            self._sleepers.sleep_on(sleeper)
            self._sleepers.call(self._running)  # the place that was kept for it may do for another
        return Deferred(rule.name, self._quotas(prepared, hashes, now, asked), self._running + 1, sleeper)

    def _may_sleep(self, rule: LoadRule, hashes: Hashes) -> bool:
        if len(self._sleepers) >= rule.sleeping_max:
            return False
        return rule.sleepers_per_key is None or self._sleepers.of(hashes[rule.sleepers_key]) < rule.sleepers_per_key

    def _quotas(self, prepared: Prepared, hashes: Hashes, now: int, asked: list[_Asked]) -> list[Quota]:
        """What is left under each timed rule; those not yet asked are looked up, without a hit."""
        if len(asked) < len(prepared.timed):
            after = (now + 1).to_bytes(8, "big")
            for place, rule in enumerate(prepared.timed):
                if place < len(asked) and asked[place][0] is rule:
                    continue
                key = hashes[rule.key]
                shard = rule.shards[key % rule.spread]
                log = shard.find(key)
                if log and log < after:
                    log = unexpired(log, after)
                asked.insert(place, (rule, shard, key, log[-rule.full :]))
        quotas: list[Quota] = []
        for rule, _, _, log in asked:
            quotas.append((rule.rule, (rule.full - len(log)) // 8, _oldest(log)[0] - now if log else 0))
        return quotas

    def hold_refused(self, hits: Sequence[RefusedHits], now: int) -> None:
        after = (now + 1).to_bytes(STAMP, "big")
        for rule, key, leaves in hits:
            timed = self._timed(rule)
            shard = timed.shards[key % timed.spread]
            held = unexpired(shard.find(key), after) + unexpired(leaves, after)
            stamps = sorted(held[place : place + STAMP] for place in range(0, len(held), STAMP))
            if stamps:
                shard.hold(key, b"".join(stamps)[-timed.full :], now, timed.full)

    def is_acquaintance(self, key: int, now: int, who: Acquaintance) -> bool:
        return self._acquaintances.knows(key, now, who)

    def note_visit(self, key: int, now: int, who: Acquaintance) -> bool:
        return self._acquaintances.note(key, now, who)

    @property
    def digest(self) -> Digest:
        return hash

    def open(self) -> None:
        self._closed = False

    def pause(self, seconds: float | None = None, *, early: bool = False) -> None:
        """Serve nobody but the exempt, for so long or until `resume`; `early`: not even look at who asks."""
        if seconds is not None and not (isinstance(seconds, int | float) and 0 < seconds <= CENTURY):
            raise ValueError(
                f"pause(seconds={seconds!r}): seconds above 0 and below a century are needed, or None for no end"
            )
        until = None if seconds is None else round((self._clock() + seconds) * MICROSECONDS)
        self.paused = Pause(until, early)

    def resume(self) -> None:
        self.paused = None

    def release(self) -> None:
        self._running -= 1
        if self._sleepers.waiting:
            self._sleepers.call(self._running)

    def leave(self, sleeper: Sleeper) -> None:
        self._sleepers.remove(sleeper)
        self._sleepers.call(self._running)

    def close(self) -> None:
        self._closed = True
        self._sleepers.close()
