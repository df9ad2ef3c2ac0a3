"""Hits in the order in which they started, whatever the order of their lines and files, in bounded memory.

Servers write a line when a request ends, so a log is nearly in order, but not quite.
"""

import heapq
import pickle
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import IO, Any

from throttle.operate.access_log.files import Coverage, LogFile
from throttle.operate.access_log.line import Hit

WINDOW = 300_000_000
"""microseconds that a line may come too late"""
HELD = 100_000
"""hits that are held back at most to be put in order"""
BATCH = 20_000
BLOCK = 1000
"""hits of each run that are in memory while runs are merged"""

_START = itemgetter(0)

Order = Callable[[Iterable[Hit], Coverage], Iterator[Hit]]


def within_window(hits: Iterable[Hit], coverage: Coverage) -> Iterator[Hit]:
    """Hits in order, if none is more than `WINDOW` or some `HELD` lines late; later ones count as of the one before."""
    hits, held, clock = iter(hits), list[Hit](), 0
    while batch := list(islice(hits, BATCH)):
        held += batch
        held.sort(key=_START)  # nearly sorted already, which costs next to nothing
        for place, hit in enumerate(held):
            if hit[0] >= clock:
                break
            held[place] = (clock, *hit[1:])
            coverage.late += 1
        ready = max(bisect_right(held, held[-1][0] - WINDOW, key=_START), len(held) - HELD)
        if ready:
            clock = held[ready - 1][0]
            yield from held[:ready]
            del held[:ready]
    yield from held


def sorted_on_disk(hits: Iterable[Hit], coverage: Coverage) -> Iterator[Hit]:
    """Hits in order, however far out of it they come: sorted runs in a temporary file, merged.

    In memory is one run, later a hundredth of all hits.
    """
    hits = iter(hits)
    with tempfile.TemporaryFile() as file:
        runs: list[list[int]] = []
        while run := list(islice(hits, HELD)):
            run.sort(key=_START)
            runs.append([])
            for place in range(0, len(run), BLOCK):
                runs[-1].append(file.tell())
                pickle.dump(run[place : place + BLOCK], file, protocol=pickle.HIGHEST_PROTOCOL)
        yield from heapq.merge(*(_blocks(file, places) for places in runs), key=_START)


def _blocks(file: IO[bytes], places: Sequence[int]) -> Iterator[Hit]:
    for place in places:
        file.seek(place)
        yield from pickle.load(file)


def in_order(logs: Sequence[LogFile], coverage: Coverage, order: Order = within_window) -> Iterator[Hit]:
    """The hits of all files as one stream, the same in whatever order the files are named.

    Where two files tell the same time, the file that begins first goes first. A file is opened when its turn comes, so
    that a year of rotated files does not lie open at once.
    """
    waiting = sorted(logs, key=lambda log: (log.first[0] if log.first else 0, log.name), reverse=True)
    if order is sorted_on_disk:
        yield from order((hit for log in reversed(waiting) for hit in log.hits()), coverage)
        return
    if len(waiting) == 1:
        yield from order(waiting[0].hits(), coverage)
        return
    open_logs: list[tuple[int, int, Any, Iterator[Hit]]] = []
    opened = 0
    while waiting or open_logs:
        while waiting and (not open_logs or _begins(waiting[-1]) - WINDOW <= open_logs[0][0]):
            hits = order(waiting.pop().hits(), coverage)
            opened += 1
            if (hit := next(hits, None)) is not None:
                heapq.heappush(open_logs, (hit[0], opened, hit, hits))
        if open_logs:
            _, place, hit, hits = open_logs[0]
            yield hit
            if (following := next(hits, None)) is None:
                heapq.heappop(open_logs)
            else:
                heapq.heapreplace(open_logs, (following[0], place, following, hits))


def _begins(log: LogFile) -> int:
    return log.first[0] if log.first else 0
