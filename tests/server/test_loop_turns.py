"""Where handlers compute in the event loop, machines begin one at a time, and people go first.

Changes made by hand, each of which made a test fall: three quiet turns do · they are not counted anew · machines have a
third of the time · people wait, too · who hangs up keeps its place · a slow turn is forgotten at once · nobody begins
any more when all have · the last comes first.
"""

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from throttle import Limits, ThrottleMiddleware
from throttle.server.loop_turns import LOOKS_APART, SLOW, LoopTurns

CHROME = b"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"
BOT = b"curl/8.5.0"


class Loop:
    """Callbacks, turn by turn; each turn takes as long as a test says."""

    def __init__(self) -> None:
        self.now = 100.0
        self.ready: deque[Callable[[], object]] = deque()
        self.asks = 0
        self.turns = LoopTurns(self.ready.append, lambda: self.now, lambda: self.asks)

    def turn(self, seconds: float = 0.0) -> None:
        ready, count = self.ready, len(self.ready)
        self.now += seconds
        for _ in range(count):
            ready.popleft()()

    def look(self, seconds: float) -> bool:
        self.turns.look()
        self.turn(seconds)
        return self.turns.is_slow


def test_a_turn_of_a_millisecond_is_slow_and_is_remembered_until_turns_are_quick() -> None:
    loop = Loop()
    assert not loop.look(SLOW * 0.99)
    assert loop.look(SLOW * 1.01)
    looks = 1
    while loop.look(0.0):
        looks += 1
    assert looks == 12, "each remembers nine tenths, and quick is below three tenths of slow"
    assert not loop.look(SLOW * 0.9)


def test_a_look_is_due_twenty_times_a_second_at_most() -> None:
    loop = Loop()
    loop.turns.look()
    assert loop.turns.look_at == loop.now + LOOKS_APART


def test_machines_begin_one_at_a_time_after_four_turns_in_which_nobody_came() -> None:
    loop = Loop()
    begun: list[int] = []
    for _ in range(3):
        loop.turns.wait(lambda: begun.append(turn))
    for turn in range(30):
        loop.turn(0.020 if turn - 1 in begun else 0.0001)
        loop.asks += turn in (2, 3)
    assert begun == [0, 8, 13]
    assert not loop.ready, "nothing goes round when nobody waits"
    loop.turns.wait(lambda: begun.append(turn))
    loop.turn()
    assert len(begun) == 4, "and the next one begins at once"


def test_machines_have_half_of_the_time_however_many_come() -> None:
    loop = Loop()
    begun: list[float] = []
    for _ in range(3):
        loop.turns.wait(lambda: begun.append(loop.now))
    for _ in range(300):
        loop.turn(0.020 if begun and begun[-1] == loop.now else 0.001)
        loop.asks += 1
    assert [round(later - earlier, 3) for earlier, later in itertools.pairwise(begun)] == [0.04, 0.04]


# Through the middleware, in a loop of its own


async def receive() -> Any:
    await asyncio.sleep(60)


class Site:
    """Handlers that compute for five milliseconds in the loop."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.throttle = ThrottleMiddleware(self.app, limits=Limits(load_max="auto", stack_hits=None))

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        end = time.perf_counter() + 0.005
        while time.perf_counter() < end:
            pass
        self.order.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def ask(self, path: str, agent: bytes, address: str = "192.0.2.1") -> "asyncio.Task[None]":
        async def send(message: Any) -> None: ...

        scope = {"type": "http", "method": "GET", "path": path, "root_path": "", "headers": [(b"user-agent", agent)]}
        return asyncio.ensure_future(self.throttle({**scope, "client": (address, 1)}, receive, send))


def test_a_person_who_comes_with_machines_is_served_before_all_but_those_that_have_begun() -> None:
    async def scenario() -> None:
        site = Site()
        site.throttle.load_limit.load_max = 14  # type: ignore[union-attr]
        site.throttle._auto.gate._follow()  # type: ignore[union-attr]
        await site.ask("/first", BOT)
        await asyncio.sleep(0)
        assert site.throttle._auto.turns.is_slow  # type: ignore[union-attr]
        asks = [site.ask(f"/bot/{number}", BOT) for number in range(5)]
        asks.append(site.ask("/person", CHROME))
        await asyncio.gather(*asks)
        assert site.order == ["/first", "/person", *(f"/bot/{number}" for number in range(5))]
        assert site.throttle.store.load == 0

    asyncio.run(scenario())


def test_who_hangs_up_before_its_turn_leaves_no_place_held_and_does_not_run() -> None:
    async def scenario() -> None:
        site = Site()
        site.throttle._auto.turns.is_slow = True  # type: ignore[union-attr]
        site.throttle._auto.turns.look_at = float("inf")  # type: ignore[union-attr]
        asks = [site.ask(f"/{number}", BOT) for number in range(2)]
        await asyncio.sleep(0)
        asks[1].cancel()
        await asyncio.wait(asks)
        assert site.order == ["/0"]
        assert (site.throttle.store.load, site.throttle.load_limit.running) == (0, 0)  # type: ignore[union-attr]

    asyncio.run(scenario())
