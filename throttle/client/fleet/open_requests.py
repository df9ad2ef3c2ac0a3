"""How many requests of the whole fleet were open when one of them left, as far as the workers have told.

A worker tells at once what it sent, and what came of it with its next call, which may be seconds later; until then a
request is presumed to take as long as others did. One that was cancelled is never told of, and ends so, too.
"""

from collections import deque
from dataclasses import dataclass

RECENT = 256
"""requests that are remembered: more than may be open at once"""
MEAN_OF = 20
"""answers that the presumed time is a mean of, about"""


@dataclass(slots=True, eq=False)
class _Request:
    sent_at: float
    ends_at: float
    limit: int
    is_told: bool = False


class OpenRequests:
    def __init__(self) -> None:
        self.mean = 0.1
        """seconds that a request takes"""
        self._answers = 0
        self._recent: deque[_Request] = deque(maxlen=RECENT)

    def sent(self, now: float, limit: int) -> int:
        """Its height: how many are open, itself included; no more than the `limit`, which turns keep to but for one or
        two: so the limit that is found leaves room for these.
        """
        request = _Request(now, now + self.mean, limit)
        self._recent.append(request)
        return self._height(request)

    def served(self, now: float, seconds: float) -> int:
        """Its height when it left, by all that is known now."""
        self._answers = min(self._answers + 1, MEAN_OF)
        self.mean += ((min(seconds, 4 * self.mean) if self._answers > 1 else seconds) - self.mean) / self._answers
        request = self._told(now, seconds)
        return 1 if request is None else self._height(request)

    def refused(self, now: float, seconds: float) -> tuple[float, int]:
        """When it left, and its height."""
        request = self._told(now, seconds)
        if request is None:
            return now - seconds, 1
        return request.sent_at, self._height(request)

    def _height(self, request: _Request) -> int:
        left = request.sent_at
        count = sum(1 for other in self._recent if other.sent_at <= left < other.ends_at)
        return max(1, min(count, request.limit))

    def _told(self, now: float, seconds: float) -> _Request | None:
        """When it left was told twice, and differs by the network's jitter: it is the one that fits best."""
        left = now - seconds
        found: _Request | None = None
        for request in self._recent:
            if not request.is_told and (found is None or abs(request.sent_at - left) < abs(found.sent_at - left)):
                found = request
        if found is not None:
            found.is_told, found.ends_at = True, now
        return found
