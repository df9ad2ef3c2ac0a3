"""Promise 7 and 9, for every header that is read: long, binary, forged, repeated; none fails, is slow, or is repeated
in a page or a line of the log."""

import asyncio
import tracemalloc
from collections.abc import Sequence
from typing import ClassVar

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.asgi import CHROME, GOOGLEBOT
from tests.hostile.requests import LARGEST, READ, SITES, Headers, Site, held_to_all, seconds_of_cpu

MARK = b"<script>alert('&amp;\"\x1b[31m\r\nset-cookie: a=b')</script>"
PIECES = [
    *(MARK, b"\0", b"\xff\xfe", b"\x1b[2J", b"\r\n", b'"', b",", b";", b"=", b"for=", b'for="[2001:db8::1]:80"', b"%"),
    *(b"10.0.0.2", b"203.0.113.7", b"::ffff:10.0.0.3", b"[::1", b"_hidden", b"unknown", b"999.1.1.1", b"1:2:3:4"),
    *(b"throttle=", b"__Host-throttle=", b"A" * 40, b"=" * 40, b"; throttle=" + b"_" * 40, b"document", b"image"),
    *(b"text/html", b"application/json", b"*/*", b"application/problem+json;q=0.1", b"https", b"http", b"https,http"),
    *(b"Mozilla/5.0 (", b" Chrome/143.0.0.0", b"; wv)", b" bot", b" Googlebot/2.1", b"CUBOT", b"(" * 50, b"/1." * 50),
    *(CHROME.encode(), GOOGLEBOT.encode(), "Gооglebot".encode(), "Mозиllа/5.0".encode(), b"crawler@example.org"),
]
VALUES = st.one_of(
    st.binary(max_size=60),
    st.lists(st.sampled_from(PIECES) | st.binary(max_size=8), max_size=8).map(b"".join),
    # As long as a server lets through, of one piece repeated.
    st.tuples(st.sampled_from(PIECES) | st.binary(min_size=1, max_size=8), st.integers(1, LARGEST)).map(
        lambda drawn: drawn[0] * (drawn[1] // len(drawn[0]))
    ),
)
HEADERS = st.lists(st.tuples(st.sampled_from(READ), VALUES), max_size=10)
BROWSER = [(b"user-agent", CHROME.encode()), (b"sec-fetch-mode", b"navigate")]
EACH_SITE = pytest.mark.parametrize("name", SITES)


@pytest.fixture(scope="module")
def built() -> dict[str, Site]:
    """Sites that stay, since what is remembered of one request must not spoil the next."""
    return {}


@EACH_SITE
@given(headers=HEADERS)
@settings(max_examples=60)
def test_no_headers_make_it_fail_and_nothing_of_them_stands_in_an_answer_or_in_the_log(
    name: str, built: dict[str, Site], headers: Headers
) -> None:
    site = built.setdefault(name, SITES[name]())
    first, second = asyncio.run(held_to_all(site, headers))
    assert second == {"everybody banned": 403, "dry run": 200}.get(name, 503)
    assert first in (200, second)


@pytest.mark.parametrize("accept", [b"text/html", b"application/json", b"text/plain", b"", MARK, b"json" + MARK])
@pytest.mark.parametrize("agent", [CHROME.encode(), GOOGLEBOT.encode(), b"feed" + MARK, MARK, b"", b"Chrome" + MARK])
@EACH_SITE
def test_in_no_form_of_answer_stands_what_a_caller_sent(name: str, agent: bytes, accept: bytes) -> None:
    marked = [(header, MARK) for header in READ if header not in (b"user-agent", b"accept")]
    asyncio.run(held_to_all(SITES[name](), [*marked, (b"user-agent", agent), (b"accept", accept)]))


@given(client=st.text(max_size=200), headers=HEADERS)
@example(client=MARK.decode("latin-1"), headers=[])
@example(client="1" * 70_000, headers=[])
@settings(max_examples=60)
def test_nor_what_a_server_believes_to_be_the_address(client: str, headers: Headers) -> None:
    asyncio.run(held_to_all(SITES["the page's rules"](), headers, client))
    asyncio.run(held_to_all(SITES["behind a proxy"](), headers, client))


@pytest.mark.parametrize("piece", [*PIECES, b"x"], ids=lambda piece: repr(piece[:16]))
@pytest.mark.parametrize("name", ["modern", "behind a proxy", "own lists"])
def test_no_header_of_64_kib_costs_a_millisecond(name: str, piece: bytes) -> None:
    site, whole = SITES[name](), piece * (LARGEST // len(piece))
    for header in READ:
        assert seconds_of_cpu(site, [(header, whole)]) < 0.001, header
        assert seconds_of_cpu(site, [*BROWSER, (header, whole)]) < 0.001, header


@pytest.mark.parametrize("header", READ)
@pytest.mark.parametrize("name", ["modern", "behind a proxy", "own lists"])
def test_no_header_given_thousands_of_times_costs_two_milliseconds(name: str, header: bytes) -> None:
    value = b"throttle=" + b"A" * 40 if header == b"cookie" else b"10.0.0.2"
    times = LARGEST // (len(header) + len(value) + 4)
    assert seconds_of_cpu(SITES[name](), [(header, value)] * times) < 0.002
    assert seconds_of_cpu(SITES[name](), [*BROWSER, *[(header, value)] * times]) < 0.002


@pytest.mark.parametrize("headers", [[b"user-agent"], [b"x-forwarded-for"], READ], ids=["agent", "hops", "every"])
def test_no_flood_of_long_headers_fills_memory(headers: Sequence[bytes]) -> None:
    """9,000 callers, more than any cache holds, each with a tenth of the 64 KiB in each header."""
    site, filling = SITES["behind a proxy"](), bytes(range(1, 256)) * 25

    async def flood(numbers: range) -> None:
        for number in numbers:
            site.clock.now += 0.01
            hop = b"203.0.%d.%d" % (number >> 8 & 255, number & 255)
            forged = b"%d%b; throttle=%040d, %b" % (number, filling, number, hop)
            await site.ask(site.scope([(name, forged) for name in headers]))

    asyncio.run(flood(range(10)))
    tracemalloc.start()
    try:
        asyncio.run(flood(range(10, 9_010)))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 32 << 20


class Told(bytes):
    """A header's name that notes with what it is compared."""

    seen: ClassVar[set[object]] = set()
    __hash__ = bytes.__hash__

    def __eq__(self, other: object) -> bool:
        Told.seen.add(other)
        return bytes(self) == other


def test_no_other_header_is_read_than_those_that_are_fuzzed() -> None:
    Told.seen.clear()
    for make in SITES.values():
        for agent in (CHROME, GOOGLEBOT, "curl/8.0"):
            site = make()
            for _ in range(2):
                headers = [(Told(b"x-nobody"), b"1"), (b"user-agent", agent.encode())]
                asyncio.run(site.ask(site.scope(headers)))
    compared = {name for name in Told.seen if isinstance(name, bytes)}
    asked_for_in_a_set = {b"origin", b"access-control-request-method"}
    assert compared == set(READ) - asked_for_in_a_set
