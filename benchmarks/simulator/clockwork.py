"""Virtual time: a heap of what happens next."""

from collections.abc import Callable
from heapq import heappop, heappush


class Clockwork:
    """Events at equal times happen in the order in which they were scheduled."""

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self._scheduled = 0

    def at(self, time: float, action: Callable[..., None], *arguments: object) -> None:
        self._scheduled += 1
        heappush(self._events, (max(time, self.now), self._scheduled, action, arguments))

    def after(self, seconds: float, action: Callable[..., None], *arguments: object) -> None:
        self.at(self.now + seconds, action, *arguments)

    def run(self, until: float) -> None:
        events = self._events
        while events and events[0][0] <= until:
            self.now, _, action, arguments = heappop(events)
            action(*arguments)
        self.now = until
