"""A borrowed browser's agent: who sends nothing of what browsers send, over https, is an assumed bot."""

import asyncio
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.asgi import CHROME, Request, ask, http_scope
from tests.server.site import Gate, site
from tests.virtual_clock import in_virtual_time
from throttle import Limits
from throttle.server.agents import classify
from throttle.server.evidence import Finding, finding_on_browser, has_fetch_metadata, is_modern_browser

WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)"
WINDOWS = "Mozilla/5.0 (Windows NT 10.0; Win64; x64)"
MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko)"
IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 16_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"
PHONE = f"Mozilla/5.0 (Linux; Android 10; K) {WEBKIT}"


def gecko(version: str) -> str:
    return f"Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/{version}"


MODERN = [
    f"{WINDOWS} {WEBKIT} Chrome/80.0.3987.87 Safari/537.36",
    CHROME,
    f"{CHROME} Edg/143.0.0.0",
    CHROME.lower(),
    CHROME.upper(),
    f"{CHROME} OPR/116.0.0.0",
    f"{PHONE} Chrome/131.0.0.0 Mobile Safari/537.36",
    gecko("90.0"),
    gecko("145.0"),
    f"{MAC} Version/16.4 Safari/605.1.15",
    f"{MAC} Version/18.1.1 Safari/605.1.15",
    f"{IPHONE} Version/16.4 Mobile/15E148 Safari/604.1",
]
NOT_MODERN = [
    f"{WINDOWS} {WEBKIT} Chrome/79.0.3945.88 Safari/537.36",
    f"{WINDOWS} {WEBKIT} Chrome/70.0.3538.102 Safari/537.36 Edge/18.19045",
    gecko("89.0"),
    f"{MAC} Version/16.3 Safari/605.1.15",
    f"{MAC} Version/9.10 Safari/605.1.15",
    f"{IPHONE} CriOS/131.0.0.0 Mobile/15E148 Safari/604.1",
    f"Mozilla/5.0 (Linux; Android 14; Pixel 8; wv) {WEBKIT} Version/4.0 Chrome/131.0.0.0 Mobile Safari/537.36",
    f"{PHONE} Chrome/131.0.0.0 Mobile Safari/537.36 OPR/mini",
    f"Mozilla/5.0 (Linux; U; Android 11; K) {WEBKIT} Version/4.0 Chrome/100.0.0.0 UCBrowser/13.7 Mobile Safari/537.36",
    "Lynx/2.8.9",
    "Chrome/131",
    "",
]
BROWSERS_OWN = [("Accept-Language", "en"), ("Sec-Fetch-Mode", "navigate")]
PICKY = Limits(need_fetch_metadata=True, load_max=1, sleeping_max=0)
"""under these a bot is refused while another request runs"""


@pytest.mark.parametrize("agent", MODERN)
def test_browsers_that_send_fetch_metadata_are_known_by_their_version(agent: str) -> None:
    assert is_modern_browser(agent.encode())
    assert classify(agent.encode()).caller_class.is_browser


@pytest.mark.parametrize("agent", NOT_MODERN)
def test_nothing_is_expected_of_older_browsers_web_views_and_browsers_fed_by_their_makers_servers(agent: str) -> None:
    assert not is_modern_browser(agent.encode())


@pytest.mark.parametrize("sent", BROWSERS_OWN)
def test_one_of_the_two_headers_is_enough(sent: tuple[str, str]) -> None:
    headers = http_scope(headers=[sent])["headers"]
    assert finding_on_browser(CHROME.encode(), headers, is_https=True) is Finding.UNKNOWN


def test_a_browser_without_either_is_none_over_https_and_passes_over_http() -> None:
    headers = http_scope()["headers"]
    assert finding_on_browser(CHROME.encode(), headers, is_https=True) is Finding.NO_BROWSER
    assert finding_on_browser(CHROME.encode(), headers, is_https=False) is Finding.UNKNOWN


def test_the_verdict_says_what_decided() -> None:
    assert Finding.NO_BROWSER.value == "browser without fetch metadata"


async def taken_for(limits: Limits = PICKY, *, settings: dict[str, Any] | None = None, **scope: Any) -> list[str]:
    """The classes as which a site has counted one request."""
    app = site(limits=limits, **(settings or {}))
    await ask(app, **{"scheme": "https", **scope})
    return [name for name, tally in app.counts().items() if tally["served"]]


@in_virtual_time
async def test_a_borrowed_agent_is_an_assumed_bot_and_a_browser_stays_one() -> None:
    assert await taken_for(agent=CHROME) == ["assumed bot"]
    assert await taken_for(agent=CHROME, headers=BROWSERS_OWN) == ["browser"]
    assert await taken_for(agent=NOT_MODERN[0]) == ["browser"]


@in_virtual_time
async def test_the_page_asks_for_no_evidence() -> None:
    assert await taken_for(Limits(), agent=CHROME) == ["browser"]


@in_virtual_time
async def test_nothing_is_asked_over_http_nor_of_a_websocket() -> None:
    assert await taken_for(agent=CHROME, scheme="http") == ["browser"]
    assert await taken_for(agent=CHROME, type="websocket", scheme="wss") == ["browser"]
    assert await taken_for(agent=CHROME, scheme=None) == ["browser"]


@pytest.mark.parametrize(
    ("client", "server_says", "proto", "classes"),
    [
        ("10.0.0.1", "http", ["https"], ["assumed bot"]),
        ("10.0.0.1", "http", [" HTTPS "], ["assumed bot"]),
        ("10.0.0.1", "http", ["http"], ["browser"]),
        ("10.0.0.1", "https", ["http"], ["browser"]),  # the proxy speaks https with us, and http with the browser
        ("10.0.0.1", "https", [], ["assumed bot"]),
        ("10.0.0.1", "http", ["https", "http"], ["browser"]),
        ("10.0.0.1", "http", ["https, http"], ["browser"]),
        ("10.0.0.1", "http", ["https\x00"], ["browser"]),
        ("192.0.2.1", "http", ["https"], ["browser"]),  # nobody's proxy
        ("192.0.2.1", "https", ["http"], ["assumed bot"]),
    ],
)
def test_https_is_what_the_server_says_or_a_trusted_proxy(
    client: str, server_says: str, proto: list[str], classes: list[str]
) -> None:
    @in_virtual_time
    async def story() -> None:
        headers = [("X-Forwarded-For", "203.0.113.7"), *(("X-Forwarded-Proto", value) for value in proto)]
        settings = {"trusted_proxies": ["10.0.0.0/8"]}
        assert (
            await taken_for(agent=CHROME, client=client, scheme=server_says, headers=headers, settings=settings)
            == classes
        )

    story()


@in_virtual_time
async def test_a_borrowed_agent_is_refused_for_load_and_the_log_says_why(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "throttle.refused")
    gate = Gate()
    app = site(gate, limits=PICKY)
    running = Request(app, http_scope("/slow", client="198.51.100.1", headers=BROWSERS_OWN, scheme="https"))
    await asyncio.sleep(1)
    assert gate.running
    assert (await ask(app, scheme="https")).status == 503
    assert (await ask(app, scheme="https", headers=BROWSERS_OWN)).status == 200
    gate.opened.set()
    await running.finished()
    app._refusals.close()
    assert "Chrome on Windows (browser without fetch metadata) at 192.0.2.1 (1)" in caplog.text


HEADERS = st.lists(
    st.tuples(
        st.sampled_from([b"accept-language", b"sec-fetch-mode", b"user-agent", b"x-forwarded-proto", b"x"]),
        st.binary(max_size=200),
    ),
    max_size=8,
)


@given(agent=st.binary(max_size=600) | st.sampled_from(MODERN).map(str.encode), headers=HEADERS, is_https=st.booleans())
def test_no_headers_make_it_fail_and_only_both_missing_tells(
    agent: bytes, headers: list[tuple[bytes, bytes]], is_https: bool
) -> None:
    found = finding_on_browser(agent, headers, is_https=is_https)
    names = {name for name, _ in headers}
    if not is_https or names & {b"accept-language", b"sec-fetch-mode"}:
        assert found is Finding.UNKNOWN
    assert (found is Finding.NO_BROWSER) == (
        is_https and is_modern_browser(agent) and not names & {b"accept-language", b"sec-fetch-mode"}
    )


@given(headers=HEADERS, scheme=st.sampled_from(["http", "https", "ws", "", None, "HTTPS"]))
def test_no_request_makes_the_middleware_fail(headers: list[tuple[bytes, bytes]], scheme: str | None) -> None:
    @in_virtual_time
    async def story() -> None:
        app = site(limits=PICKY, trusted_proxies=["10.0.0.0/8"])
        raw = {**http_scope(client="10.0.0.1", scheme=scheme), "headers": headers}
        assert (await Request(app, raw).finished()).status == 200

    story()


@pytest.mark.parametrize(
    "agent",
    [b" Chrome/" * 64, b" Version/1.1 " * 39, b" Version/16.4." + b"S" * 490, b" Firefox/" + b"9" * 500, b"\xff" * 512],
)
def test_no_agent_takes_longer_than_a_millisecond(agent: bytes) -> None:
    took = min(_seconds(agent) for _ in range(5))
    assert took < 0.001


def _seconds(agent: bytes) -> float:
    began = time.thread_time()
    is_modern_browser(agent)
    return time.thread_time() - began


def test_the_headers_are_looked_through_in_less_than_a_microsecond() -> None:
    names = "host connection sec-ch-ua sec-ch-ua-mobile sec-ch-ua-platform upgrade-insecure-requests user-agent accept"
    headers = [(name.encode(), b"x") for name in (*names.split(), "accept-encoding", "cookie", "referer", "priority")]
    assert not has_fetch_metadata(headers)
    rounds = []
    for _ in range(20):
        began = time.thread_time()
        for _ in range(1000):
            has_fetch_metadata(headers)
        rounds.append(time.thread_time() - began)
    assert min(rounds) / 1000 < 1e-6
