"""Under httpx and httpx2: answers dropped without closing, pools smaller than slots, ports where nobody listens."""

import asyncio
import gc
import importlib
import socket
import time
from functools import partial
from typing import Any

import pytest

from tests import virtual_clock
from tests.client.loopback import site
from throttle.client import HostStopped, Politeness, Rates
from throttle.client.answer import Answer
from throttle.client.pace import Pace
from throttle.client.pace.aimd import AimdPace


def aimd(rates: Rates) -> Pace:
    return AimdPace(rate=rates.start, in_flight_max=rates.in_flight)


@virtual_clock.in_virtual_time
async def test_an_answer_dropped_without_closing_gives_its_slot_to_who_waits() -> None:
    for name in ("httpx", "httpx2"):
        httpx: Any = importlib.import_module(name)
        ours: Any = importlib.import_module(f"throttle.client.{name}")

        def answer(request: Any, httpx: Any = httpx) -> Any:
            return httpx.Response(200, stream=httpx.ByteStream(b"hello"))

        transport = ours.AsyncThrottledTransport(
            pace=aimd,
            rates=Rates(start=1e6, in_flight=1),
            clock=virtual_clock.now,
            transport=partial(httpx.MockTransport, answer),
        )
        client = httpx.AsyncClient(transport=transport)
        dropped: Any = await client.send(client.build_request("GET", "http://example.org/"), stream=True)
        waiting = asyncio.create_task(client.get("http://example.org/"))
        await asyncio.sleep(1)
        assert not waiting.done()
        assert transport.stats()["example.org"].in_flight == 1
        del dropped
        gc.collect()  # httpx's own ring of references takes the collector
        assert (await waiting).status_code == 200
        assert transport.stats()["example.org"].in_flight == 0
        assert not any(pool.count for pool in transport.pools._pools.values())
        await client.aclose()


def test_a_thread_that_drops_an_answer_gives_its_slot_back_too(httpx: Any, throttle_for: Any) -> None:
    def answer(request: Any) -> Any:
        return httpx.Response(200, stream=httpx.ByteStream(b"hello"))

    transport = throttle_for.ThrottledTransport(pace=aimd, transport=partial(httpx.MockTransport, answer))
    with httpx.Client(transport=transport) as client:
        dropped: Any = client.send(client.build_request("GET", "http://example.org/"), stream=True)
        assert transport.stats()["example.org"].in_flight == 1
        del dropped
        gc.collect()
        assert transport.stats()["example.org"].in_flight == 0


def test_no_host_gets_more_slots_than_there_are_connections(httpx: Any, throttle_for: Any) -> None:
    def slots(host: str, **options: Any) -> float:
        limits = httpx.Limits(max_connections=3)
        own = {"per_host": {"b.example": Rates(in_flight=2), "c.example": Rates(in_flight=9)}}
        transport = throttle_for.ThrottledTransport(pace=aimd, limits=limits, **own, **options)
        pace: Pace = transport.hosts.host(host, 0.0).pace
        return pace.in_flight_max

    assert [slots("a.example"), slots("b.example"), slots("c.example")] == [3, 2, 3]
    assert slots("a.example", http2=True) == 100  # one connection carries many requests


def test_a_port_where_nobody_listens_is_told_soon(httpx: Any, throttle_for: Any) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]  # nobody listens at it, and nobody else gets it
        with httpx.Client(transport=throttle_for.ThrottledTransport(), trust_env=False) as client:
            started = time.monotonic()
            with pytest.raises(httpx.ConnectError):
                client.get(f"http://127.0.0.1:{port}/")
            assert time.monotonic() - started < 5


def test_a_callers_own_rule_sees_what_an_error_says(httpx: Any, throttle_for: Any) -> None:
    def is_block(answer: Answer) -> bool:
        return b"are you a robot" in answer.body

    def answer(request: Any) -> Any:
        return httpx.Response(403, stream=httpx.ByteStream(b"<p>are you a robot?"))

    with site() as server:  # a page that is served is not looked into
        transport = throttle_for.ThrottledTransport(politeness=Politeness(is_block=is_block))
        with httpx.Client(transport=transport, trust_env=False) as client:
            assert client.get(f"{server.url}/hello").status_code == 200
    transport = throttle_for.ThrottledTransport(
        politeness=Politeness(is_block=is_block), transport=partial(httpx.MockTransport, answer)
    )
    with httpx.Client(transport=transport) as client:
        assert client.get("http://example.org/").text == "<p>are you a robot?"
        with pytest.raises(HostStopped):
            client.get("http://example.org/")
