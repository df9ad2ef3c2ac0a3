"""A site's door for tests: the policy's rules asked of a store, as the middleware asks them, with `now` told.

A test of the door runs on every kind of store (`conftest.py`); what a store promises is in `throttle/server/stores`.
"""

import asyncio
import hashlib
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any

from tests.pseudocode import SECOND, Caller
from throttle.server.agents import CallerClass
from throttle.server.policy import Limits, handle_request, wake_rank
from throttle.server.rule import Deferred, Hashes, LoadRule, Refused, Served, Verdict
from throttle.server.sleepers import Sleeper
from throttle.server.stores import Store
from throttle.server.stores.redis import RedisStore

START = 1_000 * SECOND
"""when tests begin, on the store's clock"""

CHROME = Caller("browser", "192.0.2.1", "Chrome")
FIREFOX = Caller("browser", "192.0.2.1", "Firefox")
GOOGLEBOT = Caller("known crawler", "192.0.2.7", "Googlebot/2.1", "Googlebot")
SLURP = Caller("known crawler", "192.0.2.8", "Yahoo! Slurp", "Slurp")
FEED_READER = Caller("assumed bot", "192.0.2.9", "Feedfetcher/1.0")


def person(number: int) -> Caller:
    """A browser at an address of its own."""
    return replace(CHROME, address=f"198.51.100.{number}")


def feed_reader(number: int) -> Caller:
    return replace(FEED_READER, address=f"198.51.100.{number}")


def crawler(number: int) -> Caller:
    return replace(GOOGLEBOT, address=f"198.51.100.{number}")


@dataclass(frozen=True)
class StoreKind:
    """A store as tests meet it."""

    name: str
    opened: Callable[[], AbstractAsyncContextManager[Store]]
    """an empty store, closed at the end"""
    run: Callable[[Coroutine[Any, Any, Any]], Any]
    """the loop it can work on: a virtual clock would leap ahead of a real socket"""
    share: int = 1
    """one in so many of a property's examples is played: a real server takes longer"""


class Door:
    """One store behind one set of limits."""

    def __init__(self, store: Store, limits: Limits) -> None:
        self.store = store
        self.limits = limits
        self._prepared: dict[tuple[str, bool], Any] = {}

    async def ask(self, caller: Caller, now: int, sleeper: Sleeper | None = None) -> Verdict:
        """The store's verdict; a place is held if it is to serve."""
        caller_class = CallerClass(caller.kind)
        kind = (caller.kind, caller.is_stack_exempt)
        if kind not in self._prepared:
            rules = list(handle_request(caller_class, self.limits, is_stack_exempt=caller.is_stack_exempt))
            self._prepared[kind] = self.store.prepare(rules)
        return await settled(
            self.store.admit(self._prepared[kind], hashes(caller), now, wake_rank(caller_class), sleeper)
        )

    async def visit(self, caller: Caller, now: int) -> Verdict:
        """The verdict on a request that ends at once."""
        verdict = await self.ask(caller, now)
        if isinstance(verdict, Served):
            self.store.release()
        elif isinstance(verdict, Deferred):
            self.store.leave(verdict.sleeper)
        return verdict

    async def is_served(self, caller: Caller, now: int) -> bool:
        """What became of a request that ends at once."""
        return isinstance(await self.visit(caller, now), Served)

    async def is_refused_by(self, rule: str, caller: Caller, now: int) -> Refused:
        """The refusal of a request, by a rule that is known."""
        verdict = await self.visit(caller, now)
        assert isinstance(verdict, Refused), verdict
        assert not isinstance(verdict, Deferred), verdict
        assert verdict.rule == rule
        return verdict

    async def sleeps(self, caller: Caller, now: int) -> Sleeper:
        """The sleeper of a request that is deferred."""
        verdict = await self.ask(caller, now)
        assert isinstance(verdict, Deferred), verdict
        return verdict.sleeper

    async def told(self) -> None:
        """The store knows what was released and who has left, and has woken whom it would."""
        await asyncio.sleep(0)
        if isinstance(self.store, RedisStore) and self.store.is_up:
            assert await self.store.report()

    async def starts_again(self) -> None:
        """The site was shut down, and is started once more."""
        self.store.close()
        self.store.open()
        if isinstance(self.store, RedisStore):
            assert await self.store.ready(30)

    async def is_running(self, count: int) -> None:
        """So many requests run that no rule is asked about, until they are released."""
        await serve_unasked(self.store, count)


async def serve_unasked(store: Store, count: int) -> None:
    """Hold places for requests that no rule concerns."""
    unasked = store.prepare([])
    for _ in range(count):
        assert isinstance(await settled(store.admit(unasked, (0, 0, 0), 0, 0)), Served)


async def sleep_unasked(store: Store, count: int, *, rank: int = 9, at_most: int = 0) -> list[Sleeper]:
    """Put requests to sleep; if not told otherwise, behind all others, and there will never be room for them."""
    never = store.prepare([LoadRule("never", at_most=at_most, sleeping_max=1_000_000)])
    sleepers: list[Sleeper] = []
    for _ in range(count):
        verdict = await settled(store.admit(never, (0, 0, 0), 0, rank))
        assert isinstance(verdict, Deferred)
        sleepers.append(verdict.sleeper)
    return sleepers


async def settled(verdict: Verdict | Awaitable[Verdict]) -> Verdict:
    return await verdict if inspect.isawaitable(verdict) else verdict


def hashes(caller: Caller) -> Hashes:
    """A caller's keys, the same in each run."""
    network = caller.address.rpartition(".")[0]
    return (
        0,
        _hash(caller.address_and_agent),
        _hash(caller.address_and_crawler) if caller.crawler else 0,
        _hash((network,)),
        _hash((network.rpartition(".")[0],)),
    )


def _hash(key: tuple[str | None, ...]) -> int:
    digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def left_under(rule: str, verdict: Verdict) -> tuple[int, int]:
    """Hits left under a rule, and microseconds until one more is."""
    return next((left, reset) for quota, left, reset in verdict.quotas if quota.name == rule)


Scenario = Callable[[Door], Coroutine[Any, Any, None]]
PAGE = Limits.connotea()
NO_STACK = Limits(stack_hits=None)


def at_the_door(limits: Limits = PAGE) -> Callable[[Scenario], Callable[[StoreKind], None]]:
    """A test of a scenario: it runs at the door of an empty store, once for each kind of store."""

    def tested(scenario: Scenario) -> Callable[[StoreKind], None]:
        def test(stores: StoreKind) -> None:
            async def with_store() -> None:
                async with stores.opened() as store:
                    await scenario(Door(store, limits))

            stores.run(with_store())

        test.__doc__ = scenario.__doc__
        return test

    return tested
