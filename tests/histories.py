"""Histories for property tests: who came when and what became of it, told to a store and to the page at once.

Waits are drawn from the rules' own windows, give or take a microsecond: evenly drawn ones seldom meet an edge, and
would let an off-by-one through.
"""

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.door import START, Door, StoreKind, serve_unasked
from tests.pseudocode import ALL, SECOND, SLEEP, Caller, Page
from throttle.server.policy import Limits
from throttle.server.rule import Deferred, Served, Verdict
from throttle.server.sleepers import Sleeper

T = TypeVar("T")
Test = Callable[[StoreKind], None]

HOME, WORK = "192.0.2.1", "2001:db8:7:7::/64"

CALLERS = [
    Caller("known crawler", HOME, "Googlebot/2.1", "Googlebot"),
    Caller("known crawler", HOME, "Googlebot/2.2", "Googlebot"),  # another stack, the same clock
    Caller("known crawler", WORK, "Googlebot/2.1", "Googlebot"),
    Caller("known crawler", HOME, "Yahoo! Slurp", "Slurp"),
    Caller("known crawler", HOME, "", "-"),
    Caller("known crawler", WORK, "Googlebot/2.1", "Googlebot", is_stack_exempt=True),
    Caller("browser", HOME, "Chrome"),
    Caller("browser", HOME, "Firefox"),
    Caller("assumed bot", HOME, "Chrome"),  # the same browser on a Web API path: the same stack
    Caller("browser", HOME, "Chrome", user="ada"),
    Caller("browser", WORK, "Firefox", user="ada"),  # the same stack again
    Caller("assumed bot", WORK, "curl/8", user="ada"),
    Caller("assumed bot", HOME, "Feedbin"),
    Caller("assumed bot", WORK, "Feedbin"),
    Caller("assumed bot", WORK, "curl/8", is_stack_exempt=True),
]


class Step(NamedTuple):
    """What happens next. Numbers that point at nothing are taken modulo what there is."""

    action: str
    """«visit»: ask, and end at once if served; «stay»: ask, and run on; «release»; «ask again»; «leave»"""
    who: int
    back: int
    """the wait ends this many asks ago..."""
    window: int
    """...plus one of the rules' windows (0: none)..."""
    microseconds: int
    """...plus so many; not at all if that has passed"""


@dataclass(frozen=True)
class History:
    limits: Limits
    crowd: int
    """requests that run when it begins, and that no rule is asked about"""
    callers: tuple[Caller, ...]
    steps: tuple[Step, ...]


_seconds = st.sampled_from([0.5, 1, 2, 3, 15, 30])
_numbers = st.builds(
    Limits,
    lone_crawler_seconds=st.none() | _seconds,
    all_crawlers_seconds=st.none() | _seconds,
    stack_seconds=_seconds,
    stack_hits=st.sampled_from([None, 1, 2, 3, 4]),
    load_max=st.integers(1, 4),
    sleeping_max=st.integers(0, 3),
)
_limits = st.just(Limits()) | _numbers
_fields: tuple[Sequence[Any], ...] = (
    ["visit"] * 6 + ["stay"] * 3 + ["release"] * 2 + ["ask again", "leave"],
    range(60),
    range(1, 13),
    range(4),
    (0, 1, -1, 250_000),
)


def _numbered_step(number: int) -> Step:
    """A step of each combination of fields; drawn as one number, since drawing takes most of a property's time."""
    values: list[Any] = []
    for field in _fields:
        number, place = divmod(number, len(field))
        values.append(field[place])
    return Step(*values)


steps = st.integers(0, math.prod(map(len, _fields)) - 1).map(_numbered_step)


@st.composite
def histories(draw: st.DrawFn, limits: st.SearchStrategy[Limits] = _limits) -> History:
    """Up to 60 steps of a few callers, many of whom share a key."""
    few = draw(st.lists(st.sampled_from(CALLERS), min_size=1, max_size=5, unique=True))
    numbers = draw(limits)
    crowd = draw(st.sampled_from([0, numbers.load_max - 1, numbers.load_max]))
    length = draw(st.integers(1, 60))
    taken = draw(st.lists(steps, min_size=length, max_size=length))
    return History(numbers, crowd, tuple(few), tuple(taken))


def microseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * SECOND)


def page_of(limits: Limits) -> Page:
    """The page with these numbers."""
    return Page(
        lone=microseconds(limits.lone_crawler_seconds),
        all_=microseconds(limits.all_crawlers_seconds),
        window=round(limits.stack_seconds * SECOND),
        max_hits=limits.stack_hits,
        load_max=limits.load_max,
        sleeping_max=limits.sleeping_max,
    )


class Asleep(NamedTuple):
    """One who waits for room; in the order in which they wake."""

    rank: int
    arrival: int
    caller: Caller
    sleeper: Sleeper


class Event(NamedTuple):
    """An ask, or (where there is no caller) a release."""

    caller: Caller | None
    at: int
    is_served: bool


class Refusal(NamedTuple):
    """What the store told somebody whom it did not serve."""

    place: int
    """of the ask, among all asks"""
    caller: Caller
    at: int
    rule: str
    retry_after: int


class _EnoughError(Exception):
    """So many asks were to be played."""


class Twins:
    """A store and the page, told the same history; raises AssertionError where they do not say the same.

    Whoever should wake asks again at once, as a site's event loop would have it.
    """

    def __init__(self, door: Door, history: History) -> None:
        self.door = door
        self.history = history
        self.page = page_of(history.limits)
        self.now = START
        self.running = 0
        self.asleep: list[Asleep] = []
        self.arrivals = 0
        self.asks: list[int] = []
        self.events: list[Event] = []
        self.refusals: list[Refusal] = []
        self.enough: int | None = None

    async def play(self, asks: int | None) -> None:
        """The whole history, or so many asks of it."""
        self.enough = asks
        self.running = self.history.crowd
        await serve_unasked(self.door.store, self.running)
        with contextlib.suppress(_EnoughError):
            for step in self.history.steps:
                await self._step(step)

    async def _step(self, step: Step) -> None:
        self.now = max(self.now, self._moment(step))
        await self._do(step)
        await self._wake()
        assert (self.door.store.load, self.door.store.sleeping) == (self.running, len(self.asleep))

    def _moment(self, step: Step) -> int:
        limits = self.history.limits
        windows = (0, limits.lone_crawler_seconds or 0, limits.all_crawlers_seconds or 0, limits.stack_seconds)
        since = self.asks[-min(step.back, len(self.asks))] if self.asks and step.window else self.now
        return since + round(windows[step.window] * SECOND) + step.microseconds

    async def _do(self, step: Step) -> None:
        if step.action in ("visit", "stay"):
            caller = self.history.callers[step.who % len(self.history.callers)]
            if await self._ask(caller) and step.action == "visit":
                self._release()
        elif step.action == "release" and self.running:
            self._release()
        elif step.action == "ask again" and self.asleep:
            await self._ask_again(self.asleep[step.who % len(self.asleep)])
        elif step.action == "leave" and self.asleep:
            gone = self.asleep.pop(step.who % len(self.asleep))
            self.door.store.leave(gone.sleeper)

    def _release(self) -> None:
        self.running -= 1
        self.events.append(Event(None, self.now, is_served=False))
        self.door.store.release()

    async def _wake(self) -> None:
        """Those for whom there is room have been woken, in order, and nobody else; each asks again."""
        while self.asleep and self.running < self.history.limits.load_max:
            await self.door.told()
            first = min(self.asleep)
            assert [sleeping for sleeping in self.asleep if sleeping.sleeper.woken.done()] == [first]
            await self._ask_again(first)
        assert not any(sleeping.sleeper.woken.done() for sleeping in self.asleep)

    async def _ask(self, caller: Caller) -> bool:
        """Whether a newcomer is served, and runs."""
        verdict = await self.door.ask(caller, self.now)
        said = self.page.handle_request(caller, self.now, load=self.running + 1, sleeping_count=len(self.asleep) + 1)
        self._compare(caller, verdict, said)
        if isinstance(verdict, Deferred):
            self.arrivals += 1
            rank = 1 if caller.kind == "known crawler" else 0
            self.asleep.append(Asleep(rank, self.arrivals, caller, verdict.sleeper))
        self._stop_if_enough()
        return isinstance(verdict, Served)

    async def _ask_again(self, sleeping: Asleep) -> None:
        verdict = await self.door.ask(sleeping.caller, self.now, sleeping.sleeper)
        said = self.page.handle_request(sleeping.caller, self.now, load=self.running + 1, has_slept=True)
        if said == "load_defer":
            said = SLEEP  # it may sleep on: its time is not over yet
        self._compare(sleeping.caller, verdict, said)
        if not isinstance(verdict, Deferred):
            self.asleep.remove(sleeping)
        self._stop_if_enough()

    def _compare(self, caller: Caller, verdict: Verdict, said: str | None) -> None:
        context = f"ask {len(self.asks)} by {caller} at START + {self.now - START}"
        self.asks.append(self.now)
        self.events.append(Event(caller, self.now, isinstance(verdict, Served)))
        if isinstance(verdict, Served):
            assert said is None, context
            self.running += 1
        else:
            assert said == (SLEEP if isinstance(verdict, Deferred) else verdict.rule), context
            assert verdict.load == self.running + 1, context
            assert verdict.retry_after == self.page.wait_left(caller, self.now), context
            self.refusals.append(Refusal(len(self.asks), caller, self.now, verdict.rule, verdict.retry_after))
        told = [(rule.name, left, reset) for rule, left, reset in verdict.quotas]
        assert told == left_by(self.page, caller, self.now), context

    def _stop_if_enough(self) -> None:
        if len(self.asks) == self.enough:
            raise _EnoughError

    async def all_leave(self) -> None:
        """The site is empty again; what was counted stays counted."""
        for sleeping in self.asleep:
            self.door.store.leave(sleeping.sleeper)
        while self.running:
            self._release()
        self.asleep.clear()


def left_by(page: Page, caller: Caller, now: int) -> list[tuple[str, int, int]]:
    """By the page's own lists: each timed check, the hits left under it, and the wait until one more is."""
    checks: list[tuple[str, int | None, int | None, list[int]]] = []
    if caller.kind == "known crawler":
        checks.append(("lone_crawler", 1, page.lone, page.last_hits[caller.address_and_crawler]))
        checks.append(("all_crawlers", 1, page.all, page.last_hits[ALL]))
    if not caller.is_stack_exempt:
        checks.append(("hit_stack", page.max_hits, page.window, page.hit_stacks[caller.address_and_agent]))
    told: list[tuple[str, int, int]] = []
    for name, at_most, interval, hits in checks:
        if interval is None or at_most is None:
            continue
        held = [hit for hit in hits if now - hit < interval]
        left = max(0, at_most - len(held))
        first_to_leave = held[-at_most:][:1]  # of those beyond the most, all must leave
        told.append((name, left, first_to_leave[0] + interval - now if first_to_leave else 0))
    return told


async def played(door: Door, history: History, *, asks: int | None = None) -> Twins:
    """Door and page after a history, or after so many asks of it."""
    twins = Twins(door, history)
    await twins.play(asks)
    return twins


def over(drawn: st.SearchStrategy[T], *, examples: int) -> Callable[[Callable[[StoreKind, T], None]], Test]:
    """A property of every kind of store; of so many examples it plays as many as that kind has time for."""

    def tested(holds: Callable[[StoreKind, T], None]) -> Test:
        @functools.wraps(holds)
        def test(stores: StoreKind) -> None:
            def of_one(example: T) -> None:
                holds(stores, example)

            settings(max_examples=max(1, examples // stores.share))(given(drawn)(of_one))()

        del test.__wrapped__  # type: ignore[attr-defined]  # pytest would look for the example among its fixtures
        return test

    return tested
