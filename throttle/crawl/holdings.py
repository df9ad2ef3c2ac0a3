"""Which hosts are leased to this worker, and how many of their URLs have no result yet. No I/O."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from throttle.client.host import Host
from throttle.crawl.at_most import NO_CEILING, hold
from throttle.crawl.queue import Pending
from throttle.crawl.result import Result


@dataclass(slots=True)
class Holding:
    host_id: int
    host: Host
    unfinished: int
    last_loaded: int = 0
    """the greatest URL id that is in memory, or was"""

    def work(self) -> float:
        """Seconds until it is done, at its pace."""
        rate = self.host.bucket.rate
        return self.unfinished / rate if rate > 0 else float("inf")

    def take(self, pending: Iterable[Pending]) -> None:
        """These are in memory now."""
        for one in pending:
            self.last_loaded = max(self.last_loaded, one.url_id)


class Holdings:
    def __init__(self) -> None:
        self._by_id: dict[int, Holding] = {}
        self._by_host: dict[Host, Holding] = {}
        self._by_key: dict[str, Host] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Holding]:
        return iter(self._by_id.values())

    def __contains__(self, host_id: int) -> bool:
        return host_id in self._by_id

    def hold(self, host_id: int, host: Host, unfinished: int) -> Holding:
        holding = Holding(host_id, host, unfinished)
        self._by_id[host_id] = self._by_host[host] = holding
        self._by_key[host.name] = host
        return holding

    def by_id(self, host_id: int) -> Holding | None:
        return self._by_id.get(host_id)

    def by_host(self, host: Host) -> Holding | None:
        return self._by_host.get(host)

    def host(self, key: str) -> Host | None:
        return self._by_key.get(key)

    def ids(self) -> set[int]:
        return set(self._by_id)

    def forget(self, host_id: int, now: float) -> Host:
        """Nothing is known any more of what its job would need, so nothing holds its pace."""
        holding = self._by_id.pop(host_id)
        hold(holding.host, NO_CEILING, now)
        del self._by_host[holding.host]
        del self._by_key[holding.host.name]
        return holding.host

    def recorded(self, results: Iterable[Result], now: float) -> list[int]:
        """The ids of the hosts that are done with that, and now forgotten here."""
        finished = []
        for result in results:
            holding = self._by_id.get(result.host_id)
            if holding is not None:
                holding.unfinished -= 1
                if holding.unfinished <= 0:
                    self.forget(holding.host_id, now)
                    finished.append(holding.host_id)
        return finished
