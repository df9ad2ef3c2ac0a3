"""What was sent since a host's last rest, in pieces of even pace: the evidence a refusal is judged by."""

from collections import deque
from itertools import pairwise

from throttle.client.pace.bucket_fit import Epoch

# A new piece begins where the pace changes by much, or by a little since a share of all was sent; and after a larger
# share in any case. Pieces of a pace that differs by less than SAME are one.
MUCH, LITTLE, SOME_SENT, MORE_SENT, SAME = 0.05, 0.015, 0.06, 0.125, 0.01
# Requests that may be in flight when a refusal is read, and be told from those before it.
RECENT = 256
# Points kept. A host that is asked more slowly than its pace adds two with each request, for months.
POINTS_MAX = 400


class SendLog:
    """Counts requests when they are sent, those in flight included: they will take tokens, too."""

    def __init__(self) -> None:
        self.sent = 0
        self.last = float("-inf")
        self._rest: float | None = None
        self._points: list[tuple[float, int]] = []
        self._rate = 0.0
        self._recent: deque[float] = deque(maxlen=RECENT)

    def begin(self, now: float, rest: float | None) -> None:
        """The first request after a rest is about to be sent."""
        self.sent = 0
        self._rest = rest
        self._points = [(now, 0)]

    def send(self, now: float, rate: float, is_late: bool) -> None:
        if is_late and self.sent:  # nothing was wanted for a while
            self._points.append((self.last, self.sent))
            self._points.append((now, self.sent))
            if len(self._points) > POINTS_MAX:
                del self._points[1 : POINTS_MAX // 2 : 2]  # the older, the coarser; their sums stay true
        self.sent += 1
        self.last = now
        self._recent.append(now)
        since = self.sent - self._points[-1][1]
        change = abs(rate - self._rate)
        is_changed = change > MUCH * self._rate or (change > LITTLE * self._rate and since >= SOME_SENT * self.sent)
        if is_changed or since >= max(8, MORE_SENT * self.sent):
            self._points.append((now, self.sent))
            self._rate = rate

    def epoch(self, sent_at: float, told: float | None) -> Epoch:
        """What led to the refusal of the request that left at `sent_at`."""
        later = sum(1 for time in self._recent if time > sent_at)
        count = max(0, self.sent - 1 - later)
        before = self._recent[-2 - later] if count and len(self._recent) > later + 1 else sent_at
        points = [point for point in self._points if point[0] <= before and point[1] <= count]
        points.append((before, count))
        return Epoch(self._rest, _joined(points), sent_at - before, told)


def _joined(points: list[tuple[float, int]]) -> list[tuple[float, float]]:
    """The pieces between the points, those of one pace as one: a bucket's level changes evenly over them."""
    pieces: list[tuple[float, float]] = []
    for start, end in pairwise(points):
        seconds, requests = end[0] - start[0], float(end[1] - start[1])
        if pieces:
            before, sent = pieces[-1]
            if abs(sent * seconds - requests * before) <= SAME * min(sent * seconds, requests * before):
                pieces[-1] = (before + seconds, sent + requests)
                continue
        pieces.append((seconds, requests))
    return pieces
