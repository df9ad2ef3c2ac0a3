"""The table of hosts, bounded."""

from collections.abc import Callable, Mapping
from random import Random
from threading import Lock

from throttle.client.events import Event
from throttle.client.host import Host, HostStats, Politeness
from throttle.client.host_key import HostKey
from throttle.client.pace import Pace


class Hosts:
    """One `Host` per key, at most `hosts_max` as long as that many are idle.

    Dropped first: idle and longest unused. A host with requests open or waiting, or at rest, is never dropped,
    since its pause would be forgotten with it.
    """

    def __init__(
        self,
        pace: Callable[[], Pace],
        *,
        per_host: Mapping[str, Callable[[], Pace]] | None = None,
        key: Callable[[str], str] | None = None,
        hosts_max: int = 10_000,
        politeness: Politeness | None = None,
        on_event: Callable[[Event], None] | None = None,
        random: Random | None = None,
    ) -> None:
        self.lock = Lock()  # for drivers with threads, around `host()`
        self._pace = pace
        self._per_host = dict(per_host or {})  # other paces, by key
        self._key = key or HostKey()
        self._hosts_max = hosts_max
        self._politeness = politeness or Politeness()
        self._on_event = on_event
        self._random = random or Random()
        self._by_key: dict[str, Host] = {}  # the longest unasked first

    def __len__(self) -> int:
        return len(self._by_key)

    def host(self, authority: str, now: float) -> Host:
        key = self._key(authority)
        host = self._by_key.pop(key, None)
        if host is None:
            if len(self._by_key) >= self._hosts_max:
                self._drop_one(now)
            pace = self._per_host.get(key, self._pace)()
            host = Host(key, pace, now, self._random, politeness=self._politeness, on_event=self._on_event)
        self._by_key[key] = host
        return host

    def stats(self, now: float) -> dict[str, HostStats]:
        """By key; the longest unasked first."""
        told = {}
        for key, host in list(self._by_key.items()):
            with host.lock:
                told[key] = host.stats(now)
        return told

    def _drop_one(self, now: float) -> None:
        for key, host in self._by_key.items():
            if host.is_idle and host.rest_left(now) == 0.0 and host.stopped is None:
                del self._by_key[key]
                return
