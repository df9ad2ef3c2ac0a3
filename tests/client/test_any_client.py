"""`throttled()` in front of clients of all kinds, on a virtual clock."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from tests import virtual_clock
from throttle.client import Backoff, Hosts, Politeness, Rates, Refused, polite_hosts, throttled
from throttle.client.answer import Answer, Failure
from throttle.client.any_client import usual_answer
from throttle.client.pace import Pace
from throttle.client.pace.aimd import AimdPace


class Users:
    def __init__(self, calls: list[float]) -> None:
        self.calls = calls

    async def find(self) -> str:
        self.calls.append(virtual_clock.now())
        return "found"


class Client:
    """Somebody's client: methods that wait in each way there is, and some that do not."""

    version = "1.0"

    def __init__(self) -> None:
        self.calls: list[float] = []
        self.users = Users(self.calls)
        self.outcomes: list[Any] = []
        self.is_closed = False

    async def get(self, path: str = "/") -> Any:
        self.calls.append(virtual_clock.now())
        outcome = self.outcomes.pop(0) if self.outcomes else "page"
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def later(self) -> Any:
        """Not a coroutine function, but what it returns is awaited; as aiohttp's are."""
        return self.get()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[str]:
        self.calls.append(virtual_clock.now())
        yield "open"

    async def pages(self) -> AsyncIterator[int]:
        self.calls.append(virtual_clock.now())
        for number in range(3):
            yield number

    def build_url(self, path: str) -> str:
        return f"https://api.example.org{path}"

    async def close(self) -> None:
        self.is_closed = True

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


def a_second_each(rates: Rates) -> Pace:
    return AimdPace(rate=1.0, increase=0.0, in_flight_max=rates.in_flight)


def hosts(**settings: Any) -> Hosts:
    settings.setdefault("politeness", Politeness(backoff=Backoff(retries_max=2)))
    return polite_hosts(pace=a_second_each, **settings)


def front(client: Client, table: Hosts, **settings: Any) -> Client:
    return throttled(client, "api.example.org", hosts=table, clock=virtual_clock.now, **settings)


def held(table: Hosts) -> int:
    return sum(host.in_flight + host.waiting for host in table.stats(0.0).values())


@virtual_clock.in_virtual_time
async def test_every_kind_of_waiting_waits_for_its_turn() -> None:
    client, table = Client(), hosts()
    api = front(client, table)
    assert await api.get() == "page"
    assert await api.later() == "page"
    assert await api.users.find() == "found"
    async with api.opened() as value:
        assert value == "open"
    assert [number async for number in api.pages()] == [0, 1, 2]
    assert [round(at - client.calls[0]) for at in client.calls] == [0, 1, 2, 3, 4]
    assert table.stats(0.0)["example.org"].statuses == {"200": 5}
    assert held(table) == 0


@virtual_clock.in_virtual_time
async def test_what_does_not_wait_is_untouched() -> None:
    client, table = Client(), hosts()
    async with front(client, table) as api:
        assert api.version == "1.0"
        assert api.build_url("/x") == "https://api.example.org/x"
        await api.get()
    assert client.is_closed
    assert len(client.calls) == 1
    assert virtual_clock.now() == client.calls[0]  # closing has not waited


@virtual_clock.in_virtual_time
async def test_the_slot_is_held_until_the_block_is_left_or_the_last_item_came() -> None:
    client, table = Client(), hosts(rates=Rates(in_flight=1))
    api = front(client, table)
    async with api.opened():
        second = asyncio.create_task(api.get())
        await asyncio.sleep(100)
        assert len(client.calls) == 1
    await second
    async for _ in api.pages():
        assert table.stats(0.0)["example.org"].in_flight == 1
    assert held(table) == 0


@virtual_clock.in_virtual_time
async def test_a_refusal_rests_the_host_and_is_raised_to_who_met_it() -> None:
    client, table = Client(), hosts()
    api = front(client, table)
    refused = RuntimeError("too many")
    refused.response = SimpleNamespace(status_code=429, headers={"Retry-After": "60"})  # type: ignore[attr-defined]
    client.outcomes = [refused]
    with pytest.raises(RuntimeError, match="too many"):
        await api.get()
    await api.get()
    assert client.calls[1] - client.calls[0] >= 60
    assert held(table) == 0


@virtual_clock.in_virtual_time
async def test_only_methods_that_were_named_are_called_again() -> None:
    client, table = Client(), hosts()
    api = front(client, table, retried={"get"})
    client.outcomes = [ConnectionError("gone")]
    assert await api.get() == "page"
    assert len(client.calls) == 2
    client.outcomes = [ConnectionError("gone")]
    with pytest.raises(ConnectionError):
        await api.later()
    assert held(table) == 0


@virtual_clock.in_virtual_time
async def test_an_error_of_the_callers_own_teaches_nothing_and_gives_the_place_back() -> None:
    client, table = Client(), hosts()
    api = front(client, table, retried={"get"})
    client.outcomes = [ValueError("no such field")]
    with pytest.raises(ValueError, match="no such field"):
        await api.get()
    assert table.stats(0.0)["example.org"].statuses == {}
    assert held(table) == 0


@virtual_clock.in_virtual_time
async def test_who_is_cancelled_while_waiting_never_calls() -> None:
    client, table = Client(), hosts(rates=Rates(in_flight=1))
    api = front(client, table)
    async with api.opened():
        waiting = asyncio.ensure_future(api.get())
        await asyncio.sleep(5)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert len(client.calls) == 1
    assert held(table) == 0


@virtual_clock.in_virtual_time
async def test_the_host_may_be_a_function_of_the_call() -> None:
    client, table = Client(), hosts()
    api = throttled(client, lambda path="/": path.strip("/") or "root", hosts=table, clock=virtual_clock.now)
    await asyncio.gather(api.get("/a"), api.get("/b"), api.get("/a"))
    assert {name: host.statuses for name, host in table.stats(0.0).items()} == {"a": {"200": 2}, "b": {"200": 1}}


@virtual_clock.in_virtual_time
async def test_a_host_that_rests_too_long_is_told() -> None:
    client, table = Client(), hosts(politeness=Politeness(wait_max=5))
    api = front(client, table)
    client.outcomes = [SimpleNamespace(status=503, headers={"retry-after": "90"})]
    await api.get()
    with pytest.raises(Refused, match="asks for"):
        await api.get()
    assert len(client.calls) == 1


class ReadTimeout(Exception):  # noqa: N818  # as httpx's is called
    pass


class ServerDisconnectedError(Exception):
    pass


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        ("any result", 200),
        (SimpleNamespace(status_code=404), 404),
        (SimpleNamespace(status=201, headers=None), 201),
        (SimpleNamespace(status="active"), 200),
        (SimpleNamespace(status=7), 200),
        (TimeoutError(), Failure.TIMEOUT),
        (ReadTimeout(), Failure.TIMEOUT),
        (ConnectionResetError(), Failure.CONNECT),
        (ServerDisconnectedError(), Failure.CONNECT),
    ],
)
def test_the_usual_answer_goes_by_the_customs_of_clients(outcome: Any, status: int | Failure) -> None:
    assert usual_answer(outcome, 5.0) == Answer(5.0, status)


def test_an_error_without_a_sign_says_nothing_of_the_host() -> None:
    assert usual_answer(KeyError("name"), 5.0) is None
