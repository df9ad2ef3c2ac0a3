"""What only httpx and httpx2 have: pools, HTTP/2, trio, time-outs that waiting does not eat, other inner transports."""

import asyncio
import importlib
import ssl
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
import trio
import trustme

from tests import virtual_clock
from tests.client.http2_site import Http2Site, http2_site
from tests.client.loopback import site
from throttle.client import Backoff, HostRests, Politeness, Rates, Refused, polite_hosts
from throttle.client.pace import Pace
from throttle.client.pace.aimd import AimdPace
from throttle.client.pools import Pools

NO_RETRIES = Politeness(backoff=Backoff(retries_max=0))


def aimd(rates: Rates) -> Pace:
    return AimdPace(rate=rates.start, in_flight_max=rates.in_flight)


# -- HTTP/2


async def one_connection_bears_all(httpx: Any, transport: Any, site: Http2Site) -> None:
    """One request, then twelve at once, of which no more than the three slots are open."""
    async with httpx.AsyncClient(transport=transport) as client:
        await client.get(site.url)
        answers = await asyncio.gather(*(client.get(site.url) for _ in range(12)))
    assert {(answer.http_version, answer.text) for answer in answers} == {("HTTP/2", "hello")}
    assert site.connections == 1
    assert site.open_most <= 3


def test_http2_shares_a_connection_and_the_slots_are_the_limit(httpx: Any, throttle_for: Any) -> None:
    async def scenario() -> None:
        async with http2_site() as site:
            transport = throttle_for.AsyncThrottledTransport(
                pace=aimd, rates=Rates(start=1e6, in_flight=3), http1=False, http2=True
            )
            await one_connection_bears_all(httpx, transport, site)

    asyncio.run(scenario())


def test_http2_is_agreed_on_over_tls(httpx: Any, throttle_for: Any) -> None:
    async def scenario() -> None:
        authority = trustme.CA()
        server, client_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
        authority.issue_cert("127.0.0.1").configure_cert(server)
        authority.configure_trust(client_side)
        server.set_alpn_protocols(["h2"])
        async with http2_site(server) as site:
            site.statuses = [503]
            transport = throttle_for.AsyncThrottledTransport(
                pace=aimd, rates=Rates(start=1e6, in_flight=3), http2=True, verify=client_side
            )
            await one_connection_bears_all(httpx, transport, site)
            (stats,) = transport.stats().values()
            assert stats.statuses == {"503": 1, "200": 13}

    asyncio.run(scenario())


def test_http2_refusals_are_heard(httpx: Any, throttle_for: Any) -> None:
    async def scenario() -> None:
        async with http2_site() as site:
            site.statuses = [503]
            transport = throttle_for.AsyncThrottledTransport(
                pace=aimd, rates=Rates(start=100.0), http1=False, http2=True
            )
            async with httpx.AsyncClient(transport=transport) as client:
                assert (await client.get(site.url)).status_code == 200
            (stats,) = transport.stats().values()
            assert stats.statuses == {"503": 1, "200": 1}

    asyncio.run(scenario())


# -- other event loops, threads


def test_it_runs_on_trio_and_waits_there(httpx: Any, throttle_for: Any) -> None:
    async def scenario() -> None:
        with site() as opened:
            transport = throttle_for.AsyncThrottledTransport(pace=aimd, rates=Rates(start=100.0, in_flight=1))
            async with httpx.AsyncClient(transport=transport) as client, trio.open_nursery() as nursery:
                for _ in range(5):
                    nursery.start_soon(client.get, f"{opened.url}/hello")
            assert opened.paths() == 5 * ["/hello"]
            assert opened.open_most == 1

    trio.run(scenario)


def test_threads_share_one_pace_and_hold_no_more_than_the_slots(httpx: Any, throttle_for: Any) -> None:
    with site() as opened:
        transport = throttle_for.ThrottledTransport(pace=aimd, rates=Rates(start=1e5, in_flight=2))
        with httpx.Client(transport=transport, timeout=20) as client, ThreadPoolExecutor(12) as threads:
            answers = list(threads.map(lambda _: client.get(f"{opened.url}/hello").text, range(120)))
        assert answers == 120 * ["hello"]
        assert opened.open_most <= 2
        (stats,) = transport.stats().values()
        assert (stats.in_flight, stats.waiting, stats.statuses) == (0, 0, {"200": 120})


def test_loops_and_threads_may_share_a_table(httpx: Any, throttle_for: Any) -> None:
    with site() as opened:
        hosts = polite_hosts(pace=aimd, rates=Rates(start=1e5, in_flight=1))
        url = f"{opened.url}/hello"

        async def ask() -> None:
            async with httpx.AsyncClient(transport=throttle_for.AsyncThrottledTransport(hosts), timeout=20) as client:
                await asyncio.gather(*(client.get(url) for _ in range(30)))

        def ask_blocking() -> None:
            with httpx.Client(transport=throttle_for.ThrottledTransport(hosts), timeout=20) as client:
                for _ in range(30):
                    client.get(url)

        with ThreadPoolExecutor(4) as threads:
            runs = [threads.submit(run) for run in (ask_blocking, ask_blocking, partial(asyncio.run, ask()))]
            runs.append(threads.submit(lambda: asyncio.run(ask())))
            for run in runs:
                run.result(timeout=30)
        assert len(opened.asked) == 120
        assert opened.open_most == 1


# -- time-outs


@virtual_clock.in_virtual_time
async def test_waiting_for_the_pace_counts_against_no_timeout_of_the_clients() -> None:
    for name in ("httpx", "httpx2"):
        httpx: Any = importlib.import_module(name)
        ours: Any = importlib.import_module(f"throttle.client.{name}")
        asked_at: list[float] = []

        async def answer(request: Any, httpx: Any = httpx, asked_at: list[float] = asked_at) -> Any:
            asked_at.append(virtual_clock.now())
            async with asyncio.timeout(request.extensions["timeout"]["read"]):
                await asyncio.sleep(0.5)
            return httpx.Response(200)

        transport = ours.AsyncThrottledTransport(
            pace=lambda _: AimdPace(rate=0.1, increase=0.0),
            clock=virtual_clock.now,
            transport=partial(httpx.MockTransport, answer),
        )
        async with httpx.AsyncClient(transport=transport, timeout=1.0) as client:
            await asyncio.gather(*(client.get("http://example.org/") for _ in range(3)))
        assert asked_at[-1] - asked_at[0] >= 20


# -- pools


class Closed:
    """A transport, or what stands for one, that knows whether it was closed."""

    def __init__(self, origin: object = None) -> None:
        self.is_closed = False


def test_idle_pools_are_closed_after_a_time_and_when_they_are_too_many() -> None:
    made: dict[object, Closed] = {}

    def make(origin: tuple[str, bytes]) -> Closed:
        made[origin] = Closed()
        return made[origin]

    now = 0.0
    pools = Pools(make, lambda: now, idle_max=2, idle_seconds=5.0)
    origins = [("http", bytes([65 + turn])) for turn in range(4)]
    taken = [pools.take(origin) for origin in origins]
    assert pools.take(origins[0]) is taken[0]
    pools.give_back(taken[0])
    assert pools.surplus_from == float("inf")  # none is idle
    for turn, pool in enumerate(taken):
        now = 1.0 + turn
        pools.give_back(pool)
    assert list(pools.surplus(4.0)) == [made[origins[0]], made[origins[1]]]
    assert list(pools.surplus(8.0)) == []
    assert pools.surplus_from == 8.0
    assert list(pools.surplus(8.1)) == [made[origins[2]]]
    assert len(pools) == 1


def test_each_origin_has_a_pool_and_an_idle_one_is_closed(httpx: Any, throttle_for: Any) -> None:
    now = [0.0]
    made: list[Any] = []

    class Inner(httpx.AsyncBaseTransport):  # type: ignore[misc]  # which of the two is seen when it runs
        is_closed = False

        async def handle_async_request(self, request: Any) -> Any:
            return httpx.Response(200, text="hello")

        async def aclose(self) -> None:
            self.is_closed = True

    def make() -> Any:
        made.append(Inner())
        return made[-1]

    async def scenario() -> None:
        transport = throttle_for.AsyncThrottledTransport(
            pace=aimd, rates=Rates(start=1e6), transport=make, clock=lambda: now[0]
        )
        async with httpx.AsyncClient(transport=transport) as client:
            for origin in ("http://a.example.org", "https://a.example.org", "http://b.example.org:8000"):
                now[0] += 1
                await client.get(origin)
            now[0] += 1
            await client.get("http://a.example.org/again")
            assert len(made) == 3
            assert list(transport.stats()) == ["example.org"]  # one host, whatever the pools
            now[0] = 7.5
            await client.get("http://b.example.org:8000")
            assert [inner.is_closed for inner in made] == [False, True, False]
        assert all(inner.is_closed for inner in made)

    asyncio.run(scenario())


# -- settings


def test_per_host_settings_hold_for_the_name_and_what_is_below_it(httpx: Any, throttle_for: Any) -> None:
    transport = throttle_for.AsyncThrottledTransport(
        rates=Rates(start=3.0),
        per_host={"api.example.org": Rates(start=7.0), "example.net": lambda: AimdPace(rate=9.0)},
        transport=lambda: httpx.MockTransport(lambda _: httpx.Response(200)),
    )

    async def scenario() -> None:
        async with httpx.AsyncClient(transport=transport) as client:
            for name in ("www.example.org", "v2.api.example.org", "www.example.net"):
                await client.get(f"http://{name}/")

    asyncio.run(scenario())
    rates = {name: round(host.rate) for name, host in transport.stats().items()}
    assert rates == {"example.org": 3, "api.example.org": 7, "example.net": 9}


def test_a_listener_hears_what_the_throttle_did_and_may_ask_for_stats(httpx: Any, throttle_for: Any) -> None:
    heard: list[str] = []

    def listen(event: Any) -> None:
        heard.append(type(event).__name__)
        transport.stats()

    transport = throttle_for.ThrottledTransport(
        pace=aimd,
        on_event=listen,
        politeness=NO_RETRIES,
        transport=lambda: httpx.MockTransport(lambda _: httpx.Response(429)),
    )
    with httpx.Client(transport=transport) as client:
        client.get("http://example.org/")
    assert heard[:2] == ["Dropped", "Rested"]


def test_a_proxy_that_was_given_is_asked_for_all(httpx: Any, throttle_for: Any) -> None:
    with site() as proxy:
        transport = throttle_for.ThrottledTransport(proxy=proxy.url, pace=aimd)
        with httpx.Client(transport=transport) as client:
            assert client.get("http://example.org/hello").text == "hello"
    assert proxy.paths() == ["http://example.org/hello"]


def test_the_environment_is_not_asked_for_a_proxy_when_told_so(
    httpx: Any, throttle_for: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("all_proxy", "http://127.0.0.1:1")
    with site() as opened:
        transport = throttle_for.ThrottledTransport(trust_env=False, pace=aimd)
        with httpx.Client(transport=transport) as client:
            assert client.get(f"{opened.url}/hello").text == "hello"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"retries": 3}, "unknown: retries"),
        ({"transport": object, "http2": True}, "http2: give these"),
        ({"hosts": polite_hosts(), "rates": Rates()}, "rates: set these where"),
        ({"rates": 5}, r"5 tells no pace: write Rates\(most=5\)"),
        ({"per_host": {"a.example": 5}}, "5 tells no pace"),
        ({"memory": 3}, "memory= is a path"),
    ],
)
def test_what_cannot_be_meant_is_told_at_once(throttle_for: Any, settings: dict[str, Any], said: str) -> None:
    for transport in (throttle_for.ThrottledTransport, throttle_for.AsyncThrottledTransport):
        with pytest.raises(TypeError, match=said):
            transport(**settings)


@pytest.mark.parametrize("numbers", [{"least": 0}, {"least": 2, "most": 1}, {"start": 0}, {"in_flight": 0}])
def test_rates_that_serve_nobody_are_told_at_once(numbers: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"rate|at once"):
        Rates(**numbers)


# -- errors


def test_who_catches_the_clients_errors_catches_ours_with_the_request(httpx: Any, throttle_for: Any) -> None:
    transport = throttle_for.ThrottledTransport(
        politeness=Politeness(wait_max=1.0),
        transport=lambda: httpx.MockTransport(lambda _: httpx.Response(429, headers={"retry-after": "90"})),
    )
    with httpx.Client(transport=transport) as client:
        client.get("http://example.org/")
        with pytest.raises(httpx.TransportError) as raised:
            client.get("http://example.org/")
    assert isinstance(raised.value, HostRests)
    assert isinstance(raised.value, Refused)
    assert raised.value.request.url.host == "example.org"
    assert 85 < raised.value.seconds < 100


@pytest.mark.parametrize(
    ("error", "counted"),
    [("ConnectError", "connection error"), ("ReadTimeout", "time-out"), ("PoolTimeout", None), ("ProxyError", None)],
)
def test_an_error_counts_against_the_host_only_if_it_is_the_hosts(
    httpx: Any, throttle_for: Any, error: str, counted: str | None
) -> None:
    def fail(request: Any) -> Any:
        raise getattr(httpx, error)("so")

    transport = throttle_for.ThrottledTransport(
        politeness=NO_RETRIES, transport=lambda: httpx.MockTransport(fail), pace=aimd
    )
    with httpx.Client(transport=transport) as client, pytest.raises(getattr(httpx, error)):
        client.get("http://example.org/")
    (stats,) = transport.stats().values()
    assert stats.statuses == ({counted: 1} if counted else {})
    assert stats.in_flight == 0


# -- loading


def in_a_fresh_process(code: str) -> str:
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return ran.stdout.strip()


def test_the_client_half_loads_no_client_and_no_web_framework() -> None:
    libraries = ("asyncio", "httpx", "httpx2", "aiohttp", "starlette")
    loaded = f"import sys, throttle.client; print([name for name in {libraries} if name in sys.modules])"
    assert in_a_fresh_process(loaded) == "[]"


@pytest.mark.parametrize(
    ("library", "code"),
    [
        ("httpx", "from throttle.client import AsyncThrottledTransport"),
        ("httpx2", "import throttle.client.httpx2"),
        ("aiohttp", "import throttle.client.aiohttp"),
    ],
)
def test_a_client_that_is_missing_is_told_in_one_sentence(library: str, code: str) -> None:
    told = in_a_fresh_process(
        f"import sys\nsys.modules[{library!r}] = None\ntry:\n    {code}\nexcept ImportError as e:\n    print(e)"
    )
    assert told.startswith(f"throttle.client.{library} needs {library}: pip install 'asgi-throttle[")
