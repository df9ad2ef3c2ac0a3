"""The table of hosts, bounded."""

from collections.abc import Callable
from random import Random

from throttle.client.events import Event
from throttle.client.host import Host, Politeness
from throttle.client.host_key import HostKey
from throttle.client.pace import Pace


class Hosts:
    """One `Host` per key, at most `hosts_max` besides those in use.

    Dropped first: idle and longest unused; then one that was stopped, which is stopped again when it is asked again. A
    host at rest goes only when twice as many are known, the one whose rest ends first, since its pause is forgotten
    with it. One with requests open or waiting is never dropped.
    """

    def __init__(
        self,
        pace: Callable[[], Pace],
        *,
        key: Callable[[str], str] | None = None,
        hosts_max: int = 10_000,
        politeness: Politeness | None = None,
        on_event: Callable[[Event], None] | None = None,
        random: Random | None = None,
    ) -> None:
        self._pace = pace
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
            host = Host(key, self._pace(), now, self._random, politeness=self._politeness, on_event=self._on_event)
        self._by_key[key] = host
        return host

    def _drop_one(self, now: float) -> None:
        stopped = soonest = None
        for key, host in self._by_key.items():
            if not host.is_idle:
                continue
            if host.stopped is not None:
                stopped = stopped or key
            elif host.rest_left(now) == 0.0:
                del self._by_key[key]
                return
            elif soonest is None or host.rest_left(now) < self._by_key[soonest].rest_left(now):
                soonest = key
        if stopped is not None:
            del self._by_key[stopped]
        elif soonest is not None and len(self._by_key) >= 2 * self._hosts_max:
            del self._by_key[soonest]
