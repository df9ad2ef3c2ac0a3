"""Half and twice each limit: the sets of limits that are replayed beside the one in question."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from throttle.server.policy import Limits

TIMED = ("stack_hits", "stack_seconds", "lone_crawler_seconds", "all_crawlers_seconds")
LOAD = ("load_max", "sleeping_max")


class Variant(NamedTuple):
    """Limits of which one is changed."""

    name: str
    """of the changed limit"""
    value: float
    times: float
    """how much of the original it is"""
    limits: Limits


def variants(limits: Limits, *, has_load: bool) -> Iterator[Variant]:
    """Half and twice each limit that is in force; those of the load only where the load is replayed."""
    for name in TIMED + LOAD if has_load else TIMED:
        value = getattr(limits, name)
        if value is None or (name == "stack_seconds" and limits.stack_hits is None):
            continue
        for times in (0.5, 2.0):
            changed: Any = value * times
            if isinstance(value, int):
                changed = max(round(changed), 0 if name == "sleeping_max" else 1)
            if changed != value:
                yield Variant(name, changed, times, replace(limits, **{name: changed}))
