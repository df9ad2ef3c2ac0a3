"""Crawlers that wait for an answer before they ask again.

The greedy one asks for the next as soon as it has the last, whatever it was told. The polite one is a crawler on the
client half of this package: its machines and their driver (`throttle.client.driver`) decide when each request leaves.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from random import Random

from throttle.client.answer import Answer as Heard
from throttle.client.answer import Failure
from throttle.client.driver import drive_async
from throttle.client.exchange import Refused
from throttle.client.host import Host
from throttle.load.answer import Answer
from throttle.rate_limit_fields import quota_told

Get = Callable[[str], Awaitable[Answer]]
Crawl = Callable[[Get], Awaitable[None]]
Clock = Callable[[], float]


def greedy_crawl(random: Random, paths: Sequence[str]) -> Crawl:
    """One connection of a crawler that never waits for long, and never ends by itself."""

    async def crawl(get: Get) -> None:
        while True:
            await get(random.choice(paths))
            await asyncio.sleep(random.uniform(0.1, 0.5))

    return crawl


def polite_crawl(host: Host, paths: Iterable[str], clock: Clock, *, connections: int = 1) -> Crawl:
    """Reads robots.txt and fetches the paths it allows, at its Crawl-delay if it tells one, else at the host's pace.

    Ends when the paths are fetched, or the host wants no more of it.
    """

    async def crawl(get: Get) -> None:
        try:
            robots = await polite_get(host, "/robots.txt", get, clock)
            # What cannot be read forbids everything; what is not there, nothing (RFC 9309, 2.3.1).
            if not robots.is_served:
                return
            delay, disallowed = read_robots(robots.body if robots.status == 200 else b"")
            allowed = (path for path in paths if not path.startswith(disallowed))
            async with asyncio.TaskGroup() as tasks:
                for _ in range(1 if delay else connections):
                    tasks.create_task(_fetch_all(host, allowed, get, clock, delay))
        except* Refused:
            pass

    return crawl


def polite_client(host: Host, random: Random, paths: Sequence[str], clock: Clock, *, connections: int = 1) -> Crawl:
    """A client of the Web API on the same machines: no robots.txt, which is for crawlers, and no end."""

    async def crawl(get: Get) -> None:
        endless = iter(lambda: random.choice(paths), None)
        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(connections):
                    tasks.create_task(_fetch_all(host, endless, get, clock))
        except* Refused:
            pass

    return crawl


async def _fetch_all(host: Host, paths: Iterator[str], get: Get, clock: Clock, delay: float = 0.0) -> None:
    for path in paths:
        await polite_get(host, path, get, clock)
        await asyncio.sleep(delay)


async def polite_get(host: Host, path: str, get: Get, clock: Clock) -> Answer:
    """One exchange: waits for its turn, retries as far as the budget goes; the last answer.

    Raises `Refused` when the host rests for too long, or is a wall.
    """
    attempt = _Attempt(path, get, clock)
    place = await drive_async(host, attempt, clock(), clock, method="GET", is_replayable=True)
    host.release(place)
    return attempt.answer


class _Attempt:
    """A GET of the crowd's, as the client half's driver takes it."""

    def __init__(self, path: str, get: Get, clock: Clock) -> None:
        self.answer = Answer()
        self._path = path
        self._get = get
        self._clock = clock

    async def send(self) -> Heard:
        self.answer = await self._get(self._path)
        return _heard(self.answer, self._clock())

    async def discard(self) -> None:
        """Nothing is held: the body is read."""


def _heard(answer: Answer, now: float) -> Heard:
    """What the client's machines make of an answer."""
    fields = {name.decode("latin-1"): value.decode("latin-1") for name, value in answer.fields.items()}
    return Heard(
        now,
        answer.status or (Failure.TIMEOUT if (answer.failed or "").startswith("no answer") else Failure.CONNECT),
        answer.retry_after,
        quota_told(fields),
        fields,
        answer.body[:4096],
    )


def read_robots(body: bytes) -> tuple[float, tuple[str, ...]]:
    """The Crawl-delay in seconds (0: none) and the disallowed prefixes for «User-agent: *»; no other group counts."""
    delay, disallowed = 0.0, []
    is_ours = was_agent = False
    for line in body[:500_000].decode("utf-8", "replace").splitlines():
        name, _, value = (part.strip() for part in line.partition("#")[0].partition(":"))
        name = name.lower()
        if name == "user-agent":
            is_ours = value == "*" or (was_agent and is_ours)  # several agents may head one group
        elif is_ours and name == "disallow" and value:
            disallowed.append(value)
        elif is_ours and name == "crawl-delay" and re.fullmatch(r"\d{1,5}(\.\d{1,6})?", value):
            delay = float(value)
        was_agent = name == "user-agent" or (was_agent and not name)
    return delay, tuple(disallowed)
