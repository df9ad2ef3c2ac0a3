"""Who comes: a flood in which nobody comes twice, and a few who come steadily. Seeded."""

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from decision.traffic import BROWSERS

Scope = dict[str, Any]
Headers = list[tuple[bytes, bytes]]

GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
CLAIMS_GOOGLE = 10

LETTERS = "abcdefghijklmnopqrstuvwxyz"
_CHROME = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%s Safari/537.36"


def scope_of(address: str, headers: Headers) -> Scope:
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "server": ("127.0.0.1", 8000),
        "client": (address, 40_000),
        "scheme": "https",
        "method": "GET",
        "root_path": "",
        "path": "/paper",
        "raw_path": b"/paper",
        "query_string": b"",
        "headers": headers,
        "state": {},
    }


def invented(seed: int, *, as_browsers: bool = False) -> Iterator[Scope]:
    """Callers for ever, each with an address that nobody had before; one in five comes over IPv6.

    Nor had anybody its agent, but that one in ten borrows Googlebot's name.
    """
    random = Random(seed)
    number = 0
    while True:
        number += 1
        if number % 5:
            # Every address of the internet once, in an order that looks like none.
            whole = number * 2_654_435_761 % (1 << 32)
            address = f"{whole >> 24}.{whole >> 16 & 255}.{whole >> 8 & 255}.{whole & 255}"
        else:
            # One allocation of 32 bits, as a hosting company has it: addresses at will.
            address = str(ipaddress.IPv6Address((0x2001_0DB8 << 96) | random.getrandbits(96)))
        version = f"{random.randrange(90, 150)}.0.{random.randrange(9999)}.{number % 1000}"
        if number % CLAIMS_GOOGLE == 0:
            agent = GOOGLEBOT
        else:
            agent = _CHROME % version if as_browsers else "".join(random.choices(LETTERS, k=9)) + "/" + version
        headers = [
            (b"host", b"papers.example"),
            (b"user-agent", agent.encode()),
            (b"accept", b"*/*"),
            (b"accept-encoding", b"gzip, deflate"),
        ]
        yield scope_of(address, headers)


@dataclass(frozen=True)
class Steady:
    """One who comes again and again, `every` so many seconds."""

    name: str
    address: str
    every: float
    headers: tuple[tuple[bytes, bytes], ...]
    begins: float = 0.0


def _browser(number: int) -> tuple[tuple[bytes, bytes], ...]:
    lines = (line.partition(b": ") for line in BROWSERS[number % len(BROWSERS)].split(b"\n"))
    return tuple((name, value) for name, _, value in lines)


def _robot(agent: bytes) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"host", b"papers.example"), (b"user-agent", agent), (b"accept", b"*/*"), (b"accept-encoding", b"gzip"))


_READER = _robot(b"FreshRSS/1.27.1 (Linux; https://freshrss.org)")
_CRAWLER = _robot(GOOGLEBOT.encode())


def steady(flood_begins: float) -> list[Steady]:
    """People, feed readers, and a crawler: those who were here before the flood, and those who come in its midst."""
    late = flood_begins + 5
    return [
        *(Steady("people", f"198.51.100.{number}", 5.0, _browser(number), 0.7 * number) for number in range(6)),
        *(Steady("people who come later", f"198.51.7.{n}", 5.0, _browser(n), late + 0.7 * n) for n in range(6)),
        Steady("feed reader", "203.0.113.9", 15.0, _READER, 1.0),
        Steady("verified crawler", "66.249.66.1", 31.0, _CRAWLER, 2.0),
        Steady("feed reader that comes later", "203.0.114.9", 15.0, _READER, late + 1.5),
    ]
