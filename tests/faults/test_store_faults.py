"""Promise 8, losing the store is a non-event: each fault on a real server, under load.

No request fails, none waits much longer than the time-box, and the store returns by itself within a second of its
server. The figures of each: `pytest tests/faults -rP`.
"""

import asyncio
import socket
import time
from collections.abc import Callable, Iterator

import pytest
import uvloop

from tests import servers
from tests.faults.load import Pipe, Site, against, page
from tests.servers import Server
from throttle import Limits, ThrottleMiddleware
from throttle.server.rule import MICROSECONDS, Key, LoadRule, Refused, Rule, Served
from throttle.server.stores.redis import RedisStore

TIME_BOX = 0.05
Record = Callable[[str, object], None]


@pytest.fixture(params=servers.binaries())
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    server = Server(servers.binaries()[request.param])
    yield server
    server.close()


def assert_short(site: Site) -> None:
    """No request took longer than the time-box, its second look, the page itself, and what the machine was late."""
    assert site.longest <= TIME_BOX + 0.05 + 3 * site.lag, site.says("")


def test_a_server_that_is_killed_and_restarted(server: Server, record_property: Record) -> None:
    async def killed_and_restarted(site: Site) -> None:
        server.kill()
        await site.until(lambda: not site.store.is_up)
        await site.more(500)
        await asyncio.to_thread(server.start)
        await site.comes_back()

    assert_short(against(record_property, server, killed_and_restarted))


def test_a_server_that_is_not_there_from_the_start(server: Server, record_property: Record) -> None:
    async def not_there_from_the_start(site: Site) -> None:
        assert not site.store.is_up
        await asyncio.to_thread(server.start)
        await site.comes_back()

    server.kill()
    assert_short(against(record_property, server, not_there_from_the_start))


def test_a_server_that_hangs(server: Server, record_property: Record) -> None:
    async def hung(site: Site) -> None:
        server.hang()
        await site.until(lambda: not site.store.is_up)
        await site.more(2_000)
        server.go_on()
        await site.comes_back()

    assert_short(against(record_property, server, hung))


def test_a_server_that_hangs_for_longer_than_a_connection_is_kept(server: Server, record_property: Record) -> None:
    async def hung_for_long(site: Site) -> None:
        server.hang()
        until = time.monotonic() + 3.5
        await site.until(lambda: time.monotonic() > until)
        server.go_on()
        await site.comes_back()

    assert_short(against(record_property, server, hung_for_long))


def test_a_slow_server_is_given_up_and_returns_when_it_is_fast_again(server: Server, record_property: Record) -> None:
    async def slow(site: Site) -> None:
        with server.client() as client:
            busy = asyncio.create_task(asyncio.to_thread(_keep_busy, client, 1.0))
            await site.until(lambda: not site.store.is_up)
            await busy
        await site.comes_back()

    assert_short(against(record_property, server, slow))


def _keep_busy(client: object, seconds: float) -> None:
    """Let each call wait for more than the time-box behind scripts of others."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        client.eval(
            "local t = redis.call('TIME'); local e = t[1] * 1e6 + t[2] + 90000; "  # type: ignore[attr-defined]
            "local i = 0; while i < 3e6 do i = i + 1 end return 1",
            0,
        )


def test_a_script_cache_that_is_flushed_is_no_fault_at_all(server: Server, record_property: Record) -> None:
    async def scripts_flushed(site: Site) -> None:
        with server.client() as client:
            for _ in range(5):
                await site.more(100)
                client.script_flush()

    site = against(record_property, server, scripts_flushed)
    assert site.came_back_after is None
    assert_short(site)


def test_a_database_that_is_flushed_forgets_hits_and_learns_the_load_again(
    server: Server, record_property: Record
) -> None:
    async def flushed(site: Site) -> None:
        with server.client() as client:
            client.flushall()
        await site.more(100)
        assert site.store.is_up

    assert_short(against(record_property, server, flushed))


def test_a_server_that_became_a_replica_after_a_failover(server: Server, record_property: Record) -> None:
    async def readonly(site: Site) -> None:
        with server.client() as client:
            client.execute_command("REPLICAOF", "127.0.0.1", "1")
            await site.until(lambda: not site.store.is_up)
            await site.more(1_000)
            client.execute_command("REPLICAOF", "NO", "ONE")
        await site.comes_back()

    assert_short(against(record_property, server, readonly))


def test_a_server_that_is_full(server: Server, record_property: Record) -> None:
    async def full(site: Site) -> None:
        with server.client() as client:
            client.config_set("maxmemory", "1")
            await site.until(lambda: not site.store.is_up)
            await site.more(1_000)
            client.config_set("maxmemory", "0")
        await site.comes_back()

    assert_short(against(record_property, server, full))


def test_a_password_that_is_changed(server: Server, record_property: Record) -> None:
    async def password_changed(site: Site) -> None:
        with server.client() as client:
            client.config_set("requirepass", "another")
            client.execute_command("CLIENT", "KILL", "TYPE", "PUBSUB")  # ours listens
            await site.until(lambda: not site.store.is_up)
            await site.more(1_000)
            client.config_set("requirepass", "")
        await site.comes_back()

    assert_short(against(record_property, server, password_changed))


def test_a_server_that_takes_no_more_connections(server: Server, record_property: Record) -> None:
    async def pool_exhausted(site: Site) -> None:
        with server.client() as client:
            client.config_set("maxclients", "1")
            client.execute_command("CLIENT", "KILL", "TYPE", "PUBSUB")  # ours listens
            await site.until(lambda: not site.store.is_up)
            await site.more(1_000)
            client.config_set("maxclients", "1000")
        await site.comes_back()

    assert_short(against(record_property, server, pool_exhausted))


def test_keys_that_are_evicted_cost_their_hits_and_nothing_else(server: Server, record_property: Record) -> None:
    async def evicted(site: Site) -> None:
        with server.client() as client:
            for key in client.scan_iter(count=1_000):
                client.delete(key)
        await site.more(200)
        assert site.store.is_up

    assert_short(against(record_property, server, evicted))


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_loop_that_lags_100_ms_is_not_taken_for_a_dead_store(
    server: Server, record_property: Record, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """What a site's slow code does when a socket is read: uvloop then runs its timers before it reads the others.

    Three tries, as a busy machine may keep the server itself waiting.
    """
    mistakes = 0

    async def lagging_loop(site: Site) -> None:
        nonlocal mistakes
        ours, theirs = socket.socketpair()

        def read_slowly() -> None:
            ours.recv(1)
            time.sleep(0.1)

        asyncio.get_running_loop().add_reader(ours, read_slowly)
        for _ in range(10):
            theirs.send(b"x")
            await site.more(40)
        mistakes += not site.store.is_up or site.was_lost
        asyncio.get_running_loop().remove_reader(ours)
        ours.close()
        theirs.close()

    for tries in range(1, 4):
        against(record_property, server, lagging_loop, loop_factory=loop_factory)
        if mistakes < tries:
            return
    pytest.fail("the store was given up each time")


def test_a_server_that_vanishes_without_a_word_is_looked_for_anew(server: Server, record_property: Record) -> None:
    """A failover behind one address: the old peer answers nothing, and closes nothing."""
    pipe = Pipe(server)

    async def vanished(site: Site) -> None:
        pipe.swallow()
        await site.until(lambda: not site.store.is_up)
        await site.more(500)
        await site.comes_back(within=2.5)  # a silent connection is given a second

    assert_short(against(record_property, server, vanished, through=pipe))


def test_a_wrong_password_is_told_and_the_site_serves(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    with server.client() as client:
        client.config_set("requirepass", "right")

    async def wrong_password(site: Site) -> None:
        await site.more(200)
        assert not site.store.is_up

    against(lambda *_: None, server, wrong_password, url=server.url.replace("unix://", "unix://default:wrong@"))
    [line] = [record.message for record in caplog.records if "lost" in record.message]
    assert "WRONGPASS" in line
    assert ":wrong@" not in line


def test_one_line_tells_that_the_store_is_lost_and_one_that_it_is_back(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def killed(site: Site) -> None:
        server.kill()
        await site.until(lambda: not site.store.is_up)
        await site.until(lambda: "is lost" in caplog.text)
        await site.more(500)
        await asyncio.to_thread(server.start)
        await site.comes_back()

    against(lambda *_: None, server, killed)
    lost, back = [record.message for record in caplog.records if record.name == "throttle"]
    assert "is lost" in lost
    assert "limits multiply by the number of workers" in lost
    assert "is back after" in back


@pytest.mark.parametrize(("on_store_failure", "status"), [("refuse", 503), ("serve", 200)])
def test_everybody_is_refused_or_served_meanwhile_where_that_is_set(
    server: Server, on_store_failure: str, status: int
) -> None:
    async def run() -> None:
        store = RedisStore(server.url, on_store_failure=on_store_failure)
        app = ThrottleMiddleware(page, store=store, limits=Limits(stack_hits=1))
        assert await store.ready()
        site = Site(server, store, app)
        assert await site.request("10.0.0.1") == 200
        server.kill()
        await site.until(lambda: not store.is_up)
        for _ in range(3):
            assert await site.request("10.0.0.2") == status
        store.close()
        await asyncio.sleep(0)

    asyncio.run(run())


def test_without_the_server_a_worker_knows_what_already_runs_in_it(server: Server) -> None:
    async def run() -> None:
        store = RedisStore(server.url)
        assert await store.ready()
        bots = store.prepare([LoadRule("load_defer", at_most=3, sleeping_max=0)])
        for _ in range(2):
            assert isinstance(await store.admit(bots, (0, 0, 0), 0, 0), Served)
        server.kill()
        while store.is_up:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        assert isinstance(store.admit(bots, (0, 0, 0), 0, 0), Served)
        assert isinstance(store.admit(bots, (0, 0, 0), 0, 0), Refused)
        await asyncio.to_thread(server.start)
        assert await store.ready()
        assert isinstance(await store.admit(bots, (0, 0, 0), 0, 0), Refused), "the server has learnt what runs here"
        for _ in range(3):
            store.release()
        store.close()
        await asyncio.sleep(0)

    asyncio.run(run())


def test_a_clock_that_is_set_back_by_an_hour_extends_no_wait(server: Server) -> None:
    """The fleet's clock goes on from where it was."""

    async def run() -> None:
        store = RedisStore(server.url, now_is_given=True)
        assert await store.ready()
        stack = store.prepare([Rule("hit_stack", at_most=1, seconds=15, key=Key.CALLER)])
        start, second = 10_000 * MICROSECONDS, MICROSECONDS
        assert isinstance(await store.admit(stack, (0, 1, 0), start, 0), Served)
        store._now = 0
        set_back = start - 3600 * second
        refused = await store.admit(stack, (0, 1, 0), set_back, 0)
        assert isinstance(refused, Refused)
        assert refused.retry_after == 15 * second
        refused = await store.admit(stack, (0, 1, 0), set_back + 15 * second - 1, 0)
        assert isinstance(refused, Refused)
        assert refused.retry_after == 1
        assert isinstance(await store.admit(stack, (0, 1, 0), set_back + 15 * second, 0), Served)
        store.release()
        store.release()
        store.close()
        await asyncio.sleep(0)

    asyncio.run(run())


def test_a_flood_of_invented_callers_stays_within_the_servers_memory_and_frees_nobody_who_is_refused(
    server: Server,
) -> None:
    """With `volatile-ttl` the server drops first what expires first: callers seen once."""

    async def run() -> None:
        store = RedisStore(server.url, time_box=5)
        assert await store.ready()
        stack = store.prepare([Rule("hit_stack", at_most=10, seconds=60, key=Key.CALLER, holds_refused=True)])

        async def visit(caller: int) -> bool:
            verdict = await store.admit(stack, (0, caller, 0), 0, 0)
            if type(verdict) is Served:
                store.release()
            return type(verdict) is Served

        with server.client() as client:
            client.config_set("maxmemory-policy", "volatile-ttl")
            client.config_set("maxmemory", client.info("memory")["used_memory"] + 2**21)
            rude = range(1, 21)
            for _ in range(10):
                assert all([await visit(caller) for caller in rude])
            for number in range(1_000, 31_000, 100):
                await asyncio.gather(*(visit(caller) for caller in range(number, number + 100)))
            assert client.info("stats")["evicted_keys"] > 5_000
            memory = client.info("memory")
            assert memory["used_memory"] < memory["maxmemory"] * 1.05
        assert not any([await visit(caller) for caller in rude])
        assert store.times_lost == 0
        store.close()
        await asyncio.sleep(0)

    asyncio.run(run())
