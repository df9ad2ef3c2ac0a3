"""A deferred request's wait for room, and what it is answered when the wait is over."""

import asyncio
from collections.abc import Callable
from typing import Any

from throttle.server.caller import Rules
from throttle.server.held_receive import HeldReceive
from throttle.server.refusal import Refusal
from throttle.server.rule import MICROSECONDS, Deferred, Hashes, Refused, Served
from throttle.server.stores import Store


async def sleep(
    store: Store,
    deferred: Deferred,
    rules: Rules,
    hashes: Hashes,
    clock: Callable[[], float],
    held: HeldReceive | None = None,
    pause: Callable[[int], Refusal | None] = lambda now: None,
) -> Served | Refused | Refusal | None:
    """Wait for room, at most for the delay, and ask all the rules again, the `pause` first: the last verdict.

    None when the caller hung up, which is noticed where `held` is given. The sleeper has left in any case.
    """
    sleeper = deferred.sleeper
    deadline = clock() + rules.limits.defer_delay.seconds(deferred.load)
    hang_up = None if held is None else asyncio.ensure_future(held.hang_up())
    try:
        while True:
            left = max(0, deadline - clock())
            ends: list[asyncio.Future[Any]] = [sleeper.woken] if hang_up is None else [sleeper.woken, hang_up]
            await asyncio.wait(ends, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if hang_up is not None and hang_up.done():
                hang_up.result()  # the server may have failed to say
                return None
            now = int(clock() * MICROSECONDS + 0.5)
            if (refusal := pause(now)) is not None:
                return refusal
            answer = store.admit(rules.prepared, hashes, now, rules.rank, sleeper)
            verdict = answer if isinstance(answer, Served | Refused) else await answer
            if not isinstance(verdict, Deferred) or clock() >= deadline:
                return verdict
    finally:
        if hang_up is not None:
            hang_up.cancel()
        store.leave(sleeper)
