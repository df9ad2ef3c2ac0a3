"""Refusals of which it is known that they still hold, given without asking a store that is elsewhere.

Only those by a last hit: what holds such a rule is a hit that was served, and nobody is served under its key before it
has left. So the same caller, asked for the same rules, is refused again until then, whatever happens elsewhere, and
the refused hit counts nowhere. (A hit stack's refusals count: see `known_stacks.py`.) Other limits make other rules, of
which nothing is known; a pause comes before all.

What was counted elsewhere meanwhile is not told, as Retry-After allows; hits that are wiped out of the store by hand
count here for `LONGEST` at most.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from throttle.server.rule import MICROSECONDS, Hashes, LoadRule, Quota, Refused, Rule, Served, Verdict
from throttle.server.sleepers import Sleeper
from throttle.server.stores import Store
from throttle.server.stores.in_front import InFront

KNOWN = 4096
"""refusals at once; beyond that, the oldest is forgotten"""
LONGEST = 10 * MICROSECONDS


@dataclass(slots=True, eq=False)
class Prepared:
    """Rules that begin with last hits."""

    in_store: Any
    last_hits: frozenset[str]
    """their names, up to the first rule of another kind: behind it, the reason could be another one next time"""


class _Known(NamedTuple):
    """One refusal, as the store gave it."""

    refused: Refused
    told_at: int
    """when it had come; counted from there a wait is never told too short"""
    until: int
    """the first at which anything of it changes, at the earliest"""


class KnownRefusals(InFront):
    """In front of a store that is elsewhere. `clock`: monotonic seconds, of which `now` is made."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        super().__init__(store)
        self._clock = clock
        self._known: dict[tuple[Prepared, Hashes], _Known] = {}

    def prepare(self, rules: Sequence[Rule | LoadRule], *, tells_quotas: bool = True) -> Any:
        prepared = super().prepare(rules, tells_quotas=tells_quotas)
        names: list[str] = []
        for rule in rules:
            if isinstance(rule, LoadRule) or rule.at_most != 1 or rule.holds_refused or rule.from_load:
                break
            names.append(rule.name)
        return Prepared(prepared, frozenset(names)) if names else prepared

    def admit(
        self, prepared: Any, hashes: Hashes, now: int, rank: int, sleeper: Sleeper | None = None
    ) -> Verdict | Awaitable[Verdict]:
        if type(prepared) is not Prepared:
            return self.store.admit(prepared, hashes, now, rank, sleeper)
        if sleeper is not None:
            return self.store.admit(prepared.in_store, hashes, now, rank, sleeper)
        asks = prepared, hashes
        known = self._known.get(asks)
        if known is not None:
            if now < known.until:
                return self._again(known, now)
            del self._known[asks]
        verdict = self.store.admit(prepared.in_store, hashes, now, rank)
        return verdict if isinstance(verdict, Served | Refused) else self._noted(verdict, asks, now)

    async def _noted(self, asked: Awaitable[Verdict], asks: tuple[Prepared, Hashes], now: int) -> Verdict:
        verdict = await asked
        if type(verdict) is Refused and verdict.rule in asks[0].last_hits:
            lasts = min((reset for _, _, reset in verdict.quotas if reset > 0), default=0)
            if lasts:
                if len(self._known) >= KNOWN:
                    del self._known[next(iter(self._known))]
                told_at = int(self._clock() * MICROSECONDS + 0.5)
                self._known[asks] = _Known(verdict, told_at, now + min(lasts, LONGEST))
        return verdict

    def _again(self, known: _Known, now: int) -> Refused:
        passed = max(now - known.told_at, 0)
        quotas: list[Quota] = [
            (rule, left, reset - passed if reset else 0) for rule, left, reset in known.refused.quotas
        ]
        return Refused(known.refused.rule, quotas, self.store.load + 1)
