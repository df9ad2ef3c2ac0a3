"""What `load_max="auto"` puts around requests: a gate that moves, places that are measured, turns in the event loop.

The number itself is found in `load_limit.py`, and obeyed in `stores/own_load.py`.
"""

import asyncio
import logging
from collections.abc import Callable
from math import log

from starlette.types import ASGIApp, Receive, Scope, Send

from throttle.server.caller import Rules
from throttle.server.held_receive import HeldReceive
from throttle.server.load_limit import LoadLimit, usable_cores
from throttle.server.loop_turns import LoopTurns
from throttle.server.measured_place import MeasuredPlace
from throttle.server.rule import MICROSECONDS
from throttle.server.rulebook import Rulebook
from throttle.server.stores import Store
from throttle.server.stores.own_load import OwnLoad
from throttle.server.worker_threads import WorkerThreads

logger = logging.getLogger("throttle")


class AutoLoadMax:
    """Finds how many requests this process can run at once, and admits as many: `gate` stands in front of `store`."""

    def __init__(self, store: Store, clock: Callable[[], float], random: Callable[[], float]) -> None:
        self._clock = clock
        self.limit = LoadLimit(usable_cores(), random)
        self.gate = OwnLoad(store, self.limit, self.tell, WorkerThreads().has_one_for_a_machine)
        self._told = 0
        self.open()

    def open(self) -> None:
        """The event loop runs, which may be another one than before."""
        self.turns = LoopTurns(_soon, self._clock, lambda: self.gate.asked)

    def place(
        self,
        book: Rulebook,
        rules: Rules,
        scope: Scope,
        send: Send,
        now: int,
        held: HeldReceive | None,
        had_turn: bool = False,
    ) -> MeasuredPlace | None:
        """The place of a request that was admitted; None for one that must wait its turn first: see `in_turn`.

        `now`: when it came; `held`: of one that slept.
        """
        if not had_turn:
            if (turns := self.turns).look_at <= now / MICROSECONDS:
                turns.look()
            if turns.is_slow and not rules.caller_class.is_browser:
                return None
        if held is None:  # the limit was told of the others when they found no room
            self.gate.arrived(now)
        return MeasuredPlace(
            self.gate,
            send,
            book.keeps_streams,
            book.releases_at_start,
            self.limit,
            scope,
            rules.caller_class,
            self._clock,
        )

    async def in_turn(
        self, book: Rulebook, rules: Rules, scope: Scope, send: Send, now: int, held: HeldReceive | None
    ) -> MeasuredPlace:
        """Its place, when others have gone first. It has room all the while."""
        its_turn = asyncio.Event()
        self.turns.wait(its_turn.set)
        try:
            await its_turn.wait()
        except BaseException:
            self.gate.release()
            if held is not None:
                held.close()
            raise
        place = self.place(book, rules, scope, send, now, held, had_turn=True)
        assert place is not None
        return place

    async def serve_unplaced(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve who holds no place: it slows down the others all the same."""
        self.limit.began(int(self._clock() * MICROSECONDS + 0.5))
        try:
            await app(scope, receive, send)
        finally:
            self.limit.left(int(self._clock() * MICROSECONDS + 0.5))

    def tell(self) -> None:
        """Log the number found, when it is another by a half or more."""
        if abs(log(self.limit.load_max / (self._told or 1e-9))) >= log(1.5):
            self._told = self.limit.load_max
            logger.info("%s", self.limit)


def _soon(callback: Callable[[], object]) -> None:
    asyncio.get_running_loop().call_soon(callback)
