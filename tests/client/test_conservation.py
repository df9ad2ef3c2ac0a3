"""Whatever is cancelled, whenever: slots and tokens are conserved, and the order is kept.

10,000 steps here; a million where THROTTLE_LONG is set.
"""

import os
from random import Random

import pytest

from throttle.client.answer import Answer, Failure
from throttle.client.exchange import Done, GiveUp, Send, Wait, exchange
from throttle.client.host import Host, Place, Politeness
from throttle.client.pace import Pace
from throttle.client.pace.aimd import AimdPace
from throttle.client.pace.seeking import SeekingPace

STEPS = 1_000_000 if os.environ.get("THROTTLE_LONG") else 10_000


class Request:
    def __init__(self, host: Host, now: float, number: int) -> None:
        self.number = number
        self.woken = False
        self.timer = float("inf")
        self.is_sent = False
        self.place: Place | None = None
        self.is_over = False
        self.flow = exchange(host, self.wake, now)
        self.follow(next(self.flow), now)

    def wake(self) -> None:
        self.woken = True

    def follow(self, step: object, now: float) -> None:
        self.woken = False
        self.timer = float("inf")
        self.is_sent = isinstance(step, Send)
        if isinstance(step, Wait):
            self.timer = now + step.seconds
        elif isinstance(step, Done):
            self.place = step.place
        elif isinstance(step, GiveUp):
            self.is_over = True
            self.flow.close()


@pytest.mark.parametrize("pace", [AimdPace, SeekingPace])
def test_slots_and_turns_are_conserved_under_random_cancellation_and_errors(pace: type[Pace]) -> None:
    random = Random(7)
    made = SeekingPace(Random(3)) if pace is SeekingPace else AimdPace(rate=20.0, in_flight_max=7)
    host = Host("example.org", made, 0.0, random, politeness=Politeness(wall_after=1 << 30))
    now, number, served = 0.0, 0, 0
    requests: list[Request] = []
    rest_until = 0.0
    for _ in range(STEPS):
        now += random.expovariate(40.0)
        if len(requests) < 40:
            requests.append(Request(host, now, number))
            number += 1
        request = requests[random.randrange(len(requests))]
        chance = random.random()
        if chance < 0.05:  # cancelled, wherever it is
            request.flow.close()
            if request.place is not None:
                host.release(request.place)
            requests.remove(request)
        elif request.place is not None:
            host.release(request.place)
            requests.remove(request)
            served += 1
        elif request.is_sent:
            status: int | Failure = random.choice([200] * 30 + [404, 429, 503, 500, Failure.TIMEOUT, Failure.CONNECT])
            request.follow(request.flow.send(Answer(now, status, 0.5 if status == 429 else None)), now)
            rest_until = max(rest_until, host.breaker.rest_until if host.breaker.is_resting else 0.0)
        for waiting in requests:
            if waiting.woken or waiting.timer <= now:
                before = host.rest_left(now)
                waiting.follow(waiting.flow.send(now), now)
                # No request leaves a paused host.
                assert not (waiting.is_sent and before > 0)
        open_ = sum(request.is_sent or request.place is not None for request in requests)
        assert host.in_flight.count == open_
        assert host.bucket.tokens <= host.bucket.capacity
        requests = [request for request in requests if not request.is_over]
    assert served > STEPS / 400
    for request in requests:
        request.flow.close()
        if request.place is not None:
            host.release(request.place)
    assert host.in_flight.count == host.in_flight.waiting == 0
    # And it still serves.
    last = Request(host, now + 1000.0, number)
    assert last.is_sent
