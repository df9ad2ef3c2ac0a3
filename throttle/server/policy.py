"""The rules of Connotea's load control, in the page's order and names.

Each name of the page's pseudo-code is one function here. They yield rules, which are data; a store decides.
Source: «Load Control in Connotea», and the program it describes (2004 to 2013).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal

from throttle.server.agents import CallerClass
from throttle.server.evidence import Finding
from throttle.server.rule import CENTURY, MICROSECONDS, Key, LoadRule, Part, Rule


def _is_number(value: object) -> bool:
    """A number, and neither infinite nor NaN."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -CENTURY <= value <= CENTURY


LOAD_DEFER = "load_defer"
AUTO: Literal["auto"] = "auto"
"""the `load_max` that each process finds by itself"""
SWITCHES = ("paused", "pause_early", "need_fetch_metadata", "verify_crawlers", "load_is_asked_last", "cookies")
"""the limits that are True or False"""
STRANGER = 8
"""added to the rank of a bot that is no acquaintance, where they are told apart"""
OF_NETWORKS = (
    "sleepers_per_network",
    "network_hits",
    "network_parts",
    "network_bot_hits",
    "share_hits",
    "wide_share_hits",
)
"""the limits that count under a network's key"""
COUNTS_OR_NONE = ("stack_hits", *OF_NETWORKS, "parts_hits", "acquaintance_visits")
"""those that None turns off"""


@dataclass(frozen=True, slots=True)
class Delay:
    """Seconds as a function of the load: `load × multiplier + adjustment`, within `minimum` and `maximum`."""

    multiplier: float = 1.0
    adjustment: float = 0.0
    minimum: float = 0.0
    maximum: float = 30.0

    def __post_init__(self) -> None:
        for name in ("multiplier", "adjustment", "minimum", "maximum"):
            value = getattr(self, name)
            if not _is_number(value):
                raise ValueError(f"Delay({name}={value!r}): a number below a century of seconds is needed")
        if not 0 <= self.minimum <= self.maximum:
            raise ValueError(
                f"Delay(minimum={self.minimum!r}, maximum={self.maximum!r}): 0 <= minimum <= maximum is needed"
            )

    def seconds(self, load: int) -> float:
        return min(max(load * self.multiplier + self.adjustment, self.minimum), self.maximum)


@dataclass(frozen=True, slots=True)
class Limits:
    """Every threshold of the page, with the page's number as its default. Durations are seconds.

    Those below `pause_seconds` are not of the page, and off; `Limits.modern` gives them the numbers that today's
    crawlers call for. Those of hits count within `stack_seconds`.

    Raises ValueError, naming the field, for a number that no site could mean.
    """

    lone_crawler_seconds: float | None = 30.0
    """between two served requests of one known crawler at one address; None: rule off"""
    all_crawlers_seconds: float | None = 2.0
    """between two served requests of known crawlers, all together; None: rule off"""
    stack_seconds: float = 15.0
    stack_hits: int | None = 10
    """hits that one caller may make within `stack_seconds`; None: rule off"""
    stack_exempt_agents: tuple[str, ...] = ()
    """agents that contain one of these (in any case) are not asked for the hit stack"""
    load_max: int | Literal["auto"] = 15
    """requests that may run at once, this one included, for a bot to be served; "auto": each process finds how many"""
    sleeping_max: int = 10
    """bots that may wait for room at once; more are refused at once"""
    defer_delay: Delay = Delay()
    """how long a deferred bot waits for room at most"""
    wait_told: Delay = Delay()
    """the wait told to a bot that is refused because of load"""
    paused: bool = False
    """everybody is refused but `pause_exempt`"""
    pause_early: bool = False
    """in a pause, answer before looking at who asks: `pause_exempt` is not consulted"""
    pause_exempt: tuple[str, ...] = ()
    """addresses or networks that are served in a pause"""
    need_fetch_metadata: bool = False
    """who says that it is a modern browser, and over https sends nothing of what browsers send, is an assumed bot"""
    verify_crawlers: bool = False
    """crawlers of which it is known whether they are who they say count apart from those of which it is not"""
    pause_seconds: float = 300.0
    """the wait told in a pause that has no end"""
    load_is_asked_last: bool = False
    """the hit stack is asked before a bot sleeps; the page asks it afterwards"""
    sleepers_per_network: int | None = None
    """bots of one network that may wait for room at once; None: as many as sleep"""
    network_hits: int | None = None
    """pages that the browsers of one network may ask for; None: rule off"""
    network_parts: int | None = None
    """what pages load, by the browsers of one network; None: rule off"""
    network_bot_hits: int | None = None
    """hits of the bots of one network; None: rule off"""
    share_hits: int | None = None
    """hits of the bots of one network, refused beyond while half of `load_max` runs; None: rule off"""
    wide_share_hits: int | None = None
    """the same of the wider network; None: rule off"""
    parts_hits: int | None = None
    """what pages load (Sec-Fetch-Dest tells), under a stack of its own beside that of pages; None: all are pages"""
    acquaintance_visits: int | None = None
    """served so often, a bot is an acquaintance: it wakes before strangers, and places are kept; None: rule off"""
    acquaintance_apart_seconds: float = 10.0
    """between two visits that count for it"""
    acquaintance_seconds: float = 86_400.0
    """after which a visit is forgotten"""
    cookies: bool = False
    """a browser is given a signed cookie, and with it a hit stack of its own"""

    @classmethod
    def connotea(cls) -> "Limits":
        """The page's rules and numbers; the same as `Limits()`."""
        return cls()

    @classmethod
    def modern(cls, **changes: Any) -> "Limits":
        """The page's rules, and what today's crawlers call for; with the given thresholds in place of its own."""
        own: dict[str, Any] = {
            "load_is_asked_last": True,
            "need_fetch_metadata": True,
            "verify_crawlers": True,
            # Of ten beds, one network has two: the sleepers are of five networks at least.
            "sleepers_per_network": 2,
            # Thirty people behind one address, each as fast as the page lets one be: a library, or a carrier's NAT.
            "network_hits": 300,
            "network_parts": 3000,
            # Four a second: feed services fetch a site's feeds in bursts, from few addresses.
            "network_bot_hits": 60,
            # One in three seconds, while the site is busy; a feed reader may ask for five feeds at once.
            "share_hits": 5,
            # A hosting company has many networks beside each other: four may take their whole share.
            "wide_share_hits": 20,
            # Ten for each page, beside what comes from mounted files, which are exempt.
            "parts_hits": 100,
            # A feed reader that asks once an hour is known after three hours, and stays so with three visits a day.
            "acquaintance_visits": 3,
            "cookies": True,
        }
        return cls(**{**own, **changes})

    def __post_init__(self) -> None:
        for name in ("lone_crawler_seconds", "all_crawlers_seconds"):
            if getattr(self, name) is not None:
                self._need_seconds(name)
        for name in ("stack_seconds", "pause_seconds", "acquaintance_seconds", "acquaintance_apart_seconds"):
            self._need_seconds(name)
        for name in COUNTS_OR_NONE:
            if getattr(self, name) is not None:
                self._need_count(name, 1, 10_000)
        if self.load_max != AUTO:
            self._need_count("load_max", 1, 1_000_000)
        self._need_count("sleeping_max", 0, 100_000)
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("defer_delay", "wait_told") and not isinstance(value, Delay):
                raise ValueError(f"Limits({field.name}={value!r}): a Delay is needed")
            if field.name in SWITCHES and not isinstance(value, bool):
                raise ValueError(f"Limits({field.name}={value!r}): True or False is needed")
            if field.name in ("stack_exempt_agents", "pause_exempt"):
                object.__setattr__(self, field.name, self._texts(field.name))

    def _need_seconds(self, name: str) -> None:
        value = getattr(self, name)
        # A microsecond is the smallest step a store counts.
        if not _is_number(value) or value < 1e-6:
            raise ValueError(
                f"Limits({name}={value!r}): seconds above 0 and below a century are needed{_none_turns_it_off(name)}"
            )

    def _need_count(self, name: str, least: int, most: int) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            or_auto = ', or "auto",' if name == "load_max" else ""
            raise ValueError(
                f"Limits({name}={value!r}): a whole number from {least} to {most}{or_auto} is needed"
                f"{_none_turns_it_off(name)}"
            )

    def _texts(self, name: str) -> tuple[str, ...]:
        value = getattr(self, name)
        if not isinstance(value, str) and isinstance(value, Iterable):
            texts = tuple(value)
            if all(isinstance(text, str) and text for text in texts):
                return texts
        raise ValueError(f"Limits({name}={value!r}): a tuple of non-empty strings is needed")


def _none_turns_it_off(name: str) -> str:
    is_rule = name in ("lone_crawler_seconds", "all_crawlers_seconds", *COUNTS_OR_NONE)
    return " (None turns the rule off)" if is_rule else ""


def handle_request(
    caller_class: CallerClass,
    limits: Limits,
    *,
    finding: Finding = Finding.UNKNOWN,
    is_stack_exempt: bool = False,
    is_part: bool = False,
    is_acquaintance: bool = False,
) -> Iterator[Rule | LoadRule]:
    """The rules for one class of caller, in the order in which they are asked.

    `is_part`: what a page loads, not a page. `is_acquaintance`: a bot that was served before.
    `service_paused` comes before them, and before anybody looks at who asks: see the middleware.
    """
    rules = [
        *bot_throttle(caller_class, limits, finding, is_acquaintance=is_acquaintance),
        *dynamic_throttle(limits, is_stack_exempt=is_stack_exempt, is_part=is_part),
        *network_throttle(caller_class, limits, is_part=is_part),
    ]
    if limits.load_is_asked_last:  # who sleeps has passed every other rule
        rules.sort(key=lambda rule: isinstance(rule, LoadRule))
    yield from rules


def bot_throttle(
    caller_class: CallerClass,
    limits: Limits,
    finding: Finding = Finding.UNKNOWN,
    *,
    is_acquaintance: bool = False,
) -> Iterator[Rule | LoadRule]:
    if caller_class.is_known_crawler:
        yield from rapid_fire_by_last_hit("lone_crawler", limits.lone_crawler_seconds, Key.ADDRESS_AND_CRAWLER)
        yield from all_crawlers(limits, finding)
        yield load_defer(limits, finding, is_acquaintance=is_acquaintance)
    elif caller_class.is_assumed_bot:
        yield load_defer(limits, is_acquaintance=is_acquaintance)


def all_crawlers(limits: Limits, finding: Finding) -> Iterator[Rule]:
    """The «all» clock. Who is verified has one apart, since else whoever borrows a name could keep Google out.

    So has who is forged, since else forgers could keep out those of whom nothing is known. But they are asked for the
    clock of those as well, and hold it for the shortest time that a store counts: a forged name must never be served
    where an honest one would not be.
    """
    seconds = limits.all_crawlers_seconds
    if finding is Finding.VERIFIED:
        yield from rapid_fire_by_last_hit("verified_crawlers", seconds, Key.ALL)
    elif finding is Finding.FORGED:
        asked_only = None if seconds is None else 1 / MICROSECONDS
        yield from rapid_fire_by_last_hit("all_crawlers", asked_only, Key.ALL)
        yield from rapid_fire_by_last_hit("forged_crawlers", seconds, Key.ALL)
    else:
        yield from rapid_fire_by_last_hit("all_crawlers", seconds, Key.ALL)


def dynamic_throttle(limits: Limits, *, is_stack_exempt: bool, is_part: bool = False) -> Iterator[Rule]:
    if limits.stack_hits is not None and not is_stack_exempt:
        if is_part and limits.parts_hits is not None:
            yield rapid_fire_by_hit_stack(limits.stack_seconds, limits.parts_hits, Key.CALLER, name="parts")
        else:
            yield rapid_fire_by_hit_stack(limits.stack_seconds, limits.stack_hits, Key.CALLER)


def network_throttle(caller_class: CallerClass, limits: Limits, *, is_part: bool = False) -> Iterator[Rule]:
    """Ceilings on a network whatever its agents. (Not of the page.)

    A refused hit does not count: one who hammers must not keep out all who share the network.
    """
    if caller_class.is_browser:
        if is_part and limits.parts_hits is not None:
            yield from _ceiling("network_parts", limits.network_parts, limits, Key.NETWORK)
        else:
            yield from _ceiling("network", limits.network_hits, limits, Key.NETWORK)
    else:
        yield from _ceiling("network_bots", limits.network_bot_hits, limits, Key.NETWORK)
        yield from _ceiling("share", limits.share_hits, limits, Key.NETWORK, Part.HALF)
        yield from _ceiling("wide_share", limits.wide_share_hits, limits, Key.WIDE_NETWORK, Part.HALF)


def _ceiling(name: str, hits: int | None, limits: Limits, key: Key, part: Part | None = None) -> Iterator[Rule]:
    if hits is None:
        return
    if part is None or limits.load_max == AUTO:
        yield Rule(name, at_most=hits, seconds=limits.stack_seconds, key=key, from_part=part)
    else:
        yield Rule(name, at_most=hits, seconds=limits.stack_seconds, key=key, from_load=part.of(limits.load_max))


def rapid_fire_by_last_hit(name: str, seconds: float | None, key: Key) -> Iterator[Rule]:
    """There has been no served hit under the key in the given time. (One hit held; None: no rule.)"""
    if seconds is not None:
        yield Rule(name, at_most=1, seconds=seconds, key=key)


def rapid_fire_by_hit_stack(seconds: float, hits: int, key: Key, name: str = "hit_stack") -> Rule:
    """There have been fewer than `hits` hits under the key in the given time; refused ones count."""
    return Rule(name, at_most=hits, seconds=seconds, key=key, holds_refused=True)


def load_defer(limits: Limits, finding: Finding = Finding.UNKNOWN, *, is_acquaintance: bool = False) -> LoadRule:
    """Fewer than `load_max` others are running; if not, sleep, unless too many sleep already, and ask again.

    Where acquaintances are told from strangers, the last third of the places and of the beds is kept for the former.
    Who is forged never sleeps: it would take a bed from an honest crawler, or a place as it wakes.
    """
    part, sleeping_max = Part.ALL, limits.sleeping_max
    if limits.acquaintance_visits is not None and not is_acquaintance:
        part, sleeping_max = Part.WITHOUT_KEPT, Part.WITHOUT_KEPT.of(sleeping_max)
    if finding is Finding.FORGED:
        sleeping_max = 0
    if limits.load_max == AUTO:
        return LoadRule(LOAD_DEFER, 0, sleeping_max, limits.sleepers_per_network, part=part)
    return LoadRule(LOAD_DEFER, part.of(limits.load_max), sleeping_max, limits.sleepers_per_network)


def wake_rank(caller_class: CallerClass, *, is_stranger: bool = False) -> int:
    """Who wakes first when there is room: API clients and feed readers (0), known crawlers (1).

    All strangers come after all acquaintances, where they are told apart.
    """
    rank = int(caller_class.is_known_crawler)
    return rank + STRANGER if is_stranger else rank


def asks_for_networks(limits: Limits) -> bool:
    """Some rule counts under a network's key."""
    return any(getattr(limits, name) is not None for name in OF_NETWORKS)
