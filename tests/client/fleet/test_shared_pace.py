"""Several workers on one host, in virtual time, on the books of a real server."""

import secrets
from bisect import bisect_left
from collections.abc import Callable
from itertools import pairwise
from random import Random

import pytest

from benchmarks.simulator.clients import FlowClient, Work
from benchmarks.simulator.clockwork import Clockwork
from benchmarks.simulator.fleet import DELAY, Ledger, worker
from benchmarks.simulator.hosts import NETWORK, BucketHost, SimulatedHost, Steps, WorkerHost
from tests import servers
from throttle.client.fleet.alone import ALONE
from throttle.client.fleet.call import News, Reply
from throttle.client.fleet.lease import LATE
from throttle.client.fleet.shared_pace import SharedPace
from throttle.client.pace import Pace
from throttle.client.pace.aimd import AimdPace
from throttle.client.pace.seeking import SeekingPace


class Fleet:
    """`count` workers of a site; each has 64 tasks that always want one more page, or the `work` given."""

    def __init__(
        self,
        server: str,
        count: int,
        rate: float,
        burst: float | None = None,
        *,
        own: Callable[[], Pace] | None = None,
        work: Callable[[], Work] = Work,
        tells: bool = True,
        shut_out: float = 0.0,
        delay: float = DELAY,
        site: Callable[[Clockwork, Random], SimulatedHost] | None = None,
    ) -> None:
        random = Random(f"{count}/{rate}")
        self.clockwork = Clockwork()
        if site is None:
            self.site: SimulatedHost = BucketHost(
                self.clockwork, random, Steps(rate), burst or rate, tells=tells, shut_out=shut_out
            )
        else:
            self.site = site(self.clockwork, random)
        self.ledger = Ledger(self.clockwork, servers.shared(server).client(), secrets.token_hex(8), delay)
        self.clients: list[FlowClient] = []
        for number in range(count):
            made = own or (lambda: SeekingPace(random))
            client = worker(self.clockwork, self.site, self.ledger, number, made, random, work(), 0.01 * number)
            self.clients.append(client)

    def run(self, until: float) -> None:
        self.clockwork.run(until)

    def pace(self, number: int) -> SharedPace:
        pace = self.clients[number].host.pace
        assert isinstance(pace, SharedPace)
        return pace

    def kill(self, number: int) -> None:
        """Its tasks stop with it: nothing of it is sent or heard any more."""
        self.ledger.kill(self.pace(number))
        client = self.clients[number]
        client.wanted = 0
        client.host.breaker.rest(float("inf"))

    def sent(self, start: float = 0.0, end: float = float("inf")) -> list[float]:
        return sorted(time for client in self.clients for time in client.log.sent if start <= time < end)

    def shares(self, start: float, end: float) -> list[int]:
        return [
            sum(
                1 for time, good in zip(client.log.sent, client.log.served, strict=True) if good and start <= time < end
            )
            for client in self.clients
        ]

    def in_a_row(self) -> int:
        """Refusals that the ledger counts as the first and its scouts'."""
        return max(self.pace(number)._row for number in range(len(self.clients)))

    def refused(self) -> int:
        return sum(not good for client in self.clients for good in client.log.served)


def jain(shares: list[int]) -> float:
    return sum(shares) ** 2 / (len(shares) * sum(share * share for share in shares))


def steady(rate: float) -> Callable[[], Pace]:
    """A pace that knows its rate, so that only the sharing is tested."""
    return lambda: AimdPace(rate=rate, rate_min=rate, rate_max=rate)


@pytest.fixture(params=servers.binaries())
def server(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.mark.parametrize("count", [2, 4, 10])
def test_all_workers_together_keep_to_a_hidden_limit_and_share_it_evenly(server: str, count: int) -> None:
    fleet = Fleet(server, count, 40.0)
    fleet.run(90.0)
    shares = fleet.shares(40.0, 90.0)
    assert fleet.refused() <= 0.01 * len(fleet.sent())
    assert 0.93 * 50 * 40.0 <= sum(shares) <= 1.01 * 50 * 40.0
    assert jain(shares) >= 0.99


@pytest.mark.parametrize("count", [1, 2, 10])
def test_at_100_a_second_there_is_at_most_one_call_per_ten_requests(count: int) -> None:
    fleet = Fleet("valkey", count, 1000.0, own=steady(100.0))
    fleet.run(20.0)
    assert len(fleet.sent()) >= 0.97 * 2000
    assert fleet.ledger.calls <= 0.1 * len(fleet.sent())


@pytest.mark.parametrize("rate", [0.5, 8.0, 100.0])
def test_no_window_holds_more_than_its_seconds_and_one_second_of_requests(rate: float) -> None:
    """Whatever the workers want, and whenever: in bursts, and so that leases are left over."""

    def in_bursts() -> Work:
        random = Random(secrets.randbelow(1 << 30))
        return Work([(random.uniform(0.0, 60.0), random.randint(1, max(2, int(rate)))) for _ in range(40)])

    fleet = Fleet("valkey", 6, 100_000.0, own=steady(rate), work=in_bursts)
    fleet.run(90.0)
    sent = fleet.sent()
    assert len(sent) > rate * 10
    for span in (0.05, 0.3, 1.0, 5.0):
        most = max(bisect_left(sent, time + span) - first for first, time in enumerate(sent))
        assert most <= rate * (span + LATE) + 1


def test_the_search_for_a_rate_takes_ten_workers_hardly_longer_than_one() -> None:
    """What was leased at the rate of then is drawn together: with ten at 2/s it lies five seconds ahead."""
    reached: dict[int, float] = {}
    for count in (1, 10):
        fleet = Fleet("valkey", count, 100.0)
        while len(fleet.sent()) < 150:
            fleet.run(fleet.clockwork.now + 0.5)
        reached[count] = fleet.clockwork.now
    assert reached[10] <= 1.5 * reached[1]


@pytest.mark.parametrize("count", [2, 10])
def test_a_host_of_four_workers_is_not_made_slow_by_many_processes(count: int) -> None:
    """Of all requests together no more are open than one process would have, but for a few."""
    fleet = Fleet("valkey", count, 50.0, site=lambda clockwork, random: WorkerHost(clockwork, random, 4, 100))
    fleet.run(120.0)
    latencies = sorted(
        landed - sent
        for client in fleet.clients
        for sent, landed in zip(client.log.sent, client.log.landed, strict=True)
        if sent >= 40.0
    )
    assert len(latencies) >= 0.85 * 80 * 50.0
    assert latencies[int(0.95 * len(latencies))] <= 3.0 * 0.14


def test_workers_that_always_want_more_send_as_evenly_as_one() -> None:
    fleet = Fleet("valkey", 5, 1000.0, own=steady(20.0))
    fleet.run(30.0)
    sent = fleet.sent(5.0)
    gaps = [later - earlier for earlier, later in pairwise(sent)]
    assert max(gaps) == pytest.approx(1 / 20.0, abs=4 * DELAY)
    assert min(gaps) == pytest.approx(1 / 20.0, abs=4 * DELAY)


def test_a_slow_hosts_requests_go_to_whoever_wants_them() -> None:
    """At 0.5 a second an idle worker holds nothing, and one that is alone in wanting gets all."""
    works = iter([Work([(0.0, 1)]), Work([(0.0, 1)]), Work()])
    fleet = Fleet("valkey", 3, 1000.0, own=steady(0.5), work=lambda: next(works))
    fleet.run(64.0)
    assert [len(client.log.sent) for client in fleet.clients[:2]] == [1, 1]
    assert len(fleet.clients[2].log.sent) >= 29


def test_a_killed_workers_lease_is_over_when_its_stretch_is() -> None:
    fleet = Fleet("valkey", 4, 1000.0, own=steady(40.0))
    fleet.run(10.0)
    fleet.kill(2)
    fleet.run(20.0)
    survivors = [client for number, client in enumerate(fleet.clients) if number != 2]
    after = [time for client in survivors for time in client.log.sent if 10.0 <= time < 19.5]
    # What it held: one lease, of 0.2 s.
    assert len(after) >= 380 - 0.2 * 40 - 1


def test_when_the_one_who_steers_is_killed_another_goes_on_with_what_it_learned() -> None:
    fleet = Fleet("valkey", 3, 40.0)
    fleet.run(60.0)
    (steering,) = [number for number in range(3) if fleet.pace(number).is_steering]
    fleet.kill(steering)
    fleet.run(64.6)
    (follower,) = [number for number in range(3) if number != steering and fleet.pace(number).is_steering]
    assert fleet.pace(follower).learned().is_limit
    fleet.run(120.0)
    shares = fleet.shares(65.0, 120.0)
    assert sum(shares) >= 0.9 * 55 * 40.0
    assert fleet.refused() <= 0.01 * len(fleet.sent())


def test_after_one_refusal_nobody_sends_until_the_rest_is_over_and_then_one_scout() -> None:
    fleet = Fleet("valkey", 5, 30.0, 30.0, own=steady(36.0), tells=False, shut_out=8.0)
    refusals: list[float] = []
    while not refusals:
        fleet.run(fleet.clockwork.now + 0.5)
        refusals = [
            landed
            for client in fleet.clients
            for landed, good in zip(client.log.landed, client.log.served, strict=True)
            if not good
        ]
    heard = min(refusals) + 3 * DELAY
    fleet.run(heard + 3.0)
    # Untold, it rests for half a second; a scout is refused, too, then for six seconds.
    after = fleet.sent(heard)
    assert len(after) == 1
    assert after[0] >= min(refusals) + 0.5


def test_after_a_refusal_only_who_was_refused_asks_to_be_the_scout() -> None:
    fleet = Fleet("valkey", 10, 1000.0, own=steady(10.0))
    fleet.run(5.0)
    fleet.clients[0].host.told_to_rest(5.0, 0.0, is_cut=True)  # a refusal, noted by hand
    fleet.pace(0).dropped(5.0, 4.99, 1, 1.0, 1)
    fleet.run(5.9)
    calls = fleet.ledger.calls
    fleet.run(6.05)
    assert fleet.clients[0].host.breaker.scout_is_out
    assert fleet.ledger.calls - calls <= 2  # and maybe a beat of the one who steers


def test_who_was_refused_and_is_killed_is_stood_in_for() -> None:
    fleet = Fleet("valkey", 4, 1000.0, own=steady(10.0))
    fleet.run(5.0)
    fleet.clients[0].host.told_to_rest(5.0, 0.0, is_cut=True)  # a refusal, noted by hand
    fleet.pace(0).dropped(5.0, 4.99, 1, 1.0, 1)
    fleet.run(5.5)
    fleet.kill(0)
    fleet.run(9.0)
    assert len(fleet.sent(7.2, 9.0)) >= 0.9 * 18


def test_a_told_wait_holds_for_all_workers_and_old_news_does_not_lengthen_it() -> None:
    fleet = Fleet("valkey", 5, 30.0, 10.0, own=steady(60.0))
    fleet.run(0.2 + 10 / 30)
    first = min(
        landed
        for client in fleet.clients
        for landed, good in zip(client.log.landed, client.log.served, strict=True)
        if not good
    )
    fleet.run(first + 1.0)
    assert not fleet.sent(first + 3 * DELAY, first + 1.0)
    fleet.run(first + 1.2)
    assert fleet.sent(first + 1.0, first + 1.2)


def test_what_left_before_its_worker_heard_of_the_rest_is_no_scouts_refusal() -> None:
    fleet = Fleet("valkey", 5, 30.0, 10.0, own=steady(60.0), delay=0.05)
    while not fleet.refused():
        fleet.run(fleet.clockwork.now + 0.01)
    fleet.run(fleet.clockwork.now + 0.9)
    assert fleet.refused() >= 2
    assert fleet.in_a_row() == 1


def test_a_scout_that_is_lost_with_its_worker_is_replaced() -> None:
    fleet = Fleet("valkey", 3, 1000.0, own=steady(10.0))
    fleet.run(5.0)
    pace = fleet.pace(0)
    fleet.clients[0].host.told_to_rest(5.0, 0.0, is_cut=True)  # a refusal, noted by hand
    pace.dropped(5.0, 4.99, 1, 1.0, 1)
    fleet.run(6.01)
    (scout,) = [number for number in range(3) if fleet.clients[number].host.breaker.scout_is_out]
    fleet.kill(scout)
    fleet.run(12.0)
    assert len(fleet.sent(11.1, 12.0)) >= 7


def test_without_the_ledger_each_keeps_to_its_share_of_the_last_rate_and_returns_to_it_after() -> None:
    fleet = Fleet("valkey", 4, 1000.0, own=steady(40.0))
    fleet.run(10.0)
    fleet.ledger.go()
    fleet.run(30.0)
    alone = fleet.shares(11.0, 29.0)
    for share in alone:
        assert 0.95 * 18 * 10 * ALONE <= share <= 18 * 10 * ALONE + 2
    # Nobody waits longer than the time-box and a turn.
    silence = fleet.sent(9.5, 12.0)
    assert max(later - earlier for earlier, later in pairwise(silence)) < 0.5
    fleet.ledger.come_back()
    fleet.run(40.0)
    assert sum(fleet.shares(31.0, 40.0)) == pytest.approx(9 * 40.0, rel=0.03)


def test_alone_a_probes_rate_is_not_taken_for_the_limit() -> None:
    fleet = Fleet("valkey", 2, 40.0)
    fleet.run(60.0)
    for number in range(2):
        pace = fleet.pace(number)
        assert pace.learned().is_limit
        pace.rate = 90.0
        pace.failed(60.0)
        assert pace.rate == pytest.approx(ALONE * 40.0 / 2, rel=0.1)


def test_alone_a_refusal_takes_a_quarter_off_the_share_and_nothing_raises_it_above() -> None:
    fleet = Fleet("valkey", 2, 1000.0, own=steady(40.0))
    fleet.run(5.0)
    fleet.ledger.go()
    fleet.run(6.0)
    pace = fleet.pace(0)
    share = pace.rate
    assert share == pytest.approx(ALONE * 20.0)
    pace.dropped(6.0, 5.9, 1, None, 1)
    assert pace.rate == pytest.approx(0.75 * share)
    for _ in range(10_000):
        pace.served(6.0, 5.9, 1)
    assert pace.rate == pytest.approx(share)


def test_who_never_reached_the_ledger_seeks_by_itself() -> None:
    fleet = Fleet("valkey", 1, 40.0)
    fleet.ledger.go()
    fleet.run(60.0)
    assert fleet.refused() <= 0.01 * len(fleet.sent())
    assert sum(fleet.shares(30.0, 60.0)) >= 0.9 * 30 * 40.0


def test_an_answer_from_before_the_last_refusal_brings_no_lease() -> None:
    fleet = Fleet("valkey", 1, 1000.0, own=steady(10.0), work=lambda: Work([]))
    fleet.run(1.0)
    pace = fleet.pace(0)
    assert pace.bucket.seconds_until_token(1.0) == float("inf")  # it asks
    pace.heard(News(7, 2.0, 1, "example.org"), 1.0)
    pace.answered(Reply(5, 0.0, 0.1, 0.0, 6, None, False, 1, False, 10.0, 8.0, "", 0, "", 1, 10.0, False, []), 1.0)
    assert pace.bucket.left(1.0) == 0
    assert fleet.clients[0].host.rest_left(1.0) == pytest.approx(2.0)


def test_a_scout_that_passes_while_a_call_is_under_way_ends_the_rest() -> None:
    fleet = Fleet("valkey", 1, 1000.0, own=steady(10.0), delay=0.05)
    fleet.run(5.0)
    fleet.clients[0].host.told_to_rest(5.0, 0.0, is_cut=True)  # a refusal, noted by hand
    fleet.pace(0).dropped(5.0, 4.99, 1, 1.5, 1)
    fleet.run(12.0)
    assert len(fleet.sent(7.0, 12.0)) >= 0.85 * 10 * 5


def test_a_server_that_has_lost_its_books_stops_nobody() -> None:
    fleet = Fleet("valkey", 2, 40.0)
    fleet.run(20.0)
    servers.shared("valkey").client().flushall()
    fleet.run(40.0)
    assert sum(fleet.shares(25.0, 40.0)) >= 0.85 * 15 * 40.0


def test_a_slow_network_to_the_ledger_costs_pace_not_politeness() -> None:
    fleet = Fleet("valkey", 4, 40.0, delay=0.05)
    fleet.run(90.0)
    shares = fleet.shares(40.0, 90.0)
    assert fleet.refused() <= 0.008 * len(fleet.sent())
    assert sum(shares) >= 0.93 * 50 * 40.0
    assert jain(shares) >= 0.99
    assert NETWORK < 0.05
