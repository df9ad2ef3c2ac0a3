"""The gate of a load limit that this process finds by itself and that moves, in front of any store.

The rules that follow the limit are decided by what runs in this process. All others are the store's: it is told whether
there is room as a rule of its own, that passes everybody or nobody, so that they are still asked in the policy's order
and in one atomic step. Hence with a shared store hits are counted for the fleet, while load and sleepers are each
process's own.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol
from weakref import WeakSet

from throttle.server.rule import Deferred, Hashes, LoadRule, Part, Refused, Rule, Served, Verdict
from throttle.server.sleepers import Sleeper, Sleepers
from throttle.server.stores import Store
from throttle.server.stores.in_front import InFront


class Limit(Protocol):
    """Says how many may run, and is told what became of them; see `load_limit.py`."""

    load_max: int
    was_full: bool
    """somebody found no room; set here"""

    def arrived(self, now: int) -> bool: ...

    def ended(self, kind: tuple[object, object], began: Any, now: int) -> bool: ...


@dataclass(slots=True, eq=False, weakref_slot=True)
class Prepared:
    """The rules for one class of caller, each way the load may stand."""

    rules: Sequence[Rule | LoadRule]
    room: LoadRule | None
    """the rule that follows the limit; None where only others do"""
    part: Part
    tells_quotas: bool
    at_most: int = 0
    busy_from: int = 0
    """the limit's parts as they stand"""
    ways: dict[tuple[bool, bool], Any] = field(default_factory=dict)
    """in the store's form, by: there is room; the rules that are asked under load are asked"""


class OwnLoad(InFront):
    """Admits while fewer run in this process than `limit` says; `moved` is called when that is another number.

    `has_thread`: there is a worker thread for one more beside so many; without, there is no room either.
    """

    def __init__(
        self,
        store: Store,
        limit: Limit,
        moved: Callable[[], None] = lambda: None,
        has_thread: Callable[[int], bool] = lambda load: True,
    ) -> None:
        super().__init__(store)
        self.limit = limit
        self._has_thread = has_thread
        self._moved = moved
        self._load_max = limit.load_max
        self._prepared: WeakSet[Prepared] = WeakSet()
        self._sleepers = Sleepers()
        self.asked = 0
        """how often in all"""
        self._asking = 0
        """for whom there was room, and whose verdict has yet to come"""
        self._closed = False

    def arrived(self, now: int) -> None:
        """A request is served at once; of those that find no room, this gate knows."""
        if self.limit.arrived(now):
            self._follow()

    def ended(self, kind: tuple[object, object], began: Any, now: int) -> None:
        """A request that was served has ended; its place is given back besides."""
        if self.limit.ended(kind, began, now):
            self._follow()

    def _follow(self) -> None:
        """The number has moved; sleepers for whom there is room now wake."""
        rises = self.limit.load_max > self._load_max
        self._load_max = self.limit.load_max
        for prepared in self._prepared:
            self._set(prepared)
        for sleeper in self._sleepers:
            assert sleeper.part is not None
            sleeper.at_most = sleeper.part.of(self._load_max)
        if rises:
            self._wake()
        self._moved()

    def _set(self, prepared: Prepared) -> None:
        prepared.at_most = prepared.part.of(self._load_max)
        prepared.busy_from = Part.HALF.of(self._load_max)

    # As every store

    @property
    def sleeping(self) -> int:
        return self.store.sleeping + len(self._sleepers)

    def open(self) -> None:
        self._closed = False
        super().open()

    def close(self) -> None:
        self._closed = True
        self._sleepers.close()
        super().close()

    def prepare(self, rules: Sequence[Rule | LoadRule], *, tells_quotas: bool = True) -> Any:
        room = next((rule for rule in rules if isinstance(rule, LoadRule) and rule.part is not None), None)
        if room is None and not any(isinstance(rule, Rule) and rule.from_part is not None for rule in rules):
            return self.store.prepare(rules, tells_quotas=tells_quotas)
        part = Part.ALL if room is None or room.part is None else room.part
        prepared = Prepared(rules, room, part, tells_quotas)
        self._way(prepared, False, True)  # what the store cannot do is said now, not to a caller
        self._set(prepared)
        self._prepared.add(prepared)
        return prepared

    def _way(self, prepared: Prepared, has_room: bool, is_busy: bool) -> Any:
        """The rules as the store is to ask them."""
        rules: list[Rule | LoadRule] = []
        for rule in prepared.rules:
            if isinstance(rule, LoadRule) and rule.part is not None:
                if not has_room:
                    rules.append(LoadRule(rule.name, at_most=0, sleeping_max=0))
            elif isinstance(rule, Rule) and rule.from_part is not None:
                if is_busy:
                    rules.append(replace(rule, from_part=None))
            else:
                rules.append(rule)
        way = self.store.prepare(rules, tells_quotas=prepared.tells_quotas)
        prepared.ways[has_room, is_busy] = way
        return way

    def admit(
        self, prepared: Any, hashes: Hashes, now: int, rank: int, sleeper: Sleeper | None = None
    ) -> Verdict | Awaitable[Verdict]:
        self.asked += 1
        if type(prepared) is not Prepared:
            return self.store.admit(prepared, hashes, now, rank, sleeper)
        if sleeper is not None:
            self._sleepers.called.discard(sleeper)  # the place reserved for it must not stand in its way
        load = self.store.running + len(self._sleepers.called) + self._asking
        has_room = prepared.room is None or (
            load < prepared.at_most and not (self._closed and sleeper is not None) and self._has_thread(load)
        )
        is_busy = load >= prepared.busy_from
        way = prepared.ways.get((has_room, is_busy)) or self._way(prepared, has_room, is_busy)
        verdict = self.store.admit(way, hashes, now, rank)
        if isinstance(verdict, Served):
            if sleeper is not None:
                self._sleepers.remove(sleeper)
            return verdict
        if isinstance(verdict, Refused):
            return self._refused(verdict, prepared, hashes, now, rank, sleeper)
        return self._settled(verdict, prepared, hashes, now, rank, sleeper, has_room)

    async def _settled(
        self,
        asked: Awaitable[Verdict],
        prepared: Prepared,
        hashes: Hashes,
        now: int,
        rank: int,
        sleeper: Sleeper | None,
        has_room: bool,
    ) -> Verdict:
        """The verdict of a store that is elsewhere; the place is reserved until it comes."""
        self._asking += has_room
        verdict: Verdict | None = None
        try:
            verdict = await asked
        finally:
            self._asking -= has_room
            if has_room and not isinstance(verdict, Served):
                self._wake()
        if isinstance(verdict, Refused):
            return self._refused(verdict, prepared, hashes, now, rank, sleeper)
        if sleeper is not None:
            self._sleepers.remove(sleeper)
        return verdict

    def _refused(
        self, verdict: Refused, prepared: Prepared, hashes: Hashes, now: int, rank: int, sleeper: Sleeper | None
    ) -> Refused:
        """The refusal; or, where only room was wanting, a wait for it."""
        room = prepared.room
        if isinstance(verdict, Deferred) or room is None or verdict.rule != room.name:
            if sleeper is not None:
                self.leave(sleeper)
            return verdict
        self.limit.was_full = True
        if sleeper is None:
            self.arrived(now)
        # What is told is how many run here: the limit's own count.
        load = self.store.running + 1
        if self._closed or (sleeper is None and not self._may_sleep(room, hashes)):
            if sleeper is not None:
                self.leave(sleeper)
            return Refused(verdict.rule, verdict.quotas, load)
        if sleeper is None:
            key = None if room.sleepers_per_key is None else hashes[room.sleepers_key]
            sleeper = self._sleepers.add(rank, prepared.at_most, key)
            sleeper.part = prepared.part
        else:
            self._sleepers.sleep_on(sleeper)
            self._wake()  # the place that was kept for it may do for another
        return Deferred(verdict.rule, verdict.quotas, load, sleeper)

    def _may_sleep(self, room: LoadRule, hashes: Hashes) -> bool:
        if len(self._sleepers) >= room.sleeping_max:
            return False
        return room.sleepers_per_key is None or self._sleepers.of(hashes[room.sleepers_key]) < room.sleepers_per_key

    def release(self) -> None:
        self.store.release()
        if self._sleepers.waiting:
            self._wake()

    def leave(self, sleeper: Sleeper) -> None:
        if sleeper.part is None:
            return super().leave(sleeper)
        self._sleepers.remove(sleeper)
        self._wake()
        return None

    def _wake(self) -> None:
        load = self.store.running + self._asking
        if self._has_thread(load + len(self._sleepers.called)):  # else who is woken would sleep on, and wake the next
            self._sleepers.call(load)
