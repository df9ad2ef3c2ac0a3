"""Hears that the server was told to stop, as soon as it is told.

Servers wait for open requests before they tell an application anything (the lifespan's shutdown comes last), so
sleepers would hold a shutdown up for half a minute. The signals come first.
"""

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def on_stop_signal(act: Callable[[], object]) -> None:
    """Call `act` when the process is told to stop, before the handlers that are in place, which stay in force.

    Does nothing outside the main thread, where Python takes no signals, and where nobody handles the signal.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    for number in SIGNALS:
        before = signal.getsignal(number)
        if callable(before):
            signal.signal(number, _first(act, before))


def _first(act: Callable[[], object], before: Callable[[int, FrameType | None], Any]) -> Callable[..., Any]:
    def handle(number: int, frame: FrameType | None) -> Any:
        act()
        return before(number, frame)

    return handle
