"""What each host is like, as data: it goes to the farm's process as JSON, and tells the client what to expect."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Any
from zlib import crc32

BLOCKED, FAILING, MISSING, MOVED, AWAY, FINE = "blocked", "failing", "missing", "moved", "away", "fine"


@dataclass(frozen=True)
class HostPlan:
    """`limit` is None for a host that answers at once, or `{"kind": "bucket", …}`; see `site.limited`.

    The shares are of its pages: 500, 404, a redirect on the same host, a redirect to the next host of the farm.
    """

    address: str
    name: str = ""
    """a second name, for clients that reach it through the farm as their proxy"""
    limit: Mapping[str, Any] | None = None
    failing: float = 0.0
    missing: float = 0.0
    moved: float = 0.0
    away: float = 0.0
    blocks_after: int | None = None
    """pages, after which it answers with a challenge"""
    robots: str | None = None
    """None: there is none, 404"""

    def page(self, path: str) -> str:
        """What is to be found there: one of `FAILING`, `MISSING`, `MOVED`, `AWAY`, `FINE`."""
        drawn = crc32(f"{self.address}{path}".encode()) / 2**32
        for share, kind in (
            (self.failing, FAILING),
            (self.missing, MISSING),
            (self.moved, MOVED),
            (self.away, AWAY),
        ):
            if drawn < share:
                return kind
            drawn -= share
        return FINE


def address(turn: int) -> str:
    return f"127.0.{1 + turn // 256}.{turn % 256}"


def open_hosts(count: int) -> list[HostPlan]:
    """Without a limit, and as fast as can be."""
    return [HostPlan(address(turn), f"host{turn}.test") for turn in range(count)]


def mixed_hosts(count: int, seed: int) -> list[HostPlan]:
    """Each with its own limit and manners: buckets, windows, workers, lock-outs; some fail, move, block, disallow."""
    random = Random(f"mixed/{seed}")
    return [_mixed(turn, random) for turn in range(count)]


def _mixed(turn: int, random: Random) -> HostPlan:
    rate = min(50.0, max(0.5, random.lognormvariate(1.6, 1.1)))
    service = 0.02 + random.expovariate(20)
    tells = random.random() < 0.6
    bucket = {"kind": "bucket", "rate": rate, "burst": max(2.0, rate), "tells": tells, "service": service}
    limit = random.choices(
        [
            bucket,
            bucket | {"status": 503},
            bucket | {"shut_out": 5.0},
            {"kind": "window", "quota": round(rate * 10) + 1, "window": 10.0, "tells": tells},
            {"kind": "window", "quota": round(rate * 10) + 1, "window": 10.0, "fields": True},
            {"kind": "workers", "workers": 1 + round(rate * 0.1), "queue": 20, "service": service},
            {"kind": "workers", "workers": 2 + round(rate * 0.2), "queue": 0, "service": service},
        ],
        weights=[50, 15, 5, 10, 5, 10, 5],
    )[0]
    robots = "User-agent: *\nDisallow: /private/\n" if random.random() < 0.5 else None
    if robots and random.random() < 0.2:
        robots += f"Crawl-delay: {random.choice([0.2, 0.5, 1])}\n"
    return HostPlan(
        address(turn),
        f"host{turn}.test",
        limit,
        failing=random.choice([0.0, 0.0, 0.01, 0.05]),
        missing=random.choice([0.0, 0.02, 0.1]),
        moved=random.choice([0.0, 0.05, 0.2]),
        away=random.choice([0.0, 0.0, 0.05]),
        blocks_after=10 if random.random() < 0.01 else None,
        robots=robots,
    )


def to_json(plans: Sequence[HostPlan]) -> str:
    return json.dumps([asdict(plan) for plan in plans])


def from_json(text: str) -> list[HostPlan]:
    return [HostPlan(**fields) for fields in json.loads(text)]
