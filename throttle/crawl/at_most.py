"""A pace under a ceiling: an interval that a person or a robots.txt has set, or a rate beyond which nothing is gained.

It may go slower, never faster. The pace below hears all that happens; that it was asked for less than it allows it
knows from how late the requests come.
"""

from throttle.client.host import Host
from throttle.client.learned import Learned, learned_by, start_from
from throttle.client.pace import Pace
from throttle.client.pace.seeking import SeekingPace
from throttle.rate_limit_fields import Quota

NO_CEILING = float("inf")


class AtMostPace:
    """As `inner`, with at least `interval` seconds between two requests and at most `most` requests a second."""

    def __init__(self, inner: Pace, *, interval: float = 0.0, most: float = NO_CEILING) -> None:
        self.inner = inner
        self.interval = interval
        self.most = most
        self._obey()

    def _obey(self) -> None:
        inner, interval = self.inner, self.interval
        ceiling = min(self.most, 1 / interval) if interval else self.most
        self.rate = min(inner.rate, ceiling)
        self.capacity = 1.0 if interval else inner.capacity  # an interval knows no burst
        self.catch_up = 0.0 if interval or inner.rate > ceiling else inner.catch_up
        self.in_flight_max = inner.in_flight_max

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

    def learned(self) -> Learned:
        return learned_by(self.inner)

    def recall(self, learned: Learned) -> None:
        start_from(self.inner, learned)
        self._obey()


def interval_of(host: Host) -> float:
    """Seconds that somebody has asked to leave between two requests to the host; 0 where nobody has."""
    return host.pace.interval if isinstance(host.pace, AtMostPace) else 0.0


def slow_down(host: Host, interval: float, now: float) -> None:
    """From now on at least `interval` seconds between two requests to the host; a longer one stands."""
    if interval > 0 and interval_of(host) < interval:
        _put(host, now, interval=interval, most=_most(host))


def hold(host: Host, enough: float, now: float) -> None:
    """From now on no faster than it goes, while `enough` requests a second are less than that: the host's limit is not
    sought. With `NO_CEILING`, or once more is needed, it is. A rate that somebody knows is left alone."""
    pace = host.pace
    if not isinstance(pace.inner if isinstance(pace, AtMostPace) else pace, SeekingPace):
        return
    most = pace.rate if enough < pace.rate else NO_CEILING
    if most != _most(host):
        _put(host, now, interval=interval_of(host), most=most)


def _most(host: Host) -> float:
    return host.pace.most if isinstance(host.pace, AtMostPace) else NO_CEILING


def _put(host: Host, now: float, *, interval: float, most: float) -> None:
    pace = host.pace
    inner = pace.inner if isinstance(pace, AtMostPace) else pace
    host.pace = pace = AtMostPace(inner, interval=interval, most=most)
    host.bucket.change(pace.rate, pace.capacity, now, pace.catch_up)
