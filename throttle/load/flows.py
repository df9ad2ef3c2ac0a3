"""Crawlers as flows: each yields what to do and is sent what came of it. No I/O, no clock.

The polite one reads robots.txt, keeps its Crawl-delay, leaves out what is disallowed, and honours every Retry-After.
The greedy one asks for the next as soon as it has the last, whatever it was told.
"""

import re
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from random import Random

from throttle.load.answer import Answer

DELAY_SECONDS = 1.0
"""between two requests where robots.txt asks for nothing"""
PATIENCE_SECONDS = 5.0
"""after a refusal that tells no Retry-After, and after a failure"""
TRIES = 5


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing for so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Get:
    """Ask for a path; the flow is sent the `Answer`."""

    path: str


Flow = Generator[Wait | Get, Answer | None, None]


def polite_crawl(paths: Iterable[str]) -> Flow:
    """Fetch robots.txt, then the paths, one after the other."""
    robots = yield from _fetch("/robots.txt")
    if robots is None:
        return  # what cannot be read forbids everything (RFC 9309, 2.3.1.4)
    delay, disallowed = read_robots(robots)
    for path in paths:
        if not path.startswith(disallowed):
            yield from _fetch(path)
            yield Wait(delay)


def greedy_crawl(random: Random, paths: Sequence[str]) -> Flow:
    """One connection of a crawler that never waits for long, and never ends by itself."""
    while True:
        yield Get(random.choice(paths))
        yield Wait(random.uniform(0.1, 0.5))


def _fetch(path: str) -> Generator[Wait | Get, Answer | None, bytes | None]:
    """The body, or None after so many tries."""
    for _ in range(TRIES):
        answer = yield Get(path)
        assert answer is not None
        if answer.is_served:
            return answer.body
        yield Wait(PATIENCE_SECONDS if answer.retry_after is None else answer.retry_after)
    return None


def read_robots(body: bytes) -> tuple[float, tuple[str, ...]]:
    """The Crawl-delay in seconds and the disallowed prefixes for «User-agent: *»; other groups are passed over."""
    delay, disallowed = DELAY_SECONDS, []
    is_ours = was_agent = False
    for line in body[:500_000].decode("utf-8", "replace").splitlines():
        name, _, value = (part.strip() for part in line.partition("#")[0].partition(":"))
        name = name.lower()
        if name == "user-agent":
            is_ours = value == "*" or (was_agent and is_ours)  # several agents may head one group
        elif is_ours and name == "disallow" and value:
            disallowed.append(value)
        elif is_ours and name == "crawl-delay" and re.fullmatch(r"\d{1,5}(\.\d{1,6})?", value):
            delay = max(DELAY_SECONDS, float(value))
        was_agent = name == "user-agent" or (was_agent and not name)
    return delay, tuple(disallowed)
