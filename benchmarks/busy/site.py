"""The simulated site: requests go through its gate, a thread, and then processors, database and waits in turn.

Or, where handlers compute in the event loop: each ask at the gate and each handler runs there, one after another.

The gate is `OwnLoad` over a `MemoryStore`, under the policy's rules: what decides in production. A sleeper that is
woken asks again at once; one whose delay is over asks for the last time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Protocol

from benchmarks.busy.resources import Loop, Places, Processors
from benchmarks.simulator.clockwork import Clockwork
from throttle.server.agents import CallerClass
from throttle.server.loop_turns import LoopTurns
from throttle.server.policy import Limits, handle_request, wake_rank
from throttle.server.rule import MICROSECONDS, Deferred, Served
from throttle.server.sleepers import Sleeper
from throttle.server.stores.memory import MemoryStore
from throttle.server.stores.own_load import OwnLoad
from throttle.server.worker_threads import KEPT_FOR_PEOPLE

LIMITS = Limits(load_max="auto", stack_hits=None)
A_DECISION = 0.0001
"""seconds of the event loop for what comes before a handler, or a refusal"""


class Finder(Protocol):
    """Says how many may run; `LoadLimit` and its peers."""

    load_max: int
    was_full: bool

    def arrived(self, now: int) -> bool: ...

    def began(self, now: int) -> Any: ...

    def ended(self, kind: tuple[object, object], began: Any, now: int) -> bool: ...


class Fixed:
    """A number that stays."""

    def __init__(self, load_max: int) -> None:
        self.load_max = load_max
        self.was_full = False

    def arrived(self, now: int) -> bool:
        return False

    def began(self, now: int) -> Any:
        return None

    def ended(self, kind: tuple[object, object], began: Any, now: int) -> bool:
        return False


@dataclass(frozen=True)
class Page:
    """What a request needs, in seconds: processors, then a place in the database, then nothing but time."""

    name: str
    processors: float
    database: float = 0.0
    wait: float = 0.0
    scatter: float = 0.0
    """the deviation of the logarithm of all three; 0: always the same"""
    share: float = 1.0
    """of the requests, beside those of the other pages"""


@dataclass(frozen=True)
class Machine:
    """What the site runs on."""

    cores: int
    database_places: int = 0
    has_interpreter_lock: bool = False
    threads: int = 0
    """0: 40, or four for each core"""
    computes_in_loop: bool = False
    """handlers compute in the event loop, and the gate decides there"""


@dataclass
class Outcome:
    """What people and machines got, of those who came while it was measured."""

    people: list[float] = field(default_factory=list)
    """their latencies"""
    machines_served: int = 0
    machines: int = 0
    slept: int = 0
    refused: int = 0
    """at once; those refused after a sleep have been counted there"""
    numbers: list[int] = field(default_factory=list)

    @property
    def p95(self) -> float:
        ordered = sorted(self.people)
        return ordered[int(0.95 * (len(ordered) - 1))] if ordered else float("nan")


class Site:
    """Needs a running event loop, in which sleepers' futures are made; none is awaited."""

    def __init__(
        self, clockwork: Clockwork, machine: Machine, pages: Sequence[Page], finder: Finder, random: Random, *,
        is_labelled: bool = True, lets_people_first: bool = True,
    ) -> None:  # fmt: skip
        self.clockwork = clockwork
        self.finder = finder
        self.outcome = Outcome()
        self.measures = False
        self.slower = 1.0
        """what all work takes, against what it took at first"""
        self.database_slower = 1.0
        self._pages = pages
        self._shares = [page.share for page in pages]
        self._is_labelled = is_labelled
        self._random = random
        self.processors = Processors(clockwork, 1 if machine.has_interpreter_lock else machine.cores)
        self._database = Places(machine.database_places or 1_000_000)
        self._threads = Places(machine.threads or max(40, 4 * machine.cores))
        self.loop = Loop(clockwork) if machine.computes_in_loop else None
        self.turns = (
            LoopTurns(self.loop.soon, lambda: clockwork.now, lambda: self.gate.asked)
            if self.loop and lets_people_first
            else None
        )
        self.gate = OwnLoad(
            MemoryStore(), finder, has_thread=self._has_thread if lets_people_first else lambda load: True
        )
        self._rules = {
            kind: (self.gate.prepare(list(handle_request(kind, LIMITS)), tells_quotas=False), wake_rank(kind))
            for kind in (CallerClass.BROWSER, CallerClass.ASSUMED_BOT)
        }
        self._asleep: dict[Sleeper, Callable[[], None]] = {}
        self._callers = 0

    def now(self) -> int:
        return round(self.clockwork.now * MICROSECONDS)

    def _has_thread(self, load: int) -> bool:
        return self._threads.free > KEPT_FOR_PEOPLE * self._threads.places

    def arrive(self, *, is_person: bool) -> None:
        kind = CallerClass.BROWSER if is_person else CallerClass.ASSUMED_BOT
        page = self._random.choices(self._pages, self._shares)[0] if len(self._pages) > 1 else self._pages[0]
        times = self._random.lognormvariate(-(page.scatter**2) / 2, page.scatter) if page.scatter else 1.0
        counts = self.measures
        if counts and not is_person:
            self.outcome.machines += 1
        self._callers += 1
        self._come(partial(self._ask, kind, page, times, self._callers, self.clockwork.now, counts))

    def _come(self, ask: Callable[[], None]) -> None:
        """To the gate."""
        if self.loop is None:
            ask()
        else:
            self.loop.soon(ask, A_DECISION)

    def _ask(
        self, kind: CallerClass, page: Page, times: float, caller: int, came: float, counts: bool,
        sleeper: Sleeper | None = None, deadline: float = 0.0,
    ) -> None:  # fmt: skip
        prepared, rank = self._rules[kind]
        verdict: Any = self.gate.admit(prepared, (0, caller, caller), self.now(), rank, sleeper)
        if sleeper is None and isinstance(verdict, Served):
            self.gate.arrived(self.now())
            self._see_woken()
        if isinstance(verdict, Served):
            self._serve(kind, page, times, came, counts)
        elif isinstance(verdict, Deferred):
            again = partial(self._ask, kind, page, times, caller, came, counts, verdict.sleeper)
            if sleeper is None:
                deadline = self.clockwork.now + LIMITS.defer_delay.seconds(verdict.load)
                self.clockwork.at(deadline, self._wait_is_over, verdict.sleeper)
                self.outcome.slept += counts
            elif self.clockwork.now >= deadline:
                self.gate.leave(verdict.sleeper)
                return
            self._asleep[verdict.sleeper] = partial(again, deadline=deadline)
        elif sleeper is None:
            self.outcome.refused += counts
        if sleeper is not None:
            self._see_woken()

    def _wait_is_over(self, sleeper: Sleeper) -> None:
        if (again := self._asleep.pop(sleeper, None)) is not None:
            self._come(again)
            self._see_woken()

    def _see_woken(self) -> None:
        while woken := [sleeper for sleeper in self._asleep if sleeper.woken.done()]:
            for sleeper in sorted(woken):
                if (again := self._asleep.pop(sleeper, None)) is not None:  # those before it may have woken it, too
                    self._come(again)

    def _serve(self, kind: CallerClass, page: Page, times: float, came: float, counts: bool) -> None:
        if self.turns is not None:
            if self.turns.look_at <= self.clockwork.now:
                self.turns.look()
            if self.turns.is_slow and kind is not CallerClass.BROWSER:
                return self.turns.wait(partial(self._begin, kind, page, times, came, counts))
        return self._begin(kind, page, times, came, counts)

    def _begin(self, kind: CallerClass, page: Page, times: float, came: float, counts: bool) -> None:
        began = self.finder.began(self.now())
        work = times * self.slower
        over = partial(self._end, kind, page, came, counts, began)
        wait = partial(self.clockwork.after, page.wait * times, over) if page.wait else over
        if page.database:
            query = partial(self._query, page.database * times * self.slower * self.database_slower, wait)
        else:
            query = wait
        if self.loop is not None:
            self.loop.go_on(page.processors * work, query)
        else:
            self._threads.take(partial(self.processors.use, page.processors * work, query))

    def _query(self, seconds: float, then: Callable[[], None]) -> None:
        def end() -> None:
            self._database.give_back()
            then()

        self._database.take(partial(self.clockwork.after, seconds, end))

    def _end(self, kind: CallerClass, page: Page, came: float, counts: bool, began: Any) -> None:
        if self.loop is None:
            self._threads.give_back()
        label = (page.name if self._is_labelled else "", kind)
        self.gate.ended(label, began, self.now())
        if counts:
            if kind is CallerClass.BROWSER:
                self.outcome.people.append(self.clockwork.now - came)
            else:
                self.outcome.machines_served += 1
        self.gate.release()
        if self._asleep:
            self._see_woken()
