"""A dry run: nobody is refused or delayed, and what would have been is counted.

The store counts only what would have been served, so that the would-be refused do not weigh on the would-be load. A
request that would have slept sleeps in the store alone; if it would have been served, it holds a place for as long as
the real request took, from the moment at which it would have begun.
"""

import asyncio
from collections.abc import Awaitable, Callable

from throttle.server.caller import Rules
from throttle.server.deferral import sleep
from throttle.server.rule import Deferred, Hashes, Refused
from throttle.server.stores import Store

Note = Callable[[Refused], object]


class DryRun:
    """The requests of one site that would be asleep now, or running after a sleep."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()

    async def served_meanwhile(
        self, store: Store, deferred: Deferred, rules: Rules, hashes: Hashes, serving: Awaitable[None], note: Note
    ) -> None:
        """Serve the request now, while its shadow sleeps. The shadow outlives it by as long as it would have slept.

        `note` is told if it would have been refused after its sleep.
        """
        began = self._clock()
        lasted: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(self._shadow(store, deferred, rules, hashes, lasted, note))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            await serving
        finally:
            if not lasted.done():  # the shadow was cancelled: the site is shutting down
                lasted.set_result(self._clock() - began)

    async def _shadow(
        self,
        store: Store,
        deferred: Deferred,
        rules: Rules,
        hashes: Hashes,
        lasted: asyncio.Future[float],
        note: Note,
    ) -> None:
        rules.tally.slept += 1
        verdict = await sleep(store, deferred, rules, hashes, self._clock)
        if isinstance(verdict, Refused):
            note(verdict)
            return
        rules.tally.served += 1
        began = self._clock()
        try:
            ends = began + await lasted
            await asyncio.sleep(max(0, ends - self._clock()))
        finally:
            store.release()

    def close(self) -> None:
        """The site is shutting down: what would have been is of no interest any more."""
        for task in self._tasks:
            task.cancel()
