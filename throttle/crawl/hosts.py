"""The table of hosts that a crawl's options make."""

from collections.abc import Callable
from functools import partial
from random import Random

from throttle.client.events import Event
from throttle.client.host import Politeness
from throttle.client.hosts import Hosts
from throttle.client.pace import Pace
from throttle.client.settings import Rates, Settings, polite_hosts
from throttle.crawl.known_pace import KnownPace
from throttle.crawl.options import CrawlOptions, HostOptions


def hosts_of(
    options: CrawlOptions, key: Callable[[str], str], on_event: Callable[[Event], None] | None, random: Random
) -> Hosts:
    settings: Settings = {
        "rates": options.rates,
        "per_host": {name: _pace(own, options.rates) for name, own in options.per_host.items()},
        "politeness": Politeness(wait_max=options.wait_max),
        "key": key,
        "hosts_max": 2 * options.hosts_max,
        "random": random,
    }
    if on_event is not None:
        settings["on_event"] = on_event
    return polite_hosts(**settings)


def _pace(own: HostOptions, rates: Rates) -> Rates | Callable[[], Pace]:
    rates = own.rates or rates
    return rates if own.rate is None else partial(KnownPace, own.rate, rates.in_flight)
