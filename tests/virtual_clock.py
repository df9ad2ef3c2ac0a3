"""An event loop whose clock jumps to the next timer, so that minutes take milliseconds.

It must not meet a real socket or a working thread: it would leap ahead of them.
"""

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


class _NeverWaits(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.skipped = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("the virtual clock has stopped: every task waits, and no timer is set")
            self.skipped += max(0.0, timeout)
        return ready


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """Time starts at 1,000 s and passes only in waits."""

    def __init__(self) -> None:
        self._virtual = _NeverWaits()
        super().__init__(self._virtual)
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return 1000.0 + self._virtual.skipped


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """What the coroutine returns, run on a virtual clock."""
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(coroutine)


def now() -> float:
    """The running loop's virtual seconds; the clock to hand to whatever takes one."""
    return asyncio.get_running_loop().time()


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """An async test as one that runs on a virtual clock."""

    @functools.wraps(test)
    def run_test(*arguments: P.args, **named: P.kwargs) -> None:
        run(test(*arguments, **named))

    return run_test
