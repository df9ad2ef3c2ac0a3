"""One site's keys live on one node of a cluster; a worker that asks another node is sent on."""

import asyncio
import contextlib
import random
import socket
import time
from collections.abc import Iterator

import pytest

from tests import servers
from tests.servers import Server
from throttle.server.rule import Key, LoadRule, Refused, Rule, Served
from throttle.server.stores.redis import RedisStore

RULES = [
    Rule("lone_crawler", at_most=1, seconds=30, key=Key.ADDRESS_AND_CRAWLER),
    LoadRule("load_defer", at_most=3, sleeping_max=2),
    Rule("hit_stack", at_most=2, seconds=15, key=Key.CALLER, holds_refused=True),
]


def port_with_bus() -> int:
    """A free port whose neighbour 10,000 above, on which the nodes talk, is free too."""
    while True:
        port = random.randrange(20_000, 32_000)
        with contextlib.suppress(OSError), socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", port))
            other.bind(("127.0.0.1", port + 10_000))
            return port


@pytest.fixture(params=servers.binaries())
def nodes(request: pytest.FixtureRequest) -> Iterator[list[tuple[Server, int]]]:
    """Two nodes with half of the slots each."""
    cluster = []
    for _ in range(2):
        port = port_with_bus()
        cluster.append((Server(servers.binaries()[request.param], "--cluster-enabled", "yes", port=port), port))
    (one, _), (other, there) = cluster
    with one.client() as first, other.client() as second:
        first.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 8191)
        second.execute_command("CLUSTER", "ADDSLOTSRANGE", 8192, 16383)
        first.execute_command("CLUSTER", "MEET", "127.0.0.1", there)
        deadline = time.monotonic() + 30
        while any(b"cluster_state:ok" not in client.execute_command("CLUSTER", "INFO") for client in (first, second)):
            assert time.monotonic() < deadline
            time.sleep(0.02)
    yield cluster
    for server, _ in cluster:
        server.close()


def test_a_site_works_wherever_its_slot_is_and_whichever_node_is_named(nodes: list[tuple[Server, int]]) -> None:
    async def scenario() -> None:
        for site in ("papers", "books", "music"):
            stores = [RedisStore(f"redis://127.0.0.1:{port}?site={site}", time_box=5) for _, port in nodes]
            for store in stores:
                assert await store.ready(10), site
            verdicts = [
                await store.admit(store.prepare(RULES), (0, 1, number), 0, 0) for number, store in enumerate(stores * 2)
            ]
            assert [type(verdict) for verdict in verdicts] == [Served, Served, Refused, Refused], site
            assert [store.load for store in stores] == [2, 2]
            for store in stores:
                store.release()
                store.close()
            await asyncio.sleep(0)

    asyncio.run(scenario())
