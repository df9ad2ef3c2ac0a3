"""Who is measured: each decides on one hit of one caller, at most 10 in 15 seconds, in a server elsewhere."""

import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any, NamedTuple

from throttle.server.agents import CallerClass
from throttle.server.policy import Limits, handle_request
from throttle.server.rule import Refused, Served
from throttle.server.stores.redis import RedisStore
from throttle.server.stores.redis_calls import ADMIT, NO_KEY, SCRIPTS, Keys, header
from throttle.server.stores.resp import command

HITS, SECONDS = 10, 15
PATIENCE = 1.0
"""seconds of the time-box, in place of 0.05: a busy machine must not turn decisions into local ones, which cost less"""
POOL = 300
"""connections that a peer may open"""

Decide = Callable[[int], Awaitable[Any]]
"""one decision on the caller of that number"""


class Subject(NamedTuple):
    name: str
    opened: Callable[[str], AbstractAsyncContextManager[Decide]]


@asynccontextmanager
async def ours(url: str) -> AsyncIterator[Decide]:
    """With the time-box, the breaker, the fleet's load and sleepers; ended at once."""
    store = RedisStore(url, site="ours", time_box=PATIENCE)
    assert await store.ready()
    yield decider(store)
    assert store.times_lost == 0, "the machine is too busy: what was decided without the server would flatter us"
    store.close()


def decider(store: RedisStore) -> Decide:
    """Asks as the middleware does: the verdict may be there at once, when the server is lost."""
    rules = store.prepare(list(handle_request(CallerClass.BROWSER, Limits())))

    async def decide(caller: int) -> None:
        answer = store.admit(rules, (0, caller, 0), 0, 0)
        verdict = answer if isinstance(answer, Served | Refused) else await answer
        if type(verdict) is Served:
            store.release()

    return decide


class _Empty:
    """An EVALSHA that does nothing, with arguments as long as an ask's, over the same connection as ours."""

    def __init__(self, words: bytes, future: Any) -> None:
        self._words = words
        self.future = future

    def encode(self) -> bytes:
        return self._words

    def replied(self, reply: Any) -> None:
        if not self.future.done():
            self.future.set_result(reply)

    def given_up(self) -> None:
        self.replied(None)


@asynccontextmanager
async def empty_over_our_connection(url: str) -> AsyncIterator[Decide]:
    import asyncio

    store = RedisStore(url, site="empty")
    assert await store.ready()
    client = _client(url)
    sha = await client.script_load("return 1")
    await client.aclose()
    link, loop = store._link, asyncio.get_running_loop()
    assert link is not None
    keys = [*store.keys.shared, store.keys.hits("hit_stack") + "0" * 16]
    words = command("EVALSHA", sha, str(len(keys)), *keys, _head(), "0" * 16, _rules())

    async def decide(caller: int) -> None:
        call = _Empty(words, loop.create_future())
        link.send(call)
        await call.future

    yield decide
    store.close()


def _client(url: str) -> Any:
    import redis.asyncio

    return redis.asyncio.Redis.from_url(url, max_connections=POOL)


def _head() -> bytes:
    return header(0, 1, 0, 0, 10_000_000, 0, 0, 0, 1, NO_KEY.encode())


def _rules() -> bytes:
    return struct.pack(">BIIQ", 2, HITS, 0, SECONDS * 1_000_000)


@asynccontextmanager
async def redis_py_bare(url: str) -> AsyncIterator[Decide]:
    """The same script with the same arguments, called with redis-py's asyncio client and nothing around it."""
    client = _client(url)
    await client.script_load(SCRIPTS[0])
    keys = Keys("throttle", "bare")
    shared, hits, head, rules = keys.shared, keys.hits("hit_stack"), _head(), _rules()

    async def decide(caller: int) -> None:
        await client.evalsha(ADMIT, 6, *shared, f"{hits}{caller:016x}", head, "worker", rules)

    yield decide
    await client.aclose()


@asynccontextmanager
async def redis_py_empty(url: str) -> AsyncIterator[Decide]:
    client = _client(url)
    sha = await client.script_load("return 1")
    keys = Keys("throttle", "bare")
    shared, hits, head, rules = keys.shared, keys.hits("hit_stack"), _head(), _rules()

    async def decide(caller: int) -> None:
        await client.evalsha(sha, 6, *shared, f"{hits}{caller:016x}", head, "worker", rules)

    yield decide
    await client.aclose()


@asynccontextmanager
async def limits_moving_window(url: str) -> AsyncIterator[Decide]:
    import limits
    from limits.aio.storage import RedisStorage
    from limits.aio.strategies import MovingWindowRateLimiter

    storage = RedisStorage(f"async+{url}", implementation="redispy", max_connections=POOL)
    hit = MovingWindowRateLimiter(storage).hit
    limit = limits.RateLimitItemPerSecond(HITS, SECONDS)

    def decide(caller: int) -> Awaitable[bool]:
        return hit(limit, str(caller))

    yield decide


@asynccontextmanager
async def throttled_py(url: str) -> AsyncIterator[Decide]:
    import throttled.asyncio as throttled

    limiter = throttled.Throttled(
        using=throttled.RateLimiterType.SLIDING_WINDOW.value,
        quota=throttled.per_duration(timedelta(seconds=SECONDS), limit=HITS),
        store=throttled.RedisStore(server=url, options={"CONNECTION_POOL_KWARGS": {"max_connections": POOL}}),
    )

    def decide(caller: int) -> Awaitable[Any]:
        return limiter.limit(str(caller))

    yield decide


@asynccontextmanager
async def pyrate_limiter(url: str) -> AsyncIterator[Decide]:
    import time

    import pyrate_limiter as pyrate
    from pyrate_limiter.buckets.redis_bucket import LuaScript

    client = _client(url)
    sha = await client.script_load(LuaScript.PUT_ITEM)
    rates = [pyrate.Rate(HITS, SECONDS * 1000)]

    class PerCaller(pyrate.BucketFactory):
        """A bucket a caller; the package leaves this factory to its user."""

        def wrap_item(self, name: str, weight: int = 1) -> Any:
            return pyrate.RateItem(name, time.time_ns() // 1_000_000, weight=weight)

        def get(self, item: Any) -> Any:
            return pyrate.RedisBucket(rates, client, f"pyrate:{item.name}", sha)

    acquire = pyrate.Limiter(PerCaller()).try_acquire_async

    def decide(caller: int) -> Awaitable[bool]:
        return acquire(str(caller), blocking=False)

    yield decide
    await client.aclose()


SUBJECTS = [
    Subject("throttle", ours),
    Subject("an empty EVALSHA over our connection", empty_over_our_connection),
    Subject("redis-py, bare EVALSHA of our script", redis_py_bare),
    Subject("redis-py, an empty EVALSHA", redis_py_empty),
]
PEERS = [
    Subject("limits, moving window", limits_moving_window),
    Subject("throttled-py, sliding window", throttled_py),
    Subject("pyrate-limiter, a bucket a caller", pyrate_limiter),
]
