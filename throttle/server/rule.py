"""What a policy yields and what a store answers: data, no decisions.

Both rapid-fire checks of the page are one thing, «at most N hits are held under a key, each for S seconds»
(`Rule`); load and sleepers are the other, «at most N at once, until released» (`LoadRule`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from throttle.server.sleepers import Sleeper

MICROSECONDS = 1_000_000
CENTURY = 3.2e9
"""seconds; more is surely a slip of units, and no timer could be set to it"""


class Key(IntEnum):
    """Under what a rule's hits count: the place of that hash in a request's `Hashes`."""

    ALL = 0
    """one clock for everybody whom the rule concerns"""
    CALLER = 1
    """address and whole agent, or the logged-in user"""
    ADDRESS_AND_CRAWLER = 2
    """address and the matched crawler's name"""
    NETWORK = 3
    """the network of the address, whatever the agent"""
    WIDE_NETWORK = 4
    """the wider network around that one"""


class Part(Enum):
    """What part of the load limit a rule concerns: said apart from the number, since a number found out moves."""

    ALL = "all"
    WITHOUT_KEPT = "without kept"
    """what strangers have: the last third is kept for acquaintances"""
    HALF = "half"

    def of(self, load_max: int) -> int:
        if self is Part.ALL:
            return load_max
        return load_max - load_max // 3 if self is Part.WITHOUT_KEPT else (load_max + 1) // 2


Hashes = tuple[int, ...]
"""A request's hashed keys, in the order of `Key`; the networks' only where a rule asks for them."""


@dataclass(frozen=True, slots=True)
class Rule:
    """At most `at_most` hits are held under `key`, each for `seconds`; one more is refused.

    A hit exactly `seconds` old has left. The textbook's name is sliding window log.
    """

    name: str
    at_most: int
    seconds: float
    key: Key
    holds_refused: bool = False
    """a hit that this rule refuses counts too, so hammering keeps a caller out"""
    from_load: int = 0
    """asked only while at least so many others run; else its hits do not count either"""
    from_part: Part | None = None
    """that number as a part of the limit that this process finds; no store but `OwnLoad` takes such a rule"""


@dataclass(frozen=True, slots=True)
class LoadRule:
    """At most `at_most` requests run at once, this one included; past that, at most `sleeping_max` wait for room.

    With `sleepers_per_key`, at most so many of those who wait are of one `sleepers_key`.
    """

    name: str
    at_most: int
    sleeping_max: int
    sleepers_per_key: int | None = None
    sleepers_key: Key = Key.NETWORK
    part: Part | None = None
    """`at_most` as a part of the limit that this process finds; no store but `OwnLoad` takes such a rule"""


Quota = tuple[Rule, int, int]
"""What a caller has left under one timed rule: the rule; hits that would still be served now; and microseconds until
the oldest held hit leaves, so that one more would be (0 if none is held)."""


class Served:
    """A place is held for the request."""

    __slots__ = ("quotas",)

    def __init__(self, quotas: Sequence[Quota] = ()) -> None:
        self.quotas = quotas
        """one for each timed rule that was asked, after this hit; none where the store was not asked to tell"""

    def __repr__(self) -> str:
        return "<served>"


class Refused:
    """No place is held."""

    __slots__ = ("load", "quotas", "retry_after", "rule")

    def __init__(self, rule: str, quotas: Sequence[Quota], load: int) -> None:
        self.rule = rule
        """the name of the rule that refuses"""
        self.quotas = quotas
        """one for each timed rule, as it stands after this ask"""
        self.load = load
        """requests running, this one included"""
        self.retry_after = 0
        """microseconds: the longest wait of the timed rules as they stand; 0 when none is full"""
        for _, left, reset in quotas:
            if left <= 0 and reset > self.retry_after:
                self.retry_after = reset

    def __repr__(self) -> str:
        return f"<refused by {self.rule}, load {self.load}, retry after {self.retry_after} µs>"


class Deferred(Refused):
    """No place is held yet: `sleeper` waits for room, or refuses itself when its time is over."""

    __slots__ = ("sleeper",)

    def __init__(self, rule: str, quotas: Sequence[Quota], load: int, sleeper: "Sleeper") -> None:
        super().__init__(rule, quotas, load)
        self.sleeper = sleeper


Verdict = Served | Refused | Deferred
