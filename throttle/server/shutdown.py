"""Hears that the server was told to stop, as soon as it is told.

Servers wait for open requests before they tell an application anything (the lifespan's shutdown comes last), so
sleepers would hold a shutdown up for half a minute. The signal comes first.
"""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)

_heard: list[tuple[asyncio.AbstractEventLoop, Callable[[], object]]] = []


def on_stop_signal(act: Callable[[], object]) -> None:
    """Have the running loop call `act` when the process is told to stop; the handlers in place stay in force.

    Does nothing outside the main thread, where Python takes no signals, and for a signal that nobody handles.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    _heard[:] = [(loop, other) for loop, other in _heard if not loop.is_closed()]
    _heard.append((asyncio.get_running_loop(), act))
    for number in SIGNALS:
        before = signal.getsignal(number)
        if callable(before) and not isinstance(before, _TellFirst):
            signal.signal(number, _TellFirst(before))


class _TellFirst:
    """A signal handler that tells who wants to hear, then does what was done before."""

    def __init__(self, before: Callable[[int, FrameType | None], Any]) -> None:
        self._before = before

    def __call__(self, number: int, frame: FrameType | None) -> Any:
        for loop, act in _heard:
            with contextlib.suppress(RuntimeError):  # closed by now
                loop.call_soon_threadsafe(act)
        return self._before(number, frame)
