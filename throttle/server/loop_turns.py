"""Where handlers compute in the event loop: machines begin one at a time, and whoever else is there goes first.

Such handlers run one after another. None is ever in flight beside another, so no limit on the load sees them, and
people wait in the loop before anything of ours has seen them. What tells is how long one turn of the loop takes. While
turns are slow, who is a machine waits, with the place that it has, until all have run who came while the last machine
computed: then a person waits for one machine's computing, however many have been let in. (Where more come than can
even be refused in the time, machines have half of it.)

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

QUIET_TURNS = 4
"""in which nobody asks, until it is believed that nobody has come: a connection is accepted in one turn, read in
another, and asks in a third; and uvloop accepts but one a turn, so without that people wait before the loop"""

Callback = Callable[[], object]


class LoopTurns:
    """`soon`: calls back in the loop's next turn; `clock`: monotonic seconds; `asks`: how many have asked in all."""

    def __init__(self, soon: Callable[[Callback], object], clock: Callable[[], float], asks: Callable[[], int]) -> None:
        self.is_slow = False
        self.look_at = 0.0
        """by the clock, when the next look is due"""
        self._soon = soon
        self._clock = clock
        self._asks = asks
        self._slowest = self._looked_at = self._began = self._until = 0.0
        self._quiet = self._seen = 0
        self._waiting: deque[Callback] = deque()
        self._is_turning = False

    def look(self) -> None:
        """Measure this turn: how long it takes until the loop comes round."""
        self._looked_at = now = self._clock()
        self.look_at = now + LOOKS_APART
        self._soon(self._came_round)

    def _came_round(self) -> None:
        self._took(self._clock() - self._looked_at)

    def _took(self, seconds: float) -> None:
        self._slowest = max(seconds, KEPT * self._slowest)
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
        self._began = self._clock()
        self._soon(self._has_computed)

    def _has_computed(self) -> None:
        """It has run until it first waited; now whoever came meanwhile, for as long as it computed at most."""
        now = self._clock()
        seconds = now - self._began
        self._took(seconds)
        self._until = now + seconds
        self._quiet, self._seen = 0, self._asks()
        self._soon(self._come_round_again)

    def _come_round_again(self) -> None:
        asks = self._asks()
        self._quiet = self._quiet + 1 if asks == self._seen else 0
        self._seen = asks
        if self._quiet >= QUIET_TURNS or self._clock() >= self._until:
            self._next()
        else:
            self._soon(self._come_round_again)
