"""Hit stacks that are full of hits seen here: one more is refused here, and the store is told behind the answer.

A refused hit counts on the stack, so who hammers is refused for as long as he does. From the first refusal on, this
process keeps the last of a caller's hits. When there are as many as the stack holds, all held still, he is refused
whatever happens elsewhere: hits elsewhere only make the stack younger. So his hits are counted here, and the store is
told of them together, `BEHIND` after the first of them at the latest, and before anything else is asked for him. Hence

- in one process each verdict is what the store would have said;
- whoever is refused here, the store would have refused; over several processes it may serve one whom it would have
  refused, if it has yet to hear of hits that another process refused within the last `BEHIND`;
- the wait told is at most `LATE` longer, and never too short but for hits elsewhere;
- what a process has not told when it dies, of the last `BEHIND`, does not count.

Only where nothing but room stands before the stack in the policy's order. Room is judged by the load as last heard of
here: who has none is asked about in the store. Every `LONGEST` the store is asked all the same, which says what is left
under the other rules, and whether hits were wiped out there by hand.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from throttle.server.rule import MICROSECONDS, Hashes, LoadRule, Refused, Rule, Served, Verdict
from throttle.server.sleepers import Sleeper
from throttle.server.stores import RefusedHits, Store
from throttle.server.stores.hit_log import STAMP
from throttle.server.stores.in_front import InFront

KNOWN = 4096
"""callers at once, under each rule; beyond that, the one who came first is forgotten"""
DEEPEST = 128
"""hits; a deeper stack is the store's alone"""
LONGEST = MICROSECONDS
LATE = MICROSECONDS // 20
"""what the store takes at most until it counts a hit"""
BEHIND = 0.1
"""seconds"""
A_CALL = 64
"""callers whose hits are told in one call: the server does nothing else meanwhile"""


class _Stack:
    """A caller's last hits, by the times at which they leave; as many as count."""

    __slots__ = ("asked_again_at", "asked_by", "late", "leaves", "refused", "told_at", "untold")

    def __init__(self) -> None:
        self.leaves = b""
        self.untold = 0
        """bytes at the end of them of which the store has not heard"""
        self.refused: Refused | None = None
        """as the store said it last"""
        self.asked_by: Prepared | None = None
        """the rules under which it did"""
        self.told_at = self.asked_again_at = 0
        self.late = LATE


class _Stacks(dict[int, _Stack]):
    """Those of one rule, by the caller's key."""

    __slots__ = ("__weakref__",)


@dataclass(slots=True, eq=False)
class Prepared:
    """Rules with a hit stack, before which nothing stands but room."""

    in_store: Any
    stack: Rule
    key: int
    window: int
    """microseconds"""
    full: int
    """bytes of the hits that it holds"""
    room: int
    """others that may run, for the stack to be asked"""
    stacks: _Stacks


class KnownStacks(InFront):
    """In front of a store that is elsewhere. `clock`: monotonic seconds, of which `now` is made."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        super().__init__(store)
        self._clock = clock
        self._stacks: WeakValueDictionary[Rule, _Stacks] = WeakValueDictionary()
        self._untold: dict[_Stack, RefusedHits] = {}
        """of whom the store is to be told; the hits are filled in when it is"""
        self._timer: asyncio.TimerHandle | None = None

    def prepare(self, rules: Sequence[Rule | LoadRule], *, tells_quotas: bool = True) -> Any:
        prepared = super().prepare(rules, tells_quotas=tells_quotas)
        room = 1 << 62
        for rule in rules:
            if isinstance(rule, LoadRule):
                room = min(room, rule.at_most)
            elif rule.holds_refused and not rule.from_load and rule.at_most <= DEEPEST:
                stacks = self._stacks.setdefault(rule, _Stacks())
                window = round(rule.seconds * MICROSECONDS)
                return Prepared(prepared, rule, int(rule.key), window, STAMP * rule.at_most, room, stacks)
            else:
                break
        return prepared

    def admit(
        self, prepared: Any, hashes: Hashes, now: int, rank: int, sleeper: Sleeper | None = None
    ) -> Verdict | Awaitable[Verdict]:
        if type(prepared) is not Prepared:
            return self.store.admit(prepared, hashes, now, rank, sleeper)
        stack = prepared.stacks.get(hashes[prepared.key])
        if stack is not None:
            leaves = stack.leaves
            if (
                len(leaves) == prepared.full
                and now < stack.asked_again_at
                and leaves > (now + 1).to_bytes(STAMP, "big")  # the oldest is held still: bytes compare from the left
                and stack.asked_by is prepared
                and sleeper is None
                and self.store.load < prepared.room
            ):
                return self._again(prepared, stack, hashes, now)
            if stack.untold:
                self._tell()
        verdict = self.store.admit(prepared.in_store, hashes, now, rank, sleeper)
        return verdict if isinstance(verdict, Served | Refused) else self._noted(verdict, prepared, hashes, now)

    async def _noted(self, asked: Awaitable[Verdict], prepared: Prepared, hashes: Hashes, now: int) -> Verdict:
        verdict = await asked
        stack = prepared.stacks.get(hashes[prepared.key])
        is_full = type(verdict) is Refused and verdict.rule == prepared.stack.name
        if is_full and stack is None:
            if len(prepared.stacks) >= KNOWN:
                self._forget(prepared.stacks)
            stack = prepared.stacks[hashes[prepared.key]] = _Stack()
        if stack is not None and (is_full or isinstance(verdict, Served)):
            if stack.untold:
                self._tell()  # what was refused here while this one was on its way
            _push(prepared, stack, now)
        if stack is not None and isinstance(verdict, Refused) and is_full:
            stack.refused, stack.asked_by = verdict, prepared
            stack.told_at = int(self._clock() * MICROSECONDS + 0.5)
            stack.late = max(LATE, stack.told_at - now)
            stack.asked_again_at = now + LONGEST
        return verdict

    def _again(self, prepared: Prepared, stack: _Stack, hashes: Hashes, now: int) -> Refused:
        _push(prepared, stack, now)
        stack.untold = min(stack.untold + STAMP, prepared.full)
        if stack not in self._untold:
            self._untold[stack] = RefusedHits(prepared.stack, hashes[prepared.key], b"")
            if len(self._untold) >= A_CALL:
                self._tell()
            elif self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(BEHIND, self._tell)
        told = stack.refused
        assert told is not None
        passed = now - stack.told_at
        reset = int.from_bytes(stack.leaves[:STAMP], "big") - now + stack.late
        quotas = [
            (rule, 0, reset) if rule is prepared.stack else (rule, left, max(lasts - passed, 0))
            for rule, left, lasts in told.quotas
        ]
        return Refused(told.rule, quotas, self.store.load + 1)

    def _tell(self) -> None:
        """Tell the store of what was refused here."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        untold, self._untold = self._untold, {}
        if not untold:
            return
        hits = []
        for stack, told in untold.items():
            hits.append(told._replace(leaves=stack.leaves[-stack.untold :]))
            stack.untold = 0
        self.store.hold_refused(hits, int(self._clock() * MICROSECONDS + 0.5))

    def _forget(self, stacks: _Stacks) -> None:
        oldest = next(iter(stacks))
        if stacks[oldest].untold:
            self._tell()
        del stacks[oldest]

    def open(self) -> None:
        self._timer = None  # the loop may be another one
        super().open()

    def close(self) -> None:
        self._tell()
        super().close()


def _push(prepared: Prepared, stack: _Stack, now: int) -> None:
    """One hit more; those beyond what the rule holds, the oldest, are gone."""
    leaves = (now + prepared.window).to_bytes(STAMP, "big")
    if leaves < stack.leaves[-STAMP:]:  # its verdict came after another's that had come later
        leaves, stack.leaves = stack.leaves[-STAMP:], stack.leaves[:-STAMP] + leaves
    stack.leaves = (stack.leaves + leaves)[-prepared.full :]
