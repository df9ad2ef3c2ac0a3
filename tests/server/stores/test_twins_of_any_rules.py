"""The memory store and each shared one, told the same history under rules of any kind, say the same.

Beyond the page's rules (`test_twins.py`): rules in force only from a load on, sleepers counted by key, and places of a
site at which the load may be higher than at others. Compared are each verdict with its Retry-After and all that it
tells, who sleeps and in which order, whom a free place wakes, and both counts after each step.

Changes made by hand to the scripts for these rules, each of which made a test fall, here or beside here:
a share is in force at one more · at any load · without the places kept for who was called · what it did not ask it
holds all the same · what was not asked is told when served · and not told when refused · one more of a key sleeps ·
who was called does not count · every sleeper counts · none does · one more sleeps in all · the key is another's, or
lost when a sleeper goes to bed, or when it is told anew · a sleeper that has left is kept · the first without room
lets nobody pass · or is forgotten · who has no room is woken · sleepers wake from the end · a place that was kept in
vain wakes nobody · the fleet's record is gone, and nobody wakes any more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st

from tests.conftest import STORES
from tests.door import START, Door, StoreKind, serve_unasked, settled
from tests.histories import Step, over, steps
from throttle.server.policy import Limits
from throttle.server.rule import MICROSECONDS, Deferred, Hashes, Key, LoadRule, Rule, Served, Verdict
from throttle.server.sleepers import Sleeper
from throttle.server.stores import Store
from throttle.server.stores.memory import MemoryStore

# Everybody has a caller's key, two networks lie in one wider one; a hash may be negative.
CALLERS: list[Hashes] = [(0, caller, 0, -1 - caller // 2, caller // 4) for caller in range(6)]


class Class(NamedTuple):
    """A class of caller at one place of the site."""

    rules: tuple[Rule | LoadRule, ...]
    rank: int


@dataclass(frozen=True)
class Site:
    timed: tuple[Rule, ...]
    classes: tuple[Class, ...]
    crowd: int
    """requests that run when it begins, and that no rule is asked about"""
    steps: tuple[Step, ...]


_load_rules = st.builds(
    LoadRule,
    name=st.just("load_defer"),
    at_most=st.integers(1, 4),
    sleeping_max=st.integers(0, 4),
    sleepers_per_key=st.sampled_from([None, 1, 2]),
    sleepers_key=st.sampled_from([Key.NETWORK, Key.CALLER]),
)


@st.composite
def sites(draw: st.DrawFn) -> Site:
    timed = tuple(
        Rule(
            name,
            at_most=draw(st.integers(1, 3)),
            seconds=draw(st.sampled_from([0.25, 0.5, 1])),  # shorter than a place is kept for who was called
            key=draw(st.sampled_from([Key.CALLER, Key.NETWORK, Key.WIDE_NETWORK, Key.ALL])),
            holds_refused=draw(st.booleans()),
            from_load=draw(st.integers(0, 3)),
        )
        for name in ("one", "two", "three")
    )
    classes = []
    for _ in range(draw(st.integers(1, 3))):
        rules: list[Rule | LoadRule] = [rule for rule in timed if draw(st.booleans())]
        if draw(st.integers(0, 3)):  # else people, whom no load concerns
            rules.insert(draw(st.integers(0, len(rules))), draw(_load_rules))
        classes.append(Class(tuple(rules), draw(st.sampled_from([-1, 0, 1, 9]))))
    length = draw(st.integers(1, 60))
    taken = draw(st.lists(steps, min_size=length, max_size=length))
    return Site(timed, tuple(classes), draw(st.integers(0, 3)), tuple(taken))


class Asleep(NamedTuple):
    """One who waits for room, in both stores."""

    of: Class
    caller: Hashes
    sleepers: list[Sleeper]


class Twins:
    """Two stores in step. Raises AssertionError where they do not say the same.

    Who is woken asks again before time goes on, first in order first; until then a place is kept for it.
    """

    def __init__(self, site: Site, *stores: Store) -> None:
        self.site = site
        self.stores = stores
        self.doors = [Door(store, Limits()) for store in stores]
        self.prepared = {of: [store.prepare(of.rules) for store in stores] for of in site.classes}
        self.now = START
        self.asks: list[int] = []
        self.running = site.crowd
        self.asleep: list[Asleep] = []

    async def play(self) -> None:
        for store in self.stores:
            await serve_unasked(store, self.site.crowd)
        for step in self.site.steps:
            if (moment := self.moment(step)) > self.now:
                while woken := await self.woken():
                    await self.ask_again(min(woken, key=lambda one: one.sleepers[0].order))
                self.now = moment
            await self.take(step)
            await self.woken()
            assert same((store.load, store.sleeping) for store in self.stores) == (self.running, len(self.asleep))

    def moment(self, step: Step) -> int:
        windows = (0, *(rule.seconds for rule in self.site.timed))
        since = self.asks[-min(step.back, len(self.asks))] if self.asks and step.window else self.now
        return since + round(windows[step.window] * MICROSECONDS) + step.microseconds

    async def take(self, step: Step) -> None:
        if step.action in ("visit", "stay"):
            caller, of = CALLERS[step.who % 6], self.site.classes[step.who // 6 % len(self.site.classes)]
            verdicts = await self.ask(of, caller)
            if isinstance(verdicts[0], Served) and step.action == "visit":
                self.release()
            elif isinstance(verdicts[0], Deferred):
                self.asleep.append(Asleep(of, caller, [verdict.sleeper for verdict in verdicts]))
        elif step.action == "release" and self.running:
            self.release()
        elif step.action == "ask again" and self.asleep:
            await self.ask_again(self.asleep[step.who % len(self.asleep)])
        elif step.action == "leave" and self.asleep:
            gone = self.asleep.pop(step.who % len(self.asleep))
            for store, sleeper in zip(self.stores, gone.sleepers, strict=True):
                store.leave(sleeper)

    async def woken(self) -> list[Asleep]:
        """Those who have been woken, in both stores, and have not asked yet."""
        for door in self.doors:
            await door.told()
        return [one for one in self.asleep if same(sleeper.woken.done() for sleeper in one.sleepers)]

    async def ask(self, of: Class, caller: Hashes, sleepers: Sequence[Sleeper | None] = (None, None)) -> list[Any]:
        verdicts = [
            await settled(store.admit(prepared, caller, self.now, of.rank, sleeper))
            for store, prepared, sleeper in zip(self.stores, self.prepared[of], sleepers, strict=True)
        ]
        self.asks.append(self.now)
        said = same(what(verdict) for verdict in verdicts)
        self.running += said[0] is Served
        return verdicts

    async def ask_again(self, one: Asleep) -> None:
        verdicts = await self.ask(one.of, one.caller, one.sleepers)
        if not isinstance(verdicts[0], Deferred):
            self.asleep.remove(one)

    def release(self) -> None:
        self.running -= 1
        for store in self.stores:
            store.release()


def what(verdict: Verdict) -> tuple[Any, ...]:
    """All that a verdict says."""
    if isinstance(verdict, Served):
        return Served, list(verdict.quotas)
    order = verdict.sleeper.order if isinstance(verdict, Deferred) else None
    return type(verdict), verdict.rule, verdict.retry_after, verdict.load, list(verdict.quotas), order


def same(said: Any) -> Any:
    one, other = said
    assert one == other
    return one


@pytest.fixture(params=[kind for kind in STORES if kind.name != "memory"], ids=lambda kind: kind.name)
def stores(request: pytest.FixtureRequest) -> StoreKind:
    """Each store that is held to the memory store."""
    kind: StoreKind = request.param
    return kind


def hold_together(stores: StoreKind, site: Site) -> None:
    async def scenario() -> None:
        async with stores.opened() as shared:
            await Twins(site, MemoryStore(max_callers=192), shared).play()

    stores.run(scenario())


@over(sites(), examples=2_000)
def test_a_shared_store_says_what_the_memory_store_says_whatever_the_rules(stores: StoreKind, site: Site) -> None:
    hold_together(stores, site)


@pytest.mark.long
@over(sites(), examples=100_000)
def test_a_shared_store_says_so_in_many_more_histories(stores: StoreKind, site: Site) -> None:
    hold_together(stores, site)
