"""The table of hosts, bounded."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from random import Random
from threading import Lock
from typing import TYPE_CHECKING

from throttle.client.events import Event
from throttle.client.fleet.shared_pace import SharedPace
from throttle.client.host import Host, HostStats, Politeness
from throttle.client.host_key import HostKey
from throttle.client.learned import Learned, learned_by, start_from
from throttle.client.pace import Pace

if TYPE_CHECKING:
    from throttle.client.fleet.redis_fleet import RedisFleet
    from throttle.client.remembered.rate_memory import RateMemory


# For so long a host is found by the authority alone, and not counted as asked anew.
FILED_SECONDS = 1.0
LATELY_MAX = 1000  # authorities known so; a host that the table has dropped may linger among them


class Hosts:
    """One `Host` per key, at most `hosts_max` besides those in use.

    Dropped first: idle and longest unused; then one that was stopped, which is stopped again when it is asked again. A
    host at rest goes only when twice as many are known, the one whose rest ends first, since its pause is forgotten
    with it. One with requests open or waiting is never dropped. Safe under threads.
    """

    def __init__(
        self,
        pace: Callable[[], Pace],
        *,
        per_host: Mapping[str, Callable[[], Pace]] | None = None,
        key: Callable[[str], str] | None = None,
        hosts_max: int = 10_000,
        shared: "RedisFleet | None" = None,
        memory: "RateMemory | None" = None,
        owned: "Sequence[RedisFleet | RateMemory]" = (),
        politeness: Politeness | None = None,
        on_event: Callable[[Event], None] | None = None,
        random: Random | None = None,
    ) -> None:
        self._lock = Lock()
        self._pace = pace
        self._per_host = dict(per_host or {})  # other paces, by key
        self._key = lru_cache(maxsize=hosts_max)(key or HostKey())
        self._hosts_max = hosts_max
        self._shared = shared
        self._memory = memory
        self._owned = owned  # closed with the table
        if memory is not None:
            memory.watch(self.learned)
        self._politeness = politeness or Politeness()
        self._on_event = on_event
        self._random = random or Random()
        self._by_key: dict[str, Host] = {}  # the longest unasked first
        self._lately: dict[str | bytes, Host] = {}  # by authority: where to look first

    def __len__(self) -> int:
        return len(self._by_key)

    def host(self, authority: str | bytes, now: float) -> Host:
        host = self._lately.get(authority)
        if host is not None and now < host.filed_until:
            return host
        with self._lock:
            return self._filed(authority, now)

    def _filed(self, authority: str | bytes, now: float) -> Host:
        key = self._key(authority if isinstance(authority, str) else authority.decode("ascii"))
        host = self._by_key.pop(key, None)
        if host is None:
            if len(self._by_key) >= self._hosts_max:
                self._drop_one(now)
            host = self._new_host(key, now)
        self._by_key[key] = host
        host.filed_until = now + FILED_SECONDS
        if len(self._lately) >= LATELY_MAX:
            self._lately.clear()
        self._lately[authority] = host
        return host

    def _new_host(self, key: str, now: float) -> Host:
        make = self._starting(key, self._per_host.get(key, self._pace))
        if self._shared is None:
            return Host(key, make(), now, self._random, politeness=self._politeness, on_event=self._on_event)
        pace = self._shared.pace(key, make)
        pace.host = Host(
            key, pace, now, self._random, bucket=pace.bucket, politeness=self._politeness, on_event=self._on_event
        )
        return pace.host

    def _starting(self, key: str, make: Callable[[], Pace]) -> Callable[[], Pace]:
        known = self._memory.recall(key) if self._memory is not None else None
        if known is None:
            return make

        def started() -> Pace:
            pace = make()
            start_from(pace, known)
            return pace

        return started

    def learned(self) -> dict[str, Learned]:
        """What is worth remembering: of hosts that were served at all."""
        return {key: learned_by(host.pace) for key, host in list(self._by_key.items()) if host.has_served}

    @property
    def has_company(self) -> bool:
        """There is somebody to tell at the end."""
        return self._shared is not None or self._memory is not None

    def close(self) -> None:
        """Nothing more is sent from here: remember, and tell those with whom a pace is shared."""
        if self._memory is not None:
            self._memory.write()
        for host in self._by_key.values():
            self._part(host)
        for link in self._owned:
            link.close()

    def _part(self, host: Host) -> None:
        if self._shared is not None and isinstance(host.pace, SharedPace):
            self._shared.leave(host.pace)

    def stats(self, now: float) -> dict[str, HostStats]:
        """By key; the longest unasked first."""
        told = {}
        for key, host in list(self._by_key.items()):
            with host.lock:
                told[key] = host.stats(now)
        return told

    def _drop_one(self, now: float) -> None:
        stopped = soonest = None
        for key, host in self._by_key.items():
            if not host.is_idle:
                continue
            if host.stopped is not None:
                stopped = stopped or key
            elif host.rest_left(now) == 0.0:
                self._forget(key)
                if self._memory is not None and host.has_served:
                    self._memory.keep(key, learned_by(host.pace))
                self._part(host)
                return
            elif soonest is None or host.rest_left(now) < self._by_key[soonest].rest_left(now):
                soonest = key
        if stopped is not None:
            self._forget(stopped)
        elif soonest is not None and len(self._by_key) >= 2 * self._hosts_max:
            self._forget(soonest)

    def _forget(self, key: str) -> None:
        self._by_key.pop(key).filed_until = float("-inf")
