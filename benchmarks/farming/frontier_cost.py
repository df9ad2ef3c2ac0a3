"""The frontier alone: no network, virtual time, real CPU."""

import gc
import time
from random import Random

from throttle.client.answer import Answer
from throttle.client.host import Host, Place
from throttle.crawl.frontier import Frontier
from throttle.crawl.known_pace import KnownPace

HOSTS, TURNS, OPEN = 1_000, 20_000, 64


def seconds_each(queued: int, seed: int) -> float:
    """CPU seconds from a URL's being taken up by the frontier to its place's being given back.

    64 are open at once, each for a twentieth of a virtual second; a tenth of the hosts bears any rate, the others
    two a second. For each URL that leaves one is added, so that `queued` stay.
    """
    random = Random(seed)
    frontier: Frontier[int] = Frontier()
    hosts = [Host(str(turn), KnownPace(1e6 if turn % 10 == 0 else 2.0), 0.0, random) for turn in range(HOSTS)]
    for host in hosts:
        frontier.add(host, range(queued // HOSTS))
    now, left = 0.0, TURNS
    gc.collect()
    gc.freeze()
    started = time.process_time()
    while left:
        places: list[tuple[Host, Place]] = []
        while left and len(places) < OPEN and (turn := frontier.pop(now)) is not None:
            assert isinstance(turn.place, Place)
            places.append((turn.host, turn.place))
            frontier.add(turn.host, [left])
            left -= 1
        now += 0.05
        for host, place in places:
            host.answered(place, Answer(now, 200))
            host.release(place)
    took = time.process_time() - started
    gc.unfreeze()
    return took / TURNS
