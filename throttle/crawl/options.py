"""What a crawl keeps to, every number with its default."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite

from throttle.client.settings import Rates


@dataclass(frozen=True, slots=True)
class HostOptions:
    """For one host and the names below it, in place of what all have."""

    rate: float | None = None
    """requests a second that it bears, where somebody knows: kept at once, and on schedule"""
    rates: Rates | None = None
    """within what its pace is sought, where nobody does"""
    min_delay: float | None = None
    robots: bool | None = None
    """whether its robots.txt is obeyed; False is for one's own site"""


@dataclass(frozen=True, slots=True)
class CrawlOptions:
    """Durations are seconds. Raises ValueError, with a sentence, for what makes no sense."""

    method: str = "GET"
    """or HEAD; who answers that with 405 or 501 is asked with GET"""
    follow: int = 0
    """so many links deep, within the sites of the URLs given"""
    external: bool = False
    """links that lead elsewhere are fetched too, and not followed further"""
    robots: bool = True
    agent: str = "throttle-crawl"
    concurrency: int = 64
    """requests open at once, over all hosts"""
    hosts_max: int = 4096
    """hosts of which URLs are in memory"""
    timeout: float = 30.0
    """for a URL's requests together, redirects included, to the end of the body; waiting for its turn does not count"""
    body_max: int = 5 * 1024 * 1024
    """bytes that are read of a body"""
    redirects_max: int = 10
    tries_max: int = 5
    """so often is a URL sent that the host refuses; what fails otherwise, half as often"""
    wait_max: float = 600.0
    """a host that asks for a longer rest, or longer between two requests, is not waited for"""
    give_up_after: float = 600.0
    """a host of which nothing but refusals and failures came for so long is given up"""
    min_delay: float = 0.0
    """between two requests to a host, whatever it bears"""
    max_rate: float | None = None
    """requests a second, over all hosts"""
    deadline: float | None = None
    """after which no request leaves any more"""
    rates: Rates = field(default_factory=Rates)
    per_host: Mapping[str, HostOptions] = field(default_factory=dict)
    durable: bool = False
    """each result waits for the disk, so that a power cut loses none"""

    def __post_init__(self) -> None:
        if self.method not in ("GET", "HEAD"):
            raise ValueError(f"method is GET or HEAD, not {self.method}")
        if self.follow and self.method == "HEAD":
            raise ValueError("links cannot be followed with HEAD, which brings no page")
        for name in ("concurrency", "hosts_max", "body_max", "tries_max"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        for name in ("follow", "redirects_max", "min_delay"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name} must be 0 or more")
        for name in ("timeout", "wait_max", "give_up_after", "max_rate", "deadline"):
            value = getattr(self, name)
            if value is not None and not (isfinite(value) and value > 0):
                raise ValueError(f"{name} must be above 0, not {value:g}")
        if self.min_delay > self.wait_max:
            raise ValueError("min_delay must not be longer than wait_max")
