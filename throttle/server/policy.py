"""The rules of Connotea's load control, in the page's order and names.

Each name of the page's pseudo-code is one function here. They yield rules, which are data; a store decides.
Source: «Load Control in Connotea», and the program it describes (2004 to 2013).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields

from throttle.server.agents import CallerClass
from throttle.server.rule import CENTURY, Key, LoadRule, Rule


def _is_number(value: object) -> bool:
    """A number, and neither infinite nor NaN."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -CENTURY <= value <= CENTURY


LOAD_DEFER = "load_defer"


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
    load_max: int = 15
    """requests that may run at once, this one included, for a bot to be served"""
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
    pause_seconds: float = 300.0
    """the wait told in a pause that has no end"""

    @classmethod
    def connotea(cls) -> "Limits":
        """The page's rules and numbers; the same as `Limits()`."""
        return cls()

    def __post_init__(self) -> None:
        for name in ("lone_crawler_seconds", "all_crawlers_seconds"):
            if getattr(self, name) is not None:
                self._need_seconds(name)
        self._need_seconds("stack_seconds")
        self._need_seconds("pause_seconds")
        if self.stack_hits is not None:
            self._need_count("stack_hits", 1, 10_000)
        self._need_count("load_max", 1, 1_000_000)
        self._need_count("sleeping_max", 0, 100_000)
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("defer_delay", "wait_told") and not isinstance(value, Delay):
                raise ValueError(f"Limits({field.name}={value!r}): a Delay is needed")
            if field.name in ("paused", "pause_early") and not isinstance(value, bool):
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
            raise ValueError(
                f"Limits({name}={value!r}): a whole number from {least} to {most} is needed{_none_turns_it_off(name)}"
            )

    def _texts(self, name: str) -> tuple[str, ...]:
        value = getattr(self, name)
        if not isinstance(value, str) and isinstance(value, Iterable):
            texts = tuple(value)
            if all(isinstance(text, str) and text for text in texts):
                return texts
        raise ValueError(f"Limits({name}={value!r}): a tuple of non-empty strings is needed")


def _none_turns_it_off(name: str) -> str:
    is_rule = name in ("lone_crawler_seconds", "all_crawlers_seconds", "stack_hits")
    return " (None turns the rule off)" if is_rule else ""


def handle_request(
    caller_class: CallerClass, limits: Limits, *, is_stack_exempt: bool = False
) -> Iterator[Rule | LoadRule]:
    """The rules for one class of caller, in the order in which they are asked.

    `service_paused` comes before them, and before anybody looks at who asks: see the middleware.
    """
    yield from bot_throttle(caller_class, limits)
    yield from dynamic_throttle(limits, is_stack_exempt=is_stack_exempt)


def bot_throttle(caller_class: CallerClass, limits: Limits) -> Iterator[Rule | LoadRule]:
    if caller_class.is_known_crawler:
        yield from rapid_fire_by_last_hit("lone_crawler", limits.lone_crawler_seconds, Key.ADDRESS_AND_CRAWLER)
        yield from rapid_fire_by_last_hit("all_crawlers", limits.all_crawlers_seconds, Key.ALL)
        yield load_defer(limits)
    elif caller_class.is_assumed_bot:
        yield load_defer(limits)


def dynamic_throttle(limits: Limits, *, is_stack_exempt: bool) -> Iterator[Rule]:
    if limits.stack_hits is not None and not is_stack_exempt:
        yield rapid_fire_by_hit_stack(limits.stack_seconds, limits.stack_hits, Key.CALLER)


def rapid_fire_by_last_hit(name: str, seconds: float | None, key: Key) -> Iterator[Rule]:
    """There has been no served hit under the key in the given time. (One hit held; None: no rule.)"""
    if seconds is not None:
        yield Rule(name, at_most=1, seconds=seconds, key=key)


def rapid_fire_by_hit_stack(seconds: float, hits: int, key: Key, name: str = "hit_stack") -> Rule:
    """There have been fewer than `hits` hits under the key in the given time; refused ones count."""
    return Rule(name, at_most=hits, seconds=seconds, key=key, holds_refused=True)


def load_defer(limits: Limits) -> LoadRule:
    """Fewer than `load_max` others are running; if not, sleep, unless too many sleep already, and ask again."""
    return LoadRule(LOAD_DEFER, at_most=limits.load_max, sleeping_max=limits.sleeping_max)


def wake_rank(caller_class: CallerClass) -> int:
    """Who wakes first when there is room: API clients and feed readers (0) before known crawlers (1)."""
    return 1 if caller_class.is_known_crawler else 0
