"""Where hits and the load are counted: a store admits, and is told when a place is free again.

A store takes four steps in one atomic move, the same in each store: forget what has expired; compare, in the
policy's order; hold a refused hit where the rule says so; hold what is served. It knows no policy: the rules come with
each ask. It reads no clock that it was not given.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from throttle.server.rule import Hashes, LoadRule, Rule, Verdict
from throttle.server.sleepers import Sleeper

if TYPE_CHECKING:
    from throttle.server.acquaintances import Acquaintance

Digest = Callable[[tuple[object, ...]], int]


class Pause(NamedTuple):
    """The site answers nobody but the exempt."""

    until: int | None
    """microseconds of the store's clock; None: until resumed"""
    early: bool
    """answer before looking at who asks"""


class RefusedHits(NamedTuple):
    """Hits of one caller that a rule has refused, and that count."""

    rule: Rule
    key: int
    leaves: bytes
    """when each will leave: eight big-endian bytes a hit, oldest first"""


class Store(Protocol):
    """Admit and release, and what every store promises.

    Times are integer microseconds of one monotonic clock, the same for all calls to one store.
    """

    paused: Pause | None
    """the pause in force, as far as this process knows"""

    def open(self) -> None:
        """The event loop runs, and requests will come: connect, where the store is elsewhere. Also after a `close`."""

    @property
    def digest(self) -> Digest:
        """Hashes what a key is made of: the same wherever hits are counted together, and foreseen by no outsider."""

    def prepare(self, rules: Sequence[Rule | LoadRule], *, tells_quotas: bool = True) -> Any:
        """The rules in this store's own form; done once for each class of caller and limits.

        With `tells_quotas`, each verdict says what is left under each timed rule.
        """

    def admit(
        self, prepared: Any, hashes: Hashes, now: int, rank: int, sleeper: Sleeper | None = None
    ) -> Verdict | Awaitable[Verdict]:
        """The verdict on one request, in one atomic step; to be awaited where the store is elsewhere.

        Served: a place is held until `release`. Deferred: its `sleeper` waits for room, in the order of `rank` and
        arrival; it asks again with itself as `sleeper`, and must `leave` if it will not. Refused: no place is held,
        and a sleeper that asked has left.
        """

    def hold_refused(self, hits: Sequence[RefusedHits], now: int) -> None:
        """Count hits that were refused without asking, as if they had been asked about when they came."""

    def release(self) -> None:
        """Give one place back; called once for each Served, and never awaited."""

    def leave(self, sleeper: Sleeper) -> None:
        """A sleeper goes without asking again: its caller hung up, or its time is over. May be repeated."""

    def close(self) -> None:
        """Wake all sleepers for good: the site is shutting down. They are refused, as is who would sleep later."""

    def is_acquaintance(self, key: int, now: int, who: "Acquaintance") -> bool:
        """The caller was served often enough, here or wherever the store counts together."""

    def note_visit(self, key: int, now: int, who: "Acquaintance") -> bool:
        """The caller is served, which counts in `is_acquaintance`. False for a visit that was noted already."""

    @property
    def load(self) -> int:
        """Requests running now."""

    @property
    def running(self) -> int:
        """Those of them that run in this process."""

    @property
    def sleeping(self) -> int:
        """Requests waiting for room now."""
