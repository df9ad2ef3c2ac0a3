"""Who is in a hurry: the hosts without which the job would be done sooner. The others keep the pace that they have.

A limit is found by being refused, which only shortens the job where the host decides how long it takes. Most of a
list's hosts have a few URLs, and are done long before the longest at any pace. As the longest hosts' rates are learned
the job's end comes nearer, and whom it overtakes begins to seek, too.
"""

from collections.abc import Iterable

from throttle.crawl.at_most import NO_CEILING, hold
from throttle.crawl.holdings import Holding

EVERY_SECONDS = 1.0
"""so often is it looked at; a pace begins to seek after two"""
AMPLE = 1.5
"""so many times as fast as just in time: the pace may turn out to be too fast, or more URLs come"""


def hold_who_has_time(
    holdings: Iterable[Holding], now: float, *, at_least: float = 0.0, at_most: float = float("inf")
) -> None:
    """`at_least` and `at_most` are seconds that the job still takes, whatever its hosts need."""
    held = list(holdings)
    left = min(at_most, max([at_least, *(one.work() + one.host.rest_left(now) for one in held)]))
    for one in held:
        hold(one.host, AMPLE * one.unfinished / left if left > 0 else NO_CEILING, now)
