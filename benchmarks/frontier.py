"""What does the frontier cost a URL, and how near to the bound does a job come? No network, virtual time.

    python -m benchmarks.frontier

The cost includes the host's own machines: asking it, telling it the answer, giving the place back. The bound is
max(URLs of the longest host ÷ its rate + one latency, all ÷ throughput); rates are known, all hosts bear the same.
"""

import gc
import statistics
import time
from collections.abc import Sequence
from heapq import heappop, heappush
from random import Random

from throttle.client.answer import Answer
from throttle.client.host import Host, Place
from throttle.crawl.frontier import Frontier, Turn
from throttle.crawl.known_pace import KnownPace

ROUNDS = 5
SIZES = [(1_000, 1), (1_000, 10), (1_000, 100), (1_000, 1_000), (10_000, 100)]
MEASURED = 20_000  # URLs, at most
WINDOW = 64

# A list such as the third source document describes, and a smaller one of its kind.
JOBS = {
    "75,000 URLs: one host of 8,000, fifty of 400, the rest of five": (
        [8000, *[400] * 50, *[5] * 9400],
        10.0,
        64,
        0.05,
    ),
    "2,497 URLs: one host of 160, twenty-one of 60, the rest of one": ([160, *[60] * 21, *[1] * 1077], 20.0, 32, 0.02),
}
LATE = (0.0, 0.002, 0.01)


def a_frontier(counts: Sequence[int], rate: float) -> Frontier[int]:
    random = Random(1)
    frontier: Frontier[int] = Frontier()
    for number, count in enumerate(counts):
        host = Host(str(number), KnownPace(rate), 0.0, random)
        frontier.add(host, range(min(count, WINDOW)), stored=max(0, count - WINDOW))
    return frontier


def landed(turn: Turn[int], at: float) -> None:
    assert isinstance(turn.place, Place)
    turn.host.answered(turn.place, Answer(at, 200))
    turn.host.release(turn.place)


def load(frontier: Frontier[int]) -> None:
    for lane in frontier.take_hungry(256):
        count = min(WINDOW, lane.stored)
        frontier.loaded(lane.host, range(count), taken=count)


def cost(hosts: int, each: int) -> float:
    """µs of CPU a URL."""
    frontier = a_frontier([each] * hosts, 5.0)
    gc.collect()
    now, done, begun = 0.0, 0, time.process_time()
    while done < min(hosts * each, MEASURED):
        turn = frontier.pop(now)
        if turn is not None:
            landed(turn, now)
            done += 1
        else:
            load(frontier)
            now = max(now, frontier.next_time() or 0.0)
    return (time.process_time() - begun) / done * 1e6


def makespan(counts: Sequence[int], rate: float, slots: int, latency: float, late: float) -> float:
    """Seconds a job takes, when the loop wakes up to `late` seconds after it should."""
    random = Random(2)
    frontier = a_frontier(counts, rate)
    now, done, sent = 0.0, 0, 0
    flying: list[tuple[float, int, Turn[int]]] = []
    while done < sum(counts):
        load(frontier)
        while len(flying) < slots and (turn := frontier.pop(now)) is not None:
            sent += 1
            heappush(flying, (now + latency, sent, turn))
        due = [flying[0][0]] if flying else []
        if len(flying) < slots and (at := frontier.next_time()) is not None:
            due.append(at + random.uniform(0.0, late))
        now = max(now, min(due))
        while flying and flying[0][0] <= now:
            landed(heappop(flying)[2], now)
            done += 1
    return now


def main() -> None:
    print("µs of CPU a URL, median and least of", ROUNDS)
    for hosts, each in SIZES:
        times = [cost(hosts, each) for _ in range(ROUNDS)]
        print(f"  {hosts * each:>9,} queued, {hosts:>6,} hosts: {statistics.median(times):5.1f} {min(times):5.1f}")
    for name, (counts, rate, slots, latency) in JOBS.items():
        bound = max((max(counts) - 1) / rate + latency, sum(counts) * latency / slots)
        print(f"{name}; {slots} slots, {latency * 1000:.0f} ms: bound {bound:.2f} s")
        for late in LATE:
            seconds = makespan(counts, rate, slots, latency, late)
            print(f"  loop up to {late * 1000:4.1f} ms late: {seconds:7.2f} s, {seconds / bound:.3f} × the bound")


if __name__ == "__main__":
    main()
