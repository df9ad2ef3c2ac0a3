"""The flow in the world: one loop that awaits and one that blocks, each for all adapters. No client is known here.

A driver never decides. It waits as told, sends as told, and gives back what it holds however it is left.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import Protocol

from throttle.client.answer import Answer
from throttle.client.exchange import Done, Flow, GiveUp, Send, Wait, WaitForSlot
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
    """Rung by whoever hands a turn on; what was rung before the wait began is heard, too."""

    __slots__ = ("_future", "_is_rung")

    def __init__(self) -> None:
        self._future: asyncio.Future[None] | None = None
        self._is_rung = False

    def ring(self) -> None:
        self._is_rung = True
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def wait(self, seconds: float | None) -> None:
        """Until rung, at most `seconds`."""
        if not self._is_rung:
            loop = asyncio.get_running_loop()
            self._future = loop.create_future()
            timer = None if seconds is None else loop.call_later(seconds, self.ring)
            try:
                await self._future
            finally:
                self._future = None
                if timer is not None:
                    timer.cancel()
        self._is_rung = False


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


async def drive_async(flow: Flow, bell: AsyncBell, attempt: AsyncAttempt, clock: Callable[[], float]) -> Place:
    """The place of the answer that `attempt` keeps in the end; the caller releases it when the body is closed."""
    is_sent = False
    try:
        step = next(flow)
        while True:
            match step:
                case Send():
                    is_sent = True
                    step = flow.send(await attempt.send())
                    continue
                case Done(place):
                    return place
            if is_sent:
                is_sent = False
                await attempt.discard()
            match step:
                case GiveUp(error):
                    raise error
                case Wait(seconds):
                    await bell.wait(seconds)
                case WaitForSlot():
                    await bell.wait(None)
            step = flow.send(clock())
    finally:
        flow.close()


def drive(flow: Flow, host: Host, bell: Bell, attempt: Attempt, clock: Callable[[], float]) -> Place:
    """As `drive_async`, blocking; the host is locked while the flow runs, and never while anything waits."""
    is_sent = False
    try:
        with host.lock:
            step = next(flow)
        while True:
            heard: Answer | float
            match step:
                case Done(place):
                    return place
                case Send():
                    is_sent = True
                    heard = attempt.send()
                case _:
                    if is_sent:
                        is_sent = False
                        attempt.discard()
                    match step:
                        case GiveUp(error):
                            raise error
                        case Wait(seconds):
                            bell.wait(seconds)
                        case WaitForSlot():
                            bell.wait(None)
                    heard = clock()
            with host.lock:
                step = flow.send(heard)
    finally:
        with host.lock:
            flow.close()
