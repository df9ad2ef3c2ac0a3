"""What stands in front of a store and passes on all that it does not change."""

from collections.abc import Awaitable, Sequence
from typing import Any

from throttle.server.acquaintances import Acquaintance
from throttle.server.rule import Hashes, LoadRule, Rule, Verdict
from throttle.server.sleepers import Sleeper
from throttle.server.stores import Digest, Pause, RefusedHits, Store


class InFront:
    """A store by another."""

    def __init__(self, store: Store) -> None:
        self.store = store

    @property
    def paused(self) -> Pause | None:
        return self.store.paused

    @paused.setter
    def paused(self, pause: Pause | None) -> None:
        self.store.paused = pause

    @property
    def digest(self) -> Digest:
        return self.store.digest

    @property
    def load(self) -> int:
        return self.store.load

    @property
    def running(self) -> int:
        return self.store.running

    @property
    def sleeping(self) -> int:
        return self.store.sleeping

    def open(self) -> None:
        self.store.open()

    def close(self) -> None:
        self.store.close()

    def prepare(self, rules: Sequence[Rule | LoadRule], *, tells_quotas: bool = True) -> Any:
        return self.store.prepare(rules, tells_quotas=tells_quotas)

    def admit(
        self, prepared: Any, hashes: Hashes, now: int, rank: int, sleeper: Sleeper | None = None
    ) -> Verdict | Awaitable[Verdict]:
        return self.store.admit(prepared, hashes, now, rank, sleeper)

    def hold_refused(self, hits: Sequence[RefusedHits], now: int) -> None:
        self.store.hold_refused(hits, now)

    def release(self) -> None:
        self.store.release()

    def leave(self, sleeper: Sleeper) -> None:
        self.store.leave(sleeper)

    def is_acquaintance(self, key: int, now: int, who: Acquaintance) -> bool:
        return self.store.is_acquaintance(key, now, who)

    def note_visit(self, key: int, now: int, who: Acquaintance) -> bool:
        return self.store.note_visit(key, now, who)
