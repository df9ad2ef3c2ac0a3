"""Several workers, one server: one load, one order of sleepers, one pause, and nothing left behind by who dies.

Real servers and real seconds; leases are short, and what must happen is waited for.
"""

import asyncio
import os
import random
import secrets
import signal
import struct
import subprocess
import sys
import time

import pytest

from tests import servers
from tests.conftest import IS_LONG
from tests.fleet import LOAD, NO_KEYS, Worker, on_a_server, until, workers
from tests.servers import Server
from throttle.server.rule import Deferred, Refused, Served
from throttle.server.sleepers import Woken
from throttle.server.stores.redis import RedisStore
from throttle.server.stores.redis_calls import NO_KEY, SCRIPTS, Keys, header

# One load


@on_a_server
async def test_workers_share_hits_and_load(server: Server) -> None:
    async with workers(server, 2) as (one, other):
        for worker in (one, other) * 5:
            assert type(await worker.person()) is Served
        assert type(await one.person()) is Refused
        assert type(await other.person()) is Refused
        assert (one.load, other.load) == (10, 10)
        verdict = await other.bot()
        assert isinstance(verdict, Deferred)
        assert verdict.load == 11


@on_a_server
async def test_a_release_is_known_everywhere_within_50_ms_though_nobody_awaits_it(server: Server) -> None:
    async with workers(server, 2) as (one, other):
        for _ in range(3):
            assert await one.is_served()
        one.release()
        await asyncio.sleep(0.05)
        assert await other.is_served()


@on_a_server
async def test_sites_of_different_names_count_apart_on_one_server(server: Server) -> None:
    async with workers(server, 1) as [one], workers(server, 1) as [other]:
        for _ in range(10):
            assert type(await one.person()) is Served
        assert type(await one.person()) is Refused
        assert type(await other.person()) is Served


@on_a_server
async def test_the_load_never_passes_its_maximum_however_many_ask_at_once(server: Server) -> None:
    """The bound on over-admission while the server answers: none, since no admission is ever overwritten."""
    async with workers(server, 4) as fleet:
        running = most = 0
        draw = random.Random(5)

        async def bot(worker: Worker) -> None:
            nonlocal running, most
            for _ in range(50):
                if type(await worker.bot()) is Served:
                    running += 1
                    most = max(most, running)
                    await asyncio.sleep(draw.choice([0, 0, 0.001, 0.003]))
                    running -= 1
                    worker.release()

        await asyncio.gather(*(bot(worker) for worker in fleet for _ in range(12)))
        assert most == LOAD.at_most
        await until(lambda: all(worker.load == 0 for worker in fleet))


# The books


def asked(server: Server, site: str, worker: str, *, epoch: int = 1, running: int = 0, taken: int = 0) -> list[int]:
    """What the server answers a worker with such books that asks for a bot: verdict, load, share, admitted."""
    head = header(0, epoch, running, taken, 10_000_000, 0, 0, 0, 1, NO_KEY.encode())
    room_for_100 = struct.pack(">BIIQ", 0, 100, 2**32 - 1, 0)
    with server.client() as client:
        admit = client.script_load(SCRIPTS[0])
        answer = client.evalsha(admit, 5, *Keys("throttle", site).shared, head, worker, room_for_100)
    return [answer[0], *answer[2:5]]


@pytest.fixture
def site() -> str:
    return secrets.token_hex(8)


def test_a_number_told_before_an_admission_arrived_does_not_overwrite_it(server: Server, site: str) -> None:
    asked(server, site, "a")
    asked(server, site, "a")  # as nothing has arrived yet, it tells again that nothing runs
    assert asked(server, site, "b") == [1, 3, 1, 1]
    assert asked(server, site, "a", running=2, taken=2) == [1, 4, 3, 3]


def test_an_admission_that_never_arrived_is_gone_with_the_next_call(server: Server, site: str) -> None:
    """Twelve calls that timed out and yet ran later once left 12 of 15 places held by nobody."""
    for _ in range(12):
        asked(server, site, "a")
    assert asked(server, site, "a", running=0, taken=12) == [1, 1, 1, 13]


def test_what_was_sent_on_a_connection_that_was_given_up_does_nothing(server: Server, site: str) -> None:
    asked(server, site, "a", epoch=1)
    assert asked(server, site, "a", epoch=2) == [1, 1, 1, 1], "the first never arrived: its connection is gone"
    assert asked(server, site, "a", epoch=1) == [0], "nobody waits for it"
    assert asked(server, site, "a", epoch=2, running=1, taken=1) == [1, 2, 2, 2]


@on_a_server
async def test_an_ask_that_nobody_waits_for_any_more_leaves_nothing_behind(server: Server) -> None:
    async with workers(server, 2) as (one, other):
        for _ in range(12):
            task = asyncio.ensure_future(one.bot())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            task.cancel()
        assert await one.report(), "all asks before it have been answered"
        await until(lambda: one.load == other.load == 0 and one.sleeping == other.sleeping == 0)
        assert await one.is_served()


@on_a_server
async def test_asks_that_timed_out_and_were_run_later_leave_nothing_behind(server: Server) -> None:
    private = Server(servers.binaries()["valkey"])
    async with workers(private, 2, time_box=0.05) as (one, other):
        private.hang()
        asks = [asyncio.ensure_future(one.bot()) for _ in range(12)]
        verdicts = await asyncio.gather(*asks)
        assert sum(type(verdict) is Served for verdict in verdicts) == 3, "decided alone"
        for verdict in verdicts:
            if isinstance(verdict, Deferred):
                one.leave(verdict.sleeper)
        private.go_on()
        await until(lambda: one.is_up and other.is_up and (other.load, other.sleeping) == (3, 0))
        for _ in range(3):
            one.release()
        await until(lambda: other.load == 0)
    private.close()


@on_a_server
async def test_ten_thousand_requests_with_random_endings_leave_a_load_of_0(server: Server) -> None:
    """A million in `make long`. Served and released, refused, asleep and called, gone while asleep or while asking."""
    async with workers(server, 2, lease_seconds=10) as fleet:
        draw = random.Random(7)

        async def request(worker: Worker) -> None:
            if draw.random() < 0.3:
                verdict = await worker.person(draw.randrange(10_000))
            else:
                verdict = await worker.bot(draw.choice([0, 1]))
            if isinstance(verdict, Deferred):
                sleeper = verdict.sleeper
                try:
                    async with asyncio.timeout(draw.choice([0, 0.001, 0.01])):
                        while isinstance(verdict, Deferred):
                            await sleeper.woken
                            verdict = await worker.bot(sleeper.order[0], sleeper)
                except TimeoutError:
                    pass
                finally:
                    worker.leave(sleeper)
            if type(verdict) is Served:
                try:
                    await asyncio.sleep(draw.choice([0, 0, 0.001, 0.01]))
                finally:
                    worker.release()

        async def ending(worker: Worker) -> None:
            task = asyncio.ensure_future(request(worker))
            if draw.random() < 0.3:
                for _ in range(draw.randrange(4)):
                    await asyncio.sleep(0)
                if draw.random() < 0.5:
                    await asyncio.sleep(0.001)
                task.cancel()
            await asyncio.wait([task])

        async def caller(number: int) -> None:
            for _ in range((1_000_000 if IS_LONG else 10_000) // 50):
                await ending(fleet[number % 2])

        await asyncio.gather(*(caller(number) for number in range(50)))
        assert [worker._running for worker in fleet] == [0, 0]
        await until(lambda: all((worker.load, worker.sleeping) == (0, 0) for worker in fleet))


# Leases


@on_a_server
async def test_what_runs_for_many_leases_stays_counted(server: Server) -> None:
    """An hour's download does not lapse: its worker's heartbeats keep it."""
    async with workers(server, 2, lease_seconds=0.2) as (one, other):
        assert await one.is_served()
        for _ in range(10):
            await asyncio.sleep(0.1)
            assert (one.load, other.load) == (1, 1)


@on_a_server
async def test_the_share_of_a_killed_worker_lapses_within_its_lease_every_time_of_ten(server: Server) -> None:
    """Under load: it asks and releases when it is killed. (With the lease of 10 s: `make long`.)"""
    lease = 10.0 if IS_LONG else 0.3
    async with workers(server, 1, lease_seconds=lease) as [one]:
        assert await one.is_served()
        mother = await asyncio.create_subprocess_exec(
            sys.executable,
            __file__,
            server.url,
            one.settings.site,
            str(lease),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert mother.stdin is not None
        assert mother.stdout is not None
        for _ in range(10):
            mother.stdin.write(b"another\n")
            victim = int(await mother.stdout.readline())
            await until(lambda: one.load > 4)
            os.kill(victim, signal.SIGKILL)
            took = await until(lambda: one.load == 1)
            assert took <= (lease if IS_LONG else lease + 1)
            assert await one.is_served()
            one.release()
            await one.report()
        mother.stdin.close()
        await mother.wait()


@on_a_server
async def test_the_sleepers_of_a_killed_worker_lapse_with_it(server: Server) -> None:
    async with workers(server, 2, lease_seconds=0.4) as (one, other):
        for _ in range(3):
            assert await one.is_served()
        await other.sleeps()
        await other.sleeps()
        assert type(await one.bot()) is Refused
        assert other._link is not None
        other._link.close()  # it says nothing any more
        await until(lambda: one.sleeping == 0)
        await one.sleeps()


@on_a_server
async def test_a_worker_that_was_silent_for_longer_than_its_lease_is_counted_again(server: Server) -> None:
    async with workers(server, 2, lease_seconds=0.3) as (one, other):
        assert await one.is_served()
        for _ in range(2):
            assert await one.is_served()
        sleeper_of_one = await one.sleeps()
        time.sleep(0.4)  # noqa: ASYNC251  its loop stands still
        await until(lambda: (other.load, other.sleeping) == (3, 1))
        one.release()
        assert await sleeper_of_one.woken is Woken.ROOM


# Sleepers


@on_a_server
async def test_a_place_that_comes_free_anywhere_wakes_the_next_wherever_it_sleeps_within_50_ms(server: Server) -> None:
    async with workers(server, 3) as (one, two, three):
        for _ in range(3):
            assert await one.is_served()
        took, holder = [], one
        for _ in range(5):  # a machine that is late is late now and then; a message that is lost costs two seconds
            first, second = await two.sleeps(), await three.sleeps()
            holder.release()
            took.append(await until(first.woken.done))
            assert not second.woken.done()
            assert type(await two.bot(sleeper=first)) is Served
            two.release()
            await until(second.woken.done)
            assert type(await three.bot(sleeper=second)) is Served
            holder = three
        assert min(took) < 0.05


@on_a_server
async def test_at_most_so_many_sleep_in_all(server: Server) -> None:
    async with workers(server, 3) as (one, two, three):
        for _ in range(3):
            assert await one.is_served()
        first = await one.sleeps()
        await two.sleeps()
        assert type(await three.bot()) is Refused
        one.leave(first)
        await until(lambda: three.sleeping == 1)
        await three.sleeps()


@on_a_server
async def test_sleepers_of_the_fleet_wake_by_rank_then_arrival(server: Server) -> None:
    async with workers(server, 2) as (one, other):
        for _ in range(3):
            assert await one.is_served()
        crawler = await one.sleeps(rank=1)
        feed_reader = await other.sleeps(rank=0)
        one.release()
        await until(feed_reader.woken.done)
        assert not crawler.woken.done()


@on_a_server
async def test_a_wake_that_was_lost_keeps_its_place_for_2_seconds_at_most(server: Server) -> None:
    """And the sleeper asks by itself when its time is over."""
    async with workers(server, 2) as (one, other):
        for _ in range(3):
            assert await one.is_served()
        deaf, next_one = await other.sleeps(), await one.sleeps()
        other.pushed = lambda channel, message: None  # type: ignore[method-assign]
        one.release()
        took = await until(next_one.woken.done)
        assert took < 2 + 0.5
        assert not deaf.woken.done()
        assert isinstance(await one.bot(sleeper=next_one), Served)
        one.release()
        await one.report()
        assert type(await other.bot(sleeper=deaf)) is Served


@on_a_server
async def test_those_who_wait_are_woken_though_the_server_has_dropped_what_it_knew_of_the_fleet(server: Server) -> None:
    async with workers(server, 2) as (one, other):
        for _ in range(3):
            assert await one.is_served()
        sleeper = await other.sleeps()
        with server.client() as client:
            client.delete(one.keys.fleet)
        assert await one.report()
        assert (one.load, one.sleeping) == (3, 1)
        one.release()
        await until(sleeper.woken.done)


# The pause, and what is stored


@on_a_server
async def test_a_pause_is_known_everywhere_within_a_second_and_ends_by_itself(server: Server) -> None:
    async with workers(server, 2, lease_seconds=10) as (one, other):
        one.pause(1.5, early=True)
        assert one.paused is not None
        took = await until(lambda: other.paused is not None)
        assert took < 1
        assert other.paused is not None
        assert other.paused.early
        assert other.paused.until is not None
        assert other.paused.until == pytest.approx(time.monotonic() * 1e6 + (1.5 - took) * 1e6, abs=300_000)
        one.pause()
        await until(lambda: other.paused is not None and other.paused.until is None)
        one.resume()
        await until(lambda: other.paused is None)


@on_a_server
async def test_an_untimed_pause_outlives_all_workers(server: Server) -> None:
    site = secrets.token_hex(8)
    async with workers(server, 1, site=site) as [one]:
        one.pause()
        await one.report()
    async with workers(server, 1, site=site) as [one]:
        await until(lambda: one.paused is not None)
        one.resume()
        await one.report()


@on_a_server
async def test_every_key_has_a_time_to_live_and_one_hash_tag_and_no_address_in_it(server: Server) -> None:
    async with workers(server, 1) as [one]:
        digest = one.digest
        for number in range(3):
            await one.person(digest((f"192.0.2.{number}", b"Mozilla/5.0")))
        await one.sleeps()
        one.pause(60)
        await one.report()
        tag = f"throttle:{{{one.settings.site}}}:"
        with server.client(decode_responses=False) as client:
            keys = [key for key in client.scan_iter() if one.settings.site.encode() in key]
            assert len(keys) >= 7
            for key in keys:
                assert key.startswith(tag.encode())
                assert client.ttl(key) > 0
                assert b"192.0.2" not in key
                assert b"192.0.2" not in client.dump(key)


def test_the_hash_of_an_address_depends_on_the_sites_secret_and_on_nothing_of_the_process() -> None:
    parts = ("192.0.2.1", b"Mozilla/5.0")
    plain = RedisStore("redis://h", site="papers").digest(parts)
    assert plain == RedisStore("redis://other", site="papers").digest(parts)
    assert plain != RedisStore("redis://h", site="papers", secret="s").digest(parts)
    assert plain != RedisStore("redis://h", site="books").digest(parts)


async def be_killed(url: str, site: str, lease: str) -> None:
    """Serve, ask and release without an end; what `kill -9` meets."""
    worker = Worker(url, site=site, lease_seconds=float(lease))
    assert await worker.ready()
    unasked = worker.prepare([])
    for _ in range(5):
        worker.admit(unasked, NO_KEYS, 0, 0)
    await worker.report()
    os.write(1, b"%d\n" % os.getpid())

    async def ask_on() -> None:
        while True:
            if type(await worker.person(random.randrange(10_000))) is Served:
                worker.release()

    await asyncio.gather(*(ask_on() for _ in range(8)))


def bear_workers(*arguments: str) -> None:
    """For each line that is read, one more worker; forks start sooner than programs."""
    for _ in sys.stdin:
        if os.fork() == 0:
            asyncio.run(be_killed(*arguments))
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


if __name__ == "__main__":
    bear_workers(*sys.argv[1:])
