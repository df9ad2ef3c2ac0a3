"""What a pace is: it says how fast and how many at once, and hears how requests ended.

A pace only says numbers; the bucket, the slots and the breaker obey them (`host.py` joins them). It reads no clock
and does no I/O, so the very object that runs in production runs in the simulation. Four are made here:

`seeking`    the default: finds the limit
`interval`   an interval that doubles on a drop and shrinks by a step on success
`table`      10 a second at first, halved on 429, one more per 100 successes
`aimd`       additive increase, multiplicative decrease
"""

from typing import Protocol

from throttle.rate_limit_fields import Quota


class Pace(Protocol):
    """All times are seconds on one monotonic clock. A request is known by when it was sent.

    `height` is how many requests were open when it left, itself included.
    """

    rate: float  # requests a second
    capacity: float  # of the token bucket: the largest burst
    catch_up: float  # tokens above it for requests whose wait ended late
    in_flight_max: float

    def sent(self, now: float, height: int) -> None:
        """A request leaves now."""

    def served(self, now: float, sent_at: float, height: int) -> None:
        """It was answered, and the host bears it."""

    def dropped(self, now: float, sent_at: float, height: int, told: float | None, in_a_row: int) -> float:
        """It was refused or lost; the seconds the host is to rest, at least `told`.

        Only the first of a series is told: refusals of requests that left before it are old news. `in_a_row`
        counts drops since the last one that was served, this one included; above 1 it was a scout's.
        """

    def told(self, now: float, quota: Quota, in_flight: int) -> float:
        """The host said what it would still bear; the seconds it is to rest before the next request, or 0."""


def rest_seconds(told: float | None, in_a_row: int, first: float, longest: float = 6.0) -> float:
    """How long a host that refused is left alone: what it told, or else `first`, then `longest`.

    One guess at a short trouble, then the patience an outage asks for: ten scouts a minute. Steps between the
    two would meet the same closed door.
    """
    if told is not None:
        return told
    return min(first, longest) if in_a_row <= 1 else longest
