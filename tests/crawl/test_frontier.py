"""Which host is next, by hand and on a made-up clock."""

import time
from heapq import heappop, heappush
from random import Random

import pytest

from throttle.client.answer import Answer
from throttle.client.exchange import HostRests, HostStopped
from throttle.client.host import Host, Place, Politeness
from throttle.client.pace.aimd import AimdPace
from throttle.crawl.frontier import OLDEST_EACH, Frontier, Turn
from throttle.crawl.known_pace import KnownPace


class SteadyPace(AimdPace):
    """A rate that is known, and stays."""

    def served(self, now: float, sent_at: float, height: int) -> None:
        pass


def a_host(name: str, rate: float = 10.0, in_flight_max: int = 8, **politeness: object) -> Host:
    pace = SteadyPace(rate=rate, in_flight_max=in_flight_max)
    return Host(name, pace, 0.0, Random(1), politeness=Politeness(**politeness))  # type: ignore[arg-type]


def landed(turn: Turn[object], at: float, status: int = 200, retry_after: float | None = None) -> None:
    assert isinstance(turn.place, Place)
    turn.host.answered(turn.place, Answer(at, status, retry_after))
    turn.host.release(turn.place)


def names(frontier: Frontier[int], now: float, at_most: int = 100) -> list[str]:
    found = []
    while len(found) < at_most and (turn := frontier.pop(now)) is not None:
        found.append(turn.host.name)
        landed(turn, now)
    return found


def test_the_host_with_the_most_work_left_goes_first() -> None:
    frontier: Frontier[int] = Frontier()
    for name, count in (("few", 2), ("most", 90), ("some", 30)):
        frontier.add(a_host(name), range(count))
    assert names(frontier, 0.0) == ["most", "some", "few"]


def test_work_is_time_so_a_slow_host_with_fewer_urls_may_go_first() -> None:
    frontier: Frontier[int] = Frontier()
    frontier.add(a_host("fast", rate=50.0), range(90))
    frontier.add(a_host("slow", rate=0.5), range(30))
    assert names(frontier, 0.0) == ["slow", "fast"]


def test_stored_urls_are_work_too() -> None:
    frontier: Frontier[int] = Frontier()
    frontier.add(a_host("in memory"), range(20))
    frontier.add(a_host("stored"), range(2), stored=1000)
    assert names(frontier, 0.0) == ["stored", "in memory"]


def test_nothing_waits_on_a_host_at_rest_while_another_has_work() -> None:
    frontier: Frontier[int] = Frontier()
    resting, other = a_host("resting"), a_host("other", rate=1000.0)
    frontier.add(resting, range(500))
    turn = frontier.pop(0.0)
    assert turn is not None
    landed(turn, 0.1, status=503, retry_after=60.0)
    frontier.add(other, range(50))
    now, found = 0.1, []
    while now < 30:
        found += names(frontier, now)
        now += 0.01
    assert found == ["other"] * 50
    assert resting.in_flight.count == 0
    assert frontier.next_time() == pytest.approx(60.3, abs=0.3)
    assert names(frontier, 61.0, at_most=1) == ["resting"]


def test_a_slot_that_frees_calls_its_host_back() -> None:
    woken = []
    frontier: Frontier[int] = Frontier(lambda: woken.append(True))
    frontier.add(a_host("narrow", rate=1000.0, in_flight_max=1), range(3))
    first = frontier.pop(0.0)
    assert first is not None
    assert frontier.pop(1.0) is None
    assert frontier.next_time() is None  # no time would help
    landed(first, 1.5)
    assert woken
    assert frontier.pop(1.5) is not None


def test_a_host_keeps_its_rate_and_no_faster() -> None:
    frontier: Frontier[int] = Frontier()
    frontier.add(a_host("ten a second", rate=10.0), range(100))
    now, count = 0.0, 0
    while now < 5.0:
        count += len(names(frontier, now))
        now = max(now + 1e-6, frontier.next_time() or 9.0)
    assert count == pytest.approx(50, abs=2)


@pytest.mark.parametrize(
    ("times", "rate", "latency", "slots", "late"), [(1, 20.0, 0.02, 32, 0.01), (4, 84.0, 0.05, 64, 0.05)]
)
def test_a_job_with_known_rates_takes_as_long_as_its_longest_host_though_the_loop_is_late(
    times: int, rate: float, latency: float, slots: int, late: float
) -> None:
    """The bound is max(URLs of the longest host ÷ its rate, all ÷ throughput); here the longest host decides."""
    counts = [160 * times, *[60 * times] * 20, *[1] * 300]
    frontier: Frontier[int] = Frontier()
    random = Random(1)
    for number, count in enumerate(counts):
        frontier.add(Host(str(number), KnownPace(rate), 0.0, random), range(count))
    now, done, flying = 0.0, 0, list[tuple[float, int, Turn[int]]]()
    while done < sum(counts):
        while len(flying) < slots and (turn := frontier.pop(now)) is not None:
            heappush(flying, (now + latency, id(turn), turn))
        due = [flying[0][0]] if flying else []
        if len(flying) < slots and (at := frontier.next_time()) is not None:
            due.append(at + random.uniform(0.0, late))
        now = max(now, min(due))
        while flying and flying[0][0] <= now:
            landed(heappop(flying)[2], now)
            done += 1
    assert now < 1.02 * ((max(counts) - 1) / rate + latency)


def test_a_small_host_does_not_starve_behind_large_ones() -> None:
    frontier: Frontier[int] = Frontier()
    for large in range(20):
        frontier.add(a_host(f"large {large}", rate=1e6, in_flight_max=1000), range(500))
    frontier.add(a_host("small", rate=1e6), range(1))
    picks = [name for turn in range(21 * OLDEST_EACH) for name in names(frontier, turn / 1000, at_most=1)]
    assert "small" in picks


def test_the_longest_is_hardly_held_up_by_those_that_are_older() -> None:
    frontier: Frontier[int] = Frontier()
    for small in range(1000):
        frontier.add(a_host(f"small {small}"), range(1))
    frontier.add(a_host("longest", rate=1e6, in_flight_max=1000), range(100), stored=10**9)
    picks = [name for turn in range(80) for name in names(frontier, turn / 1000, at_most=1)]
    assert picks.count("longest") == 80 - 80 // OLDEST_EACH


def test_a_rate_that_was_learned_changes_the_order() -> None:
    frontier: Frontier[int] = Frontier()
    learned, other = a_host("learned", rate=1.0), a_host("other", rate=1.0)
    frontier.add(learned, range(50))
    frontier.add(other, range(40))
    learned.bucket.change(10.0, 1.0, 0.0)  # five seconds of work, no longer fifty
    assert names(frontier, 0.0) == ["other", "learned"]


def test_what_is_under_way_goes_before_the_rest_of_its_host() -> None:
    frontier: Frontier[str] = Frontier()
    host = a_host("one")
    frontier.add(host, ["second", "third"])
    frontier.add_first(host, "first")
    turn = frontier.pop(0.0)
    assert turn is not None
    assert turn.item == "first"


def test_what_is_put_back_for_later_comes_at_its_time() -> None:
    frontier: Frontier[str] = Frontier()
    host = a_host("one")
    frontier.add_later(host, "again", 5.0)
    assert not frontier.is_empty
    assert frontier.pop(4.9) is None
    assert frontier.next_time() == 5.0
    turn = frontier.pop(5.0)
    assert turn is not None
    assert turn.item == "again"


def test_a_lane_asks_for_more_before_it_is_empty_and_once_only() -> None:
    frontier: Frontier[int] = Frontier()
    host = a_host("one", rate=1e6, in_flight_max=100)
    frontier.add(host, range(17), stored=100)
    assert frontier.take_hungry(10) == []
    names(frontier, 0.0, at_most=1)
    (lane,) = frontier.take_hungry(10)
    assert frontier.take_hungry(10) == []
    frontier.loaded(host, range(64), taken=64)
    assert lane.remaining == 16 + 64 + 36


def test_items_that_are_held_count_and_stop_the_loading() -> None:
    frontier: Frontier[int] = Frontier()
    host = a_host("one")
    frontier.add(host, (), stored=1000, held=64)
    assert frontier.take_hungry(10) == []  # what is in memory already waits for something else
    frontier.add(host, range(64), held=-64)
    assert not frontier.is_empty


def test_a_blocked_host_gives_its_urls_up_with_the_reason() -> None:
    frontier: Frontier[int] = Frontier()
    host = a_host("wall")
    frontier.add(host, range(3))
    host.stop(0.0, "cf-mitigated: challenge")
    turns = [frontier.pop(0.0) for _ in range(4)]
    assert [type(turn.place) for turn in turns[:3] if turn is not None] == [HostStopped] * 3
    assert turns[3] is None


def test_a_host_that_asks_for_too_long_a_rest_gives_its_urls_up() -> None:
    frontier: Frontier[int] = Frontier()
    frontier.add(a_host("sleeper", wait_max=60.0), range(2))
    first = frontier.pop(0.0)
    assert first is not None
    landed(first, 0.1, status=429, retry_after=3600.0)
    second = frontier.pop(100.0)
    assert second is not None
    assert isinstance(second.place, HostRests)


def test_a_host_that_is_dropped_is_forgotten_with_its_turn() -> None:
    frontier: Frontier[int] = Frontier()
    host = a_host("one", in_flight_max=1)
    frontier.add(host, range(5))
    assert frontier.pop(0.0) is not None
    assert frontier.pop(1.0) is None  # waits for the slot
    assert host.in_flight.waiting == 1
    assert len(frontier.drop(host)) == 4
    assert host.in_flight.waiting == 0
    assert frontier.is_empty


def cost(hosts: int, each: int) -> float:
    """Seconds a URL, in the best of three rounds; all but ten hosts are at rest."""
    best = 1.0
    for _ in range(3):
        frontier: Frontier[int] = Frontier()
        for number in range(hosts):
            host = a_host(str(number), rate=1e6, in_flight_max=1000)
            if number >= 10:
                host.breaker.rest(250.0)
            frontier.add(host, range(100), stored=each)
        names(frontier, 0.0)  # a first look at each finds out who is at rest
        begun = time.process_time()
        for turn in range(500):
            assert names(frontier, 1 + turn / 1000, at_most=1)
        best = min(best, (time.process_time() - begun) / 500)
    return best


def test_a_url_costs_the_same_however_many_hosts_are_throttled_and_urls_are_queued() -> None:
    few, many = cost(20, 50), cost(2000, 500)
    assert many < 3 * few
    assert many < 300e-6  # the bar is 100 µs on an idle machine; this one may be busy
