"""A pace under a ceiling that a person or a robots.txt has set: it may go slower, never faster."""

from throttle.client.host import Host
from throttle.client.pace import Pace
from throttle.rate_limit_fields import Quota


class AtMostPace:
    """As `inner`, with at least `interval` seconds between two requests."""

    def __init__(self, inner: Pace, interval: float) -> None:
        self.inner = inner
        self.interval = interval
        self._obey()

    def _obey(self) -> None:
        ceiling = 1 / self.interval
        self.rate = min(self.inner.rate, ceiling)
        self.capacity = 1.0  # an interval knows no burst
        self.catch_up = 0.0
        self.in_flight_max = self.inner.in_flight_max

    def sent(self, now: float, height: int) -> None:
        self.inner.sent(now, height)
        self._obey()

    def served(self, now: float, sent_at: float, height: int) -> None:
        self.inner.served(now, sent_at, height)
        self._obey()

    def dropped(self, now: float, sent_at: float, height: int, told: float | None, in_a_row: int) -> float:
        rest = self.inner.dropped(now, sent_at, height, told, in_a_row)
        self._obey()
        return rest

    def told(self, now: float, quota: Quota, in_flight: int) -> float:
        rest = self.inner.told(now, quota, in_flight)
        self._obey()
        return rest


def interval_of(host: Host) -> float:
    """Seconds that somebody has asked to leave between two requests to the host; 0 where nobody has."""
    return host.pace.interval if isinstance(host.pace, AtMostPace) else 0.0


def slow_down(host: Host, interval: float, now: float) -> None:
    """From now on at least `interval` seconds between two requests to the host; a longer one stands."""
    pace = host.pace
    if interval <= 0 or interval_of(host) >= interval:
        return
    inner = pace.inner if isinstance(pace, AtMostPace) else pace
    host.pace = AtMostPace(inner, interval)
    host.bucket.change(host.pace.rate, host.pace.capacity, now, host.pace.catch_up)
