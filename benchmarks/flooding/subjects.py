"""What stands before the site in each run: nothing, the throttle, a peer."""

import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from decision import subjects
from decision.subjects import Subject, behind

from throttle import Limits, MemoryStore, ThrottleMiddleware

SMALL = 64 << 20
CRAWLERS_NETWORK = "66.249.66.0/27"
LISTS = tempfile.TemporaryDirectory(prefix="throttle-flood-")


def _throttle(clock: Any, limits: Limits, **store: int) -> Any:
    """Knows the crawler by its operator's published addresses, as a site does; asks no DNS."""
    prefixes = {"prefixes": [{"ipv4Prefix": CRAWLERS_NETWORK}]}
    for name in ("google-common-crawlers", "google-special-crawlers"):
        Path(LISTS.name, f"{name}.json").write_text(json.dumps(prefixes))
    return behind(
        ThrottleMiddleware,
        limits=limits,
        store=MemoryStore(clock=clock.read, **store),
        clock=clock.read,
        wall_clock=clock.read,
        crawler_ranges=LISTS.name,
        reverse_dns=False,
    )


BARE = subjects.BARE
PAGE = Subject("throttle, connotea", lambda clock: _throttle(clock, Limits()))
MODERN = Subject("throttle, modern", lambda clock: _throttle(clock, Limits.modern()))
MODERN_SMALL = Subject(
    "throttle, modern, max_bytes of 64 MiB", lambda clock: _throttle(clock, Limits.modern(), max_bytes=SMALL)
)
PEERS = [
    Subject("limits, moving window, thin gate", subjects.limits_moving_window, is_peer=True),
    Subject("slowapi, ASGI middleware", partial(subjects.slowapi, middleware="SlowAPIASGIMiddleware"), is_peer=True),
]
ALL = [BARE, PAGE, MODERN, MODERN_SMALL, *PEERS]

Site = Callable[[], Any]


def make(name: str, clock: Any, site: Site) -> Any:
    """The subject of this name in front of `site`, on this clock."""
    subjects.site = site
    return next(each for each in ALL if each.name == name).make(clock)
