"""The evidence of what was sent stays bounded, and its sums true."""

import pytest

from throttle.client.pace.latency_limit import LatencyLimit
from throttle.client.pace.send_log import POINTS_MAX, SendLog


def test_a_host_asked_more_slowly_than_its_pace_for_ever_takes_no_more_memory() -> None:
    log = SendLog()
    log.begin(0.0, None)
    for turn in range(20_000):
        log.send(10.0 * turn, 2.0, turn > 0)
    assert len(log._points) <= POINTS_MAX + 2
    epoch = log.epoch(10.0 * 19_999, None)
    assert sum(requests for _, requests in epoch.pieces) == 19_999
    assert sum(seconds for seconds, _ in epoch.pieces) == pytest.approx(10.0 * 19_998)
    # What came last is told exactly: nothing for ten seconds, then one request.
    assert epoch.pieces[-3:] == [(0.0, 1), (10.0, 0), (0.0, 1)]


def test_a_clock_too_coarse_to_see_an_answer_take_time_does_no_harm() -> None:
    slots = LatencyLimit(4, 100)
    for turn in range(100):
        slots.sent(4)
        slots.served(float(turn), float(turn), 1)
    assert slots.limit >= 1
