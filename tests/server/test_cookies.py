"""The signed cookie of a browser: what is believed, and what is not."""

import asyncio
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from throttle.server.cookies import LASTS, LENGTH, NAME, PENDING, REMEMBERED, TRIES, Cookies, with_cookie

NOW = 1_800_000_000.0
COOKIES = Cookies(b"a secret of the site")


def value(cookies: Cookies = COOKIES, now: float = NOW, **more: int) -> bytes:
    """What a browser sends back."""
    return cookies.field(now, is_secure=False, **more)[1].split(b";")[0]


def test_a_cookie_is_read_by_whoever_knows_the_secret_and_each_is_another() -> None:
    header = value()
    key = COOKIES.read(header, NOW)
    assert key is not None
    assert Cookies(b"a secret of the site").read(header, NOW) == key
    assert COOKIES.read(value(), NOW) != key


def test_another_secrets_cookie_is_nothing() -> None:
    assert COOKIES.read(value(Cookies(b"another secret")), NOW) is None


def test_a_cookie_counts_for_a_day_and_is_nothing_then() -> None:
    header = value()
    assert COOKIES.read(header, NOW + LASTS - 1) == COOKIES.read(header, NOW) is not None
    assert COOKIES.read(header, NOW + LASTS) is None
    assert Cookies(b"a secret of the site").read(header, NOW + LASTS) is None, "whoever reads it first"


def test_a_cookie_given_with_a_refusal_counts_when_the_told_wait_is_over() -> None:
    header = value(now=NOW + 0.9, wait=7)
    assert COOKIES.read(header, NOW + 6.9) == PENDING
    assert COOKIES.read(header, NOW + 7.9) not in (None, PENDING)


@pytest.mark.parametrize("place", range(LENGTH))
def test_a_cookie_of_which_one_character_was_changed_is_nothing(place: int) -> None:
    raw = bytearray(value())
    at = len(NAME) + place
    raw[at] = ord("A") if raw[at] != ord("A") else ord("B")
    assert COOKIES.read(bytes(raw), NOW) is None


def test_a_cookie_of_which_the_time_was_changed_is_nothing() -> None:
    raw = urlsafe_b64decode(value()[len(NAME) :])
    later = raw[:9] + (int(NOW) + LASTS).to_bytes(5, "big") + raw[14:]
    assert COOKIES.read(NAME + urlsafe_b64encode(later), NOW + LASTS) is None


@pytest.mark.parametrize("around", [b"%b", b"a=1; %b", b"%b; b=2", b"a=1;%b;b=2", b"__Host-%b", b"old_throttle=x; %b"])
def test_it_is_found_among_the_cookies_of_the_site(around: bytes) -> None:
    assert COOKIES.read(around % value(), NOW) is not None


def test_a_dead_cookie_does_not_hide_a_live_one() -> None:
    dead, live = value(now=NOW - LASTS), value()
    assert COOKIES.read(dead + b"; " + live, NOW) == COOKIES.read(live, NOW)


def test_only_the_first_few_of_many_cookies_are_tried() -> None:
    live = value()
    assert COOKIES.read(b"throttle=x; " * (TRIES - 1) + live, NOW) is not None
    assert COOKIES.read(b"throttle=x; " * TRIES + live, NOW) is None


def test_over_https_the_cookie_is_secure_and_no_other_host_can_plant_it() -> None:
    _, plain = COOKIES.field(NOW, is_secure=False)
    _, secure = COOKIES.field(NOW, is_secure=True)
    assert plain.endswith(b"; Path=/; Max-Age=86400; HttpOnly; SameSite=Lax")
    assert secure.startswith(b"__Host-throttle=")
    assert secure.endswith(b"; Path=/; Max-Age=86400; HttpOnly; SameSite=Lax; Secure")


def test_what_is_remembered_is_bounded_and_holds_nothing_of_the_sites_own_cookies() -> None:
    cookies, live = Cookies(b"a secret of the site"), value()
    for number in range(REMEMBERED + 10):
        assert cookies.read(b"session=%d; " % number + live, NOW) is not None
        assert cookies.read(b"session=%d; throttle=forged" % number, NOW) is None
    remembered = vars(cookies)["_found"]
    assert len(remembered) <= REMEMBERED
    assert all(type(key) is int for key in remembered)


@given(
    header=st.binary(max_size=300) | st.lists(st.sampled_from([NAME, b"=", b"; ", b"\xff", value()[:30]])).map(b"".join)
)
@example(header=NAME)
@example(header=NAME + b"=" * LENGTH)
@example(header=NAME + b"\xff" * LENGTH)
def test_no_header_without_a_genuine_cookie_is_believed_or_fails(header: bytes) -> None:
    assert COOKIES.read(header, NOW) is None


@pytest.mark.parametrize("piece", [b"throttle=", b"throttl", b"t", b"\0", b"throttle=" + b"A" * LENGTH + b"; "])
def test_no_long_header_is_slow(piece: bytes) -> None:
    header = (piece * 65_536)[:65_536]
    took = []
    for _ in range(5):
        began = time.process_time()
        assert COOKIES.read(header, NOW) is None
        took.append(time.process_time() - began)
    assert min(took) < 0.005


def test_an_application_that_sends_one_message_to_all_gives_each_its_own_cookie_alone() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message["headers"])

    start = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]}
    for number in (b"1", b"2"):
        asyncio.run(with_cookie(send, (b"set-cookie", number))(start))
    assert sent == [[*start["headers"], (b"set-cookie", number)] for number in (b"1", b"2")]
    assert start["headers"] == [(b"content-length", b"0")]
