"""What the workers of a fleet count by network under load: shares in force by the load of all, and beds."""

import asyncio

from tests.door import settled
from tests.fleet import Worker, on_a_server, until, workers
from tests.servers import Server
from throttle.server.rule import Deferred, Key, LoadRule, Refused, Rule, Served, Verdict
from throttle.server.sleepers import Sleeper

A_NETWORK = LoadRule("load_defer", at_most=3, sleeping_max=9, sleepers_per_key=1, sleepers_key=Key.CALLER)


async def of_network(worker: Worker, network: int, sleeper: Sleeper | None = None) -> Verdict:
    """The verdict on a bot of a network of which one may sleep."""
    return await settled(worker.admit(worker.prepare([A_NETWORK]), (0, network, 0), 0, 0, sleeper))


@on_a_server
async def test_of_one_network_at_most_so_many_sleep_wherever_they_ask(server: Server) -> None:
    async with workers(server, 2) as (one, other):
        for _ in range(3):
            assert await one.is_served()
        first = await of_network(one, 7)
        assert isinstance(first, Deferred)
        assert type(await of_network(other, 7)) is Refused
        another = await of_network(other, 8)
        assert isinstance(another, Deferred)
        other.leave(another.sleeper)
        one.leave(first.sleeper)
        await one.report()
        second = await of_network(other, 7)
        assert isinstance(second, Deferred)
        assert type(await of_network(one, 7)) is Refused
        one.release()
        await until(second.sleeper.woken.done)
        assert type(await of_network(one, 7)) is Refused, "it has been called, and has not asked yet"
        assert type(await of_network(other, 7, second.sleeper)) is Served
        assert isinstance(await of_network(one, 7), Deferred)


@on_a_server
async def test_the_bed_that_a_killed_worker_took_from_its_network_is_free_within_the_lease(server: Server) -> None:
    async with workers(server, 2, lease_seconds=0.4) as (one, other):
        for _ in range(3):
            assert await one.is_served()
        assert isinstance(await of_network(other, 7), Deferred)
        assert type(await of_network(one, 7)) is Refused
        assert other._link is not None
        other._link.close()  # it says nothing any more
        took = await until(lambda: one.sleeping == 0)
        assert took <= 0.4 + 0.5
        assert isinstance(await of_network(one, 7), Deferred)


@on_a_server
async def test_a_worker_that_the_server_has_forgotten_tells_of_which_networks_its_sleepers_are(server: Server) -> None:
    async with workers(server, 2) as (one, other):
        for _ in range(3):
            assert await one.is_served()
        assert isinstance(await of_network(one, 7), Deferred)
        with server.client() as client:
            client.delete(*one.keys.shared)
        await one.report()
        await one.report()
        assert type(await of_network(other, 7)) is Refused
        assert isinstance(await of_network(other, 8), Deferred)


@on_a_server
async def test_an_ask_from_a_network_that_nobody_waits_for_any_more_leaves_its_bed(server: Server) -> None:
    async with workers(server, 1) as [one]:
        for _ in range(3):
            assert await one.is_served()
        task = asyncio.ensure_future(of_network(one, 7))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        await one.report()
        await one.report()
        assert one.sleeping == 0
        assert isinstance(await of_network(one, 7), Deferred)


@on_a_server
async def test_under_load_a_network_has_one_share_at_all_workers_and_the_load_of_all_puts_it_in_force(
    server: Server,
) -> None:
    share = Rule("share", at_most=2, seconds=15, key=Key.CALLER, from_load=4)
    async with workers(server, 2) as (one, other):
        prepared = {worker: worker.prepare([share]) for worker in (one, other)}

        async def visit(worker: Worker) -> bool:
            verdict = await settled(worker.admit(prepared[worker], (0, 7, 0), 0, 0))
            if type(verdict) is Served:
                worker.release()
                await worker.report()
            return type(verdict) is Served

        for worker in (one, other, one):
            assert await worker.is_served()
        assert all([await visit(worker) for worker in (one, other) * 3])
        assert type(await other.person()) is Served, "the fourth"
        assert [await visit(worker) for worker in (one, other, one, other)] == [True, True, False, False]
        other.release()
        await other.report()
        assert await visit(one)
