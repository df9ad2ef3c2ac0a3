"""Who comes, and what they ask for when: plans drawn from a seed before anything is sent. No I/O.

What keeps to a plan whatever is answered is here. What waits for an answer before it asks again is in `flows.py`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple

PEOPLE, FILES, FEED_READER = "people", "their files", "feed reader"
POLITE_CRAWLER, RUDE_CRAWLER = "polite crawler", "rude crawler"

BROWSERS = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0 Safari/537.36",
    "Mozilla/5.0 (X11; Linux x86_64; rv:146.0) Gecko/20100101 Firefox/146.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 "
    "Safari/605.1.15",
)
FEED_AGENT = "FreshFeeds/2.1 (feed reader)"
POLITE_AGENT = "CCBot/2.0 (https://commoncrawl.org/faq/)"  # a name that the throttle knows
RUDE_AGENT = "page-grabber/0.3"

ACCEPT_OF_PEOPLE = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
ACCEPT_OF_ROBOTS = "application/problem+json, */*;q=0.9"  # so that a refusal names its rule

_HREF = re.compile(rb'<link\b[^>]*\bhref="(/static/[^"?#]+)"')


@dataclass(frozen=True, slots=True)
class Caller:
    """One member of the crowd: its class in the report, where it asks from, and what it says it is."""

    kind: str
    address: str
    agent: str
    accept: str = ACCEPT_OF_ROBOTS


class Ask(NamedTuple):
    """One planned request; `at` is seconds from the start of the traffic."""

    at: float
    caller: Caller
    path: str
    loads_files: bool = False
    """the first page of a visit: what it links to below /static/ is asked for as soon as it has come"""


@dataclass(frozen=True, slots=True)
class Places:
    """Paths of one site: what people read, the feeds, and what costs the site most."""

    pages: tuple[str, ...]
    feeds: tuple[str, ...]
    expensive: tuple[str, ...]


def people(random: Random, places: Places, seconds: float, *, count: int, think_seconds: float) -> Iterator[Ask]:
    """`count` people who each read a page, think, and read the next; at least 2 s for each, on average `think_seconds`.

    Nobody reads faster than that, so nobody meets a limit of 10 pages in 15 s.
    """
    for number in range(count):
        caller = Caller(PEOPLE, f"127.0.1.{1 + number}", BROWSERS[number % len(BROWSERS)], ACCEPT_OF_PEOPLE)
        at, is_first = random.uniform(0, think_seconds), True
        while at < seconds:
            yield Ask(at, caller, "/" if is_first else random.choice(places.pages), loads_files=is_first)
            at, is_first = at + 2 + random.expovariate(1 / (think_seconds - 2)), False


def files_of(ask: Ask, page: bytes, at: float) -> Iterator[Ask]:
    """The static files that a page asks for, as a browser with an empty cache loads them."""
    caller = replace(ask.caller, kind=FILES)
    for path in dict.fromkeys(_HREF.findall(page)):
        yield Ask(at, caller, path.decode("latin-1"))


def feed_reader(places: Places, seconds: float, *, every: float) -> Iterator[Ask]:
    """One feed reader, which asks for one feed after the other."""
    caller = Caller(FEED_READER, "127.0.2.1", FEED_AGENT)
    for turn in range(int(seconds / every)):
        yield Ask(turn * every, caller, places.feeds[turn % len(places.feeds)])


def rude_crawler(random: Random, places: Places, seconds: float, *, rate: float, addresses: int) -> Iterator[Ask]:
    """`rate` requests a second from `addresses`, two of them without a name; reads no robots.txt, waits for nothing."""
    for turn in range(int(seconds * rate)):
        seat = random.randrange(addresses)
        caller = Caller(RUDE_CRAWLER, f"127.0.4.{1 + seat}", "" if seat < 2 else RUDE_AGENT)
        yield Ask(turn / rate, caller, random.choice(places.pages))
