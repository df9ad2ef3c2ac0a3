"""A replay's verdicts are those of the live middleware for the same requests on a fake clock."""

import asyncio
import gzip
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import Response

from tests import virtual_clock
from tests.asgi import CHROME, FEED_READER, GOOGLEBOT, Request, http_scope
from throttle import Delay, Limits, Refusal, ThrottleMiddleware
from throttle.operate.access_log.files import Coverage, read_any
from throttle.operate.access_log.line import Hit
from throttle.operate.access_log.order import within_window
from throttle.operate.replay.replay import Replay
from throttle.operate.replay.tally import Tally, Who
from throttle.server.agents import CallerClass
from throttle.server.settings import PathLimits, Settings

SAMPLE = Path(__file__).parent.parent / "data" / "access_log_sample.log.gz"
Verdict = tuple[int, bool, str | None]
"""the request's number, whether it slept, which rule refused it"""


def sample() -> list[Hit]:
    with gzip.open(SAMPLE) as lines:
        hits = [hit for hit in map(read_any, lines) if isinstance(hit, tuple)]
    return list(within_window(hits, Coverage()))


def drawn(seed: int, count: int) -> list[Hit]:
    """A crowd that keeps a small site busy: people, feed readers and crawlers, waits at the rules' own edges."""
    dice, now, hits = random.Random(seed), 2_000_000_000, []
    for _ in range(count):
        now += dice.choice([0, 137, 150_001, 500_000, 1_000_000, 1_999_999, 2_000_000])
        agent = dice.choice([CHROME, FEED_READER, GOOGLEBOT, "bingbot/2.0", ""]).encode()
        duration = dice.randrange(1, 4_000_000) * 2 + 1
        hits.append((now, duration, f"192.0.2.{dice.randrange(4)}", "GET", dice.choice(["/", "/search"]), agent, b""))
    return hits


def of_middleware(hits: list[Hit], **settings: Any) -> list[Verdict]:
    verdicts: list[Verdict] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(scope["duration"] / 1e6)
        await Response("page")(scope, receive, send)

    def told(scope: Any, refusal: Refusal) -> None:
        scope["refused_by"].append(refusal.reason)

    async def one(app: Any, number: int, hit: Hit) -> None:
        _, duration, address, method, path, agent, _ = hit
        refused_by: list[str] = []
        request = Request(
            app,
            http_scope(path, agent=agent, client=address, method=method, duration=duration, refused_by=refused_by),
        )
        before = virtual_clock.now()
        answer = await request.finished()
        if refused_by:
            verdicts.append((number, virtual_clock.now() > before, refused_by[0]))
        else:
            verdicts.append((number, "server-timing" in answer.fields, None))

    async def story() -> None:
        throttled = ThrottleMiddleware(app, clock=virtual_clock.now, response=told, exempt_paths=[], **settings)
        begin = virtual_clock.now() - hits[0][0] / 1e6
        async with asyncio.TaskGroup() as tasks:
            for number, hit in enumerate(hits):
                wait = begin + hit[0] / 1e6 - virtual_clock.now()
                if wait > 1e-7:
                    await asyncio.sleep(wait)
                tasks.create_task(one(throttled, number, hit))

    virtual_clock.run(story())
    return sorted(verdicts)


class Numbered(Replay):
    """A replay that keeps each request's verdict: its number stands in for the time of day, which no verdict reads."""

    def verdicts(self, hits: list[Hit]) -> list[Verdict]:
        kept: dict[int, Verdict] = {}
        numbers = iter(range(len(hits)))
        site, ask = self._site, self._site.ask

        class Kept(Tally):
            def note(self, who: Who, has_slept: bool, rule: str | None) -> None:
                kept[who[3]] = (who[3], has_slept, rule)

        tally = Kept(CallerClass.BROWSER)

        def numbered(_: Tally, who: Who, *rest: Any) -> None:
            number = next(numbers)
            kept[number] = (number, False, None)
            ask(tally, (*who[:3], number), *rest)

        site.ask = numbered  # type: ignore[method-assign]
        assert self.run(hits)
        return [kept[number] for number in sorted(kept)]


def of_replay(hits: list[Hit], *, has_load: bool = False, **settings: Any) -> list[Verdict]:
    given = Settings(exempt_paths=[], **settings)
    return Numbered(given, static_extensions=(), compares=False, has_load=has_load).verdicts(hits)


def without_duration(hits: list[Hit]) -> list[Hit]:
    return [(start, 0, *rest) for start, _, *rest in hits if rest[2] != "/robots.txt"]  # type: ignore[misc]


def test_every_verdict_on_the_sample_log_is_the_live_middlewares() -> None:
    hits = without_duration(sample())
    live, replayed = of_middleware(hits), of_replay(hits)
    assert replayed == live
    assert Counter(rule for _, _, rule in live).keys() == {None, "hit_stack", "lone_crawler", "all_crawlers"}


@pytest.mark.parametrize("seed", range(4))
def test_every_verdict_of_a_busy_site_is_the_live_middlewares_sleepers_included(seed: int) -> None:
    limits = Limits(load_max=4, sleeping_max=3, lone_crawler_seconds=3.0, stack_hits=3)
    hits = drawn(seed, 1500)
    live, replayed = of_middleware(hits, limits=limits), of_replay(hits, limits=limits, has_load=True)
    assert replayed == live
    outcomes = Counter((slept, rule) for _, slept, rule in live)
    for outcome in (
        (True, None),
        (True, "load_defer"),
        (False, "load_defer"),
        (True, "all_crawlers"),
        (False, "hit_stack"),
    ):
        assert outcomes[outcome], f"the crowd should bring about {outcome}: {outcomes}"


def test_every_verdict_under_a_whole_configuration_is_the_live_middlewares() -> None:
    limits = Limits(load_max=4, sleeping_max=3, stack_hits=4, defer_delay=Delay(maximum=2))
    settings: dict[str, Any] = {
        "limits": limits,
        "path_limits": (PathLimits("/search", replace(limits, stack_hits=1, defer_delay=Delay(maximum=1))),),
        "exempt_callers": ("192.0.2.1",),
        "banned_callers": ("192.0.2.2",),
        "bots": ("firefox",),
    }
    hits = drawn(9, 1500)
    live, replayed = of_middleware(hits, **settings), of_replay(hits, **settings, has_load=True)
    assert replayed == live
    reasons = {rule for _, _, rule in live}
    assert {"banned", "hit_stack", "hit_stack:/search", "load_defer"} <= reasons
