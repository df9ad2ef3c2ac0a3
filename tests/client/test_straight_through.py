"""A request that waits for nothing, and whose answer tells nothing, goes straight through; with the same books."""

import importlib
import threading
from random import Random
from typing import Any

import pytest

from throttle.client import Hosts, Rates
from throttle.client.host import Host
from throttle.client.pace.aimd import AimdPace
from throttle.client.told import tells_nothing


@pytest.fixture(params=["httpx", "httpx2"])
def library(request: Any) -> str:
    name: str = request.param
    return name


def client(library: str, answer: Any, **settings: Any) -> Any:
    """A blocking one, on an inner transport that answers as told."""
    httpx: Any = importlib.import_module(library)
    ours: Any = importlib.import_module(f"throttle.client.{library}")
    transport = ours.ThrottledTransport(transport=lambda: httpx.MockTransport(answer), **settings)
    return httpx.Client(transport=transport), transport


def held(transport: Any) -> tuple[int, int]:
    """Places and connections."""
    (stats,) = transport.stats().values()
    return stats.in_flight, sum(pool.count for pool in transport.pools._pools.values())


FAST = Rates(start=1e6, most=1e7)


def test_the_place_and_the_connection_are_held_until_the_body_is_closed(library: str) -> None:
    httpx: Any = importlib.import_module(library)
    asking, transport = client(library, lambda _: httpx.Response(200, stream=httpx.ByteStream(b"hello")), rates=FAST)
    with asking.stream("GET", "http://example.org/") as response:
        assert held(transport) == (1, 1)
        assert response.read() == b"hello"
    assert held(transport) == (0, 0)
    assert transport.stats()["example.org"].statuses == {"200": 1}


def test_a_body_that_fails_to_close_gives_both_back(library: str) -> None:
    httpx: Any = importlib.import_module(library)

    class Broken(httpx.SyncByteStream):  # type: ignore[misc]  # which library, is seen when it runs
        def __iter__(self) -> Any:
            yield b"hel"

        def close(self) -> None:
            raise OSError("reset")

    asking, transport = client(library, lambda _: httpx.Response(200, stream=Broken()), rates=FAST)
    with pytest.raises(OSError, match="reset"):
        asking.get("http://example.org/")
    assert held(transport) == (0, 0)


def test_a_listener_that_fails_holds_no_place(library: str) -> None:
    def listen(event: Any) -> None:
        raise LookupError("mine")

    httpx: Any = importlib.import_module(library)
    asking, transport = client(library, lambda _: httpx.Response(200), rates=FAST, on_event=listen)
    with pytest.raises(LookupError, match="mine"):
        asking.get("http://example.org/")
    assert held(transport) == (0, 0)


def test_what_an_inner_transport_raises_holds_nothing(library: str) -> None:
    def answer(_: Any) -> Any:
        raise ValueError("no such scheme")

    asking, transport = client(library, answer, rates=FAST)
    with pytest.raises(ValueError, match="no such scheme"):
        asking.get("http://example.org/")
    assert held(transport) == (0, 0)


def test_a_pool_that_cannot_be_made_holds_no_place(library: str) -> None:
    def make() -> Any:
        raise RuntimeError("no certificates")

    httpx: Any = importlib.import_module(library)
    ours: Any = importlib.import_module(f"throttle.client.{library}")
    transport = ours.ThrottledTransport(transport=make, rates=FAST)
    with pytest.raises(RuntimeError, match="no certificates"):
        httpx.Client(transport=transport).get("http://example.org/")
    assert held(transport) == (0, 0)


@pytest.mark.parametrize("name", [b"RateLimit", b"RETRY-AFTER", b"x-ratelimit-Remaining", b"CF-Mitigated", b"Age"])
def test_a_field_that_tells_something_is_seen_however_it_is_written(name: bytes) -> None:
    fields = [(b"Content-Type", b"text/html"), (name, b"0")]
    assert not tells_nothing(200, fields)
    assert tells_nothing(200, fields[:1])
    assert tells_nothing(404, fields[:1])


@pytest.mark.parametrize("status", [401, 403, 408, 429, 500, 502, 503, 504])
def test_a_status_that_is_not_served_tells_something(status: int) -> None:
    assert not tells_nothing(status, [])


def test_a_part_of_a_slot_is_none() -> None:
    pace = AimdPace(rate=1e6)
    host = Host("example.org", pace, 0.0, Random(1))
    host.in_flight.limit = 2.9
    pace.in_flight_max = 2.9
    assert host.place_at_once(1.0) is not None
    assert host.place_at_once(2.0) is not None
    assert host.place_at_once(3.0) is None


def test_a_host_that_was_dropped_from_the_table_is_not_found_by_its_authority_either() -> None:
    table = Hosts(AimdPace, hosts_max=3)
    first = table.host(b"www.example.org", 0.0)
    for number in range(3):
        table.host(f"site{number}.org", 0.5)
    again = table.host(b"www.example.org", 0.6)
    assert again is not first
    assert table.host("example.org", 0.7) is again
    assert len(table) == 3


def test_a_host_that_is_asked_all_the_time_is_not_the_longest_unasked() -> None:
    table = Hosts(AimdPace, hosts_max=2)
    busy = table.host("busy.org", 0.0)
    table.host("other.org", 0.1)
    for tenth in range(2, 25):
        assert table.host("busy.org", tenth / 10) is busy
    table.host("third.org", 2.5)
    assert table.host("busy.org", 2.6) is busy


def test_authorities_cannot_fill_the_memory() -> None:
    table = Hosts(AimdPace)
    for number in range(3000):
        table.host(f"www{number}.example.org", 0.0)
    assert len(table) == 1
    assert len(table._lately) <= 1000


def test_threads_that_share_a_pool_give_all_of_it_back(library: str) -> None:
    httpx: Any = importlib.import_module(library)
    asking, transport = client(
        library, lambda _: httpx.Response(200, stream=httpx.ByteStream(b"hello")), pace=lambda _: AimdPace(rate=1e6)
    )

    def ask() -> None:
        for _ in range(50):
            assert asking.get("http://example.org/").content == b"hello"

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert held(transport) == (0, 0)
    assert transport.stats()["example.org"].statuses == {"200": 200}
