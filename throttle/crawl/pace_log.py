"""The pace of the longest hosts over time: looked at now and then, and kept in little room."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from throttle.client.host import Host

HOSTS_MAX, SAMPLES_MAX = 24, 600


class Sample(NamedTuple):
    at: float
    """seconds since the start"""
    answers: int
    drops: int
    """both since the host is known"""
    pace: float
    """requests a second that its pace allows"""


@dataclass(slots=True)
class Track:
    name: str
    samples: list[Sample] = field(default_factory=list)

    def rates(self) -> list[tuple[float, float]]:
        """(seconds, answers a second until then)."""
        pairs = zip(self.samples, self.samples[1:], strict=False)
        return [(new.at, (new.answers - old.answers) / max(1e-3, new.at - old.at)) for old, new in pairs]

    def refusals(self) -> list[tuple[float, int]]:
        """(seconds, how many came until then)."""
        pairs = zip(self.samples, self.samples[1:], strict=False)
        return [(new.at, new.drops - old.drops) for old, new in pairs if new.drops > old.drops]


class PaceLog:
    """Hosts are followed from when they were first among the longest. When a track is full, every second sample
    goes; what is counted stays right, since counts are kept and not differences."""

    def __init__(self) -> None:
        self._hosts: dict[str, Host] = {}
        self._tracks: dict[str, Track] = {}
        self._each = 1
        self._looks = 0

    def look(self, seconds: float, longest: Iterable[Host]) -> None:
        for host in longest:
            if len(self._hosts) < HOSTS_MAX:
                self._hosts.setdefault(host.name, host)
        self._looks += 1
        if self._looks % self._each:
            return
        for name, host in self._hosts.items():
            track = self._tracks.setdefault(name, Track(name))
            track.samples.append(Sample(seconds, host.answers, host.drops, host.bucket.rate))
        if any(len(track.samples) > SAMPLES_MAX for track in self._tracks.values()):
            self._each *= 2
            for track in self._tracks.values():
                del track.samples[1:-1:2]

    def tracks(self) -> list[Track]:
        """Those with most answers first."""
        return sorted(self._tracks.values(), key=lambda track: -track.samples[-1].answers)
