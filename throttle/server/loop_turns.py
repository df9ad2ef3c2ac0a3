"""Where handlers compute in the event loop: machines begin one at a time, and whoever else is there goes first.

Such handlers run one after another. None is ever in flight beside another, so no limit on the load sees them, and
people wait in the loop before anything of ours has seen them. What tells is how long one turn of the loop takes. While
turns are slow, who is a machine waits, with the place that it has, until those have run that were there when the last
machine had begun: then a person waits for one machine's computing at most, however many have been let in.

No timer: a turn is measured when a request comes, a few times a second at most. Never reads a clock that it was not
given.
"""

from collections import deque
from collections.abc import Callable

LOOKS_APART = 0.05
"""seconds between two looks at how long a turn takes, at least"""
SLOW, QUICK = 0.001, 0.0003
"""seconds: a turn that takes so long makes people wait; from there on, turns are slow until they take only so long"""
KEPT = 0.9
"""of the slowest turn, from look to look"""

Callback = Callable[[], object]


class LoopTurns:
    """`soon`: calls back in the loop's next turn; `clock`: monotonic seconds."""

    def __init__(self, soon: Callable[[Callback], object], clock: Callable[[], float]) -> None:
        self.is_slow = False
        self.look_at = 0.0
        """by the clock, when the next look is due"""
        self._soon = soon
        self._clock = clock
        self._slowest = self._looked_at = 0.0
        self._waiting: deque[Callback] = deque()
        self._is_turning = False

    def look(self) -> None:
        """Measure this turn: how long it takes until the loop comes round."""
        self._looked_at = now = self._clock()
        self.look_at = now + LOOKS_APART
        self._soon(self._came_round)

    def _came_round(self) -> None:
        self._slowest = max(self._clock() - self._looked_at, KEPT * self._slowest)
        self.is_slow = self._slowest > (QUICK if self.is_slow else SLOW)

    def wait(self, begin: Callback) -> None:
        """Call `begin` when it is this one's turn, first come, first served."""
        self._waiting.append(begin)
        if not self._is_turning:
            self._is_turning = True
            self._soon(self._next)

    def _next(self) -> None:
        if not self._waiting:
            self._is_turning = False
            return
        self._waiting.popleft()()
        # It computes in the next turn; in the one after, what has come meanwhile is read; in the third that begins.
        self._soon(lambda: self._soon(lambda: self._soon(self._next)))
