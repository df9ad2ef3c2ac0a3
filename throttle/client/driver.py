"""The flow in the world: one loop that awaits and one that blocks, each for all adapters. No client is known here.

A driver never decides. It waits as told, sends as told, and gives back what it holds however it is left.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Protocol

from throttle.client.answer import Answer, Ending
from throttle.client.exchange import Done, GiveUp, Send, Wait, exchange, heard
from throttle.client.host import Host, Place


class AsyncAttempt(Protocol):
    """One request of some client: it can be sent, and keeps what came back."""

    async def send(self) -> Answer:
        """Sends it, and keeps the answer or the error. An error that says nothing of the host is raised."""

    async def discard(self) -> None:
        """Closes what is kept: it will be sent again, or never."""


class Attempt(Protocol):
    """As `AsyncAttempt`, for threads."""

    def send(self) -> Answer: ...
    def discard(self) -> None: ...


class AsyncBell:
    """Rung by whoever hands a turn on, from any thread; what was rung before the wait began is heard, too."""

    __slots__ = ("_finish", "_is_rung")

    def __init__(self) -> None:
        self._finish: Callable[[], object] | None = None  # while somebody waits
        self._is_rung = False

    def ring(self) -> None:
        self._is_rung = True
        if (finish := self._finish) is not None:
            finish()

    async def wait(self, seconds: float | None) -> None:
        """Until rung, at most `seconds`."""
        try:
            await (self._wait_in_asyncio if _is_asyncio() else self._wait_in_trio)(seconds)
        finally:
            self._finish = None
            self._is_rung = False

    async def _wait_in_asyncio(self, seconds: float | None) -> None:
        loop, thread = asyncio.get_running_loop(), threading.get_ident()
        future = loop.create_future()

        def finish() -> None:
            if not future.done():
                future.set_result(None)

        def ring() -> None:
            if threading.get_ident() == thread:
                finish()
            else:
                with contextlib.suppress(RuntimeError):  # the loop is closed, so nobody waits
                    loop.call_soon_threadsafe(finish)

        timer = None if seconds is None else loop.call_later(seconds, finish)
        self._finish = ring
        try:
            if not self._is_rung:  # whoever rings from now on finishes the wait
                await future
        finally:
            if timer is not None:
                timer.cancel()

    async def _wait_in_trio(self, seconds: float | None) -> None:
        import trio

        token, thread = trio.lowlevel.current_trio_token(), threading.get_ident()
        rung = trio.Event()

        def ring() -> None:
            if threading.get_ident() == thread:
                rung.set()
            else:
                with contextlib.suppress(trio.RunFinishedError):
                    token.run_sync_soon(rung.set)

        self._finish = ring
        if not self._is_rung:
            with trio.move_on_after(float("inf") if seconds is None else seconds):
                await rung.wait()


def _is_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class Bell:
    """As `AsyncBell`, for threads: rung from any of them."""

    __slots__ = ("_event", "_is_rung")

    def __init__(self) -> None:
        self._event: threading.Event | None = None  # made when needed, since mostly nobody waits
        self._is_rung = False

    def ring(self) -> None:
        self._is_rung = True
        if (event := self._event) is not None:
            event.set()

    def wait(self, seconds: float | None) -> None:
        self._event = threading.Event()
        if not self._is_rung:  # a ring from now on sets the event
            self._event.wait(seconds)
        self._event = None
        self._is_rung = False


async def drive_async(
    host: Host,
    attempt: AsyncAttempt,
    now: float,
    clock: Callable[[], float],
    *,
    method: str,
    is_replayable: bool,
    place: Place | None = None,
) -> Place:
    """The place of the answer that `attempt` keeps in the end; `host.release()` it when the body is closed.

    `place` is one that it has already: then nothing waits here.
    The host is locked while it is asked and told, never while anything waits: its table may be shared with threads.
    """
    if place is None:
        with host.lock:
            place = host.place_at_once(now)
    tried: Ending | None = None
    if place is not None:  # as mostly
        try:
            answer = await attempt.send()
            with host.lock:
                tried = heard(host, place, answer, 0, method, is_replayable)
        except BaseException:
            with host.lock:
                host.release(place)
            raise
        if tried is None:
            return place
        with host.lock:
            host.release(place)
        await attempt.discard()
        now = answer.at
    return await _drive_async(host, attempt, now, clock, method, is_replayable, tried)


async def _drive_async(
    host: Host,
    attempt: AsyncAttempt,
    now: float,
    clock: Callable[[], float],
    method: str,
    is_replayable: bool,
    tried: Ending | None,
) -> Place:
    bell = AsyncBell()
    flow = exchange(host, bell.ring, now, method=method, is_replayable=is_replayable, tried=tried)
    is_sent = False
    told: Answer | float
    try:
        with host.lock:
            step = next(flow)
        while True:
            match step:
                case Send():
                    is_sent = True
                    told = await attempt.send()
                case Done():
                    return step.place
                case _:
                    if is_sent:
                        is_sent = False
                        await attempt.discard()
                    if isinstance(step, GiveUp):
                        raise step.error
                    await bell.wait(step.seconds if isinstance(step, Wait) else None)
                    told = clock()
            with host.lock:
                step = flow.send(told)
    finally:
        with host.lock:
            flow.close()


def drive(
    host: Host,
    attempt: Attempt,
    now: float,
    clock: Callable[[], float],
    *,
    method: str,
    is_replayable: bool,
    place: Place | None = None,
) -> Place:
    """As `drive_async`, blocking."""
    if place is None:
        with host.lock:
            place = host.place_at_once(now)
    tried: Ending | None = None
    if place is not None:
        try:
            answer = attempt.send()
            with host.lock:
                tried = heard(host, place, answer, 0, method, is_replayable)
        except BaseException:
            with host.lock:
                host.release(place)
            raise
        if tried is None:
            return place
        with host.lock:
            host.release(place)
        attempt.discard()
        now = answer.at
    return _drive(host, attempt, now, clock, method, is_replayable, tried)


def _drive(
    host: Host,
    attempt: Attempt,
    now: float,
    clock: Callable[[], float],
    method: str,
    is_replayable: bool,
    tried: Ending | None,
) -> Place:
    bell = Bell()
    flow = exchange(host, bell.ring, now, method=method, is_replayable=is_replayable, tried=tried)
    is_sent = False
    told: Answer | float
    try:
        with host.lock:
            step = next(flow)
        while True:
            match step:
                case Send():
                    is_sent = True
                    told = attempt.send()
                case Done():
                    return step.place
                case _:
                    if is_sent:
                        is_sent = False
                        attempt.discard()
                    if isinstance(step, GiveUp):
                        raise step.error
                    bell.wait(step.seconds if isinstance(step, Wait) else None)
                    told = clock()
            with host.lock:
                step = flow.send(told)
    finally:
        with host.lock:
            flow.close()
