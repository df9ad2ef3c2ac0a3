"""What a worker may send in its turn."""

import pytest

from throttle.client.fleet.lease import LATE, Lease, LeaseBucket, Slots


class Worker:
    """`open` of its requests; `limit` of the fleet's may be; one takes 0.1 s."""

    def __init__(self, limit: float) -> None:
        self.open = 0
        self.limit = limit
        self.asked = 0
        self.bucket = LeaseBucket(100.0, self.ask, lambda: Slots(self.open, self.limit, 0.1))

    def ask(self, now: float) -> None:
        self.asked += 1

    def send(self, now: float) -> None:
        assert self.bucket.seconds_until_token(now) == 0.0
        self.bucket.take()
        self.open += 1


def test_what_is_held_is_drawn_together_when_the_rate_rises() -> None:
    lease = Lease(start=15.0, gap=0.5, count=2)
    lease.stretch(10.0, 0.1)
    assert (lease.start, lease.gap) == (10.5, 0.05)


def test_what_was_due_already_stays_due() -> None:
    lease = Lease(start=9.5, gap=0.5, count=2)
    lease.stretch(10.0, 4.0)
    assert (lease.start, lease.gap) == (9.5, 2.0)


def test_in_its_turn_a_worker_gets_the_slots_as_the_turn_befores_requests_end() -> None:
    worker = Worker(limit=5)
    worker.bucket.grant(Lease(10.0, 0.01, 20, follows=True))
    left = []
    now = 10.0
    for _ in range(5):
        now += worker.bucket.seconds_until_token(now)  # until it is due
        now += worker.bucket.seconds_until_token(now)  # until there is room
        worker.send(now)
        left.append(now - 10.0)
    assert left == pytest.approx([0.0, 0.02, 0.04, 0.06, 0.08])


def test_what_it_had_open_when_its_turn_began_it_may_have_open() -> None:
    worker = Worker(limit=5)
    worker.open = 3
    worker.bucket.grant(Lease(10.0, 0.001, 20, follows=True))
    worker.send(10.0)
    assert worker.bucket.seconds_until_token(10.001) == pytest.approx(0.1 / 2 - 0.001)
    worker.open = 3  # one has ended
    assert worker.bucket.seconds_until_token(10.001) == 0.0


def test_who_is_alone_waits_for_nobodys_requests() -> None:
    worker = Worker(limit=5)
    worker.bucket.grant(Lease(10.0, 0.001, 20, follows=False))
    for _ in range(5):
        worker.send(10.02)


def test_what_the_slots_held_back_goes_with_the_turn() -> None:
    worker = Worker(limit=5)
    worker.bucket.grant(Lease(10.0, 0.001, 3, follows=True))
    worker.send(10.0)
    assert worker.bucket.seconds_until_token(10.001) > 0.0
    assert worker.bucket.left(10.002) == 2
    assert worker.bucket.left(10.004) == 0


def test_each_turn_sends_one_however_slow_the_host_is_thought_to_be() -> None:
    worker = Worker(limit=2)
    worker.bucket = LeaseBucket(100.0, worker.ask, lambda: Slots(worker.open, 2, 1000.0))
    worker.bucket.grant(Lease(10.0, 0.01, 3, follows=True))
    worker.send(10.0)


def test_what_a_late_loop_held_back_may_leave_within_a_second() -> None:
    worker = Worker(limit=50)
    worker.bucket.grant(Lease(10.0, 0.01, 3, follows=True))
    assert worker.bucket.left(10.5) == 3
    assert worker.bucket.left(10.0 + LATE + 0.03) == 0
