"""What all tests share: each kind of store, and how long property tests may take."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from hypothesis import HealthCheck, settings

from tests import servers, virtual_clock
from tests.door import StoreKind
from throttle.server.stores import Store
from throttle.server.stores.memory import MemoryStore
from throttle.server.stores.redis import RedisStore

IS_LONG = bool(os.environ.get("THROTTLE_LONG"))

# The same examples on every machine, so that a run says something of the change and nothing of luck; the long counts
# draw new ones each time. No deadline: the machine may be busy.
settings.register_profile("short", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", parent=settings.get_profile("short"), derandomize=False, print_blob=True)
settings.load_profile("long" if IS_LONG else "short")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("long") and not IS_LONG:
            item.add_marker(pytest.mark.skip(reason="takes minutes; `make long` runs it"))


@asynccontextmanager
async def memory() -> AsyncIterator[Store]:
    store = MemoryStore(max_callers=65_536)  # room for any test; made in a twentieth of the default's 2 ms
    yield store
    store.close()


def served_by(name: str) -> Callable[[], AbstractAsyncContextManager[Store]]:
    """An empty store on a real server; it counts by the tests' times."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Store]:
        server = servers.shared(name)
        store = RedisStore(server.url, site=secrets.token_hex(8), now_is_given=True, time_box=30)
        assert await store.ready(30)
        try:
            yield store
            assert store.times_lost == 0, "the server decided, not the worker alone"
        finally:
            while store.load > 0:
                store.release()
            store.close()
            await asyncio.sleep(0)

    return opened


# Another kind of store joins here, and passes the same tests.
STORES = [
    StoreKind("memory", memory, virtual_clock.run),
    *(StoreKind(name, served_by(name), asyncio.run, share=10) for name in servers.binaries()),
]


@pytest.fixture(scope="session", params=STORES, ids=lambda kind: kind.name)
def stores(request: pytest.FixtureRequest) -> StoreKind:
    """A kind of store; `stores.opened()` gives an empty one, `stores.run` is its loop."""
    kind: StoreKind = request.param
    return kind
