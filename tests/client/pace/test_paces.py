"""Each pace, told what happened by hand; the default one also against whole simulated hosts."""

from random import Random
from statistics import median

import pytest

from benchmarks.simulator.score import Score, run
from benchmarks.simulator.situations import FOURTEEN, Situation, bucket, workers
from throttle.client.pace.aimd import AimdPace
from throttle.client.pace.bucket_fit import Epoch, Fit
from throttle.client.pace.hold import HoldPace
from throttle.client.pace.interval import IntervalPace
from throttle.client.pace.latency_limit import LatencyLimit
from throttle.client.pace.quota import QuotaPace
from throttle.client.pace.refusal_plan import refusal_plan
from throttle.client.pace.seeking import SeekingPace
from throttle.client.pace.send_log import SendLog
from throttle.client.pace.share import SharePace
from throttle.client.pace.table import TablePace
from throttle.client.pace.window import WindowPace
from throttle.rate_limit_fields import Quota


def test_the_interval_shrinks_by_a_step_and_doubles_with_a_little_jitter() -> None:
    pace = IntervalPace(Random(1), interval=1.0)
    pace.served(0.0, 0.0, 1)
    assert pace.interval == pytest.approx(0.95)
    pace.dropped(1.0, 0.9, 1, None, 1)
    assert 1.9 <= pace.interval <= 1.9 * 1.1 + 1e-9
    for _ in range(10):
        pace.dropped(1.0, 0.9, 1, None, 1)
    assert pace.interval == 10.0
    for _ in range(500):
        pace.served(0.0, 0.0, 1)
    assert pace.rate == pytest.approx(10.0)


def test_the_table_starts_at_ten_gains_one_a_hundred_and_halves_again_in_a_row() -> None:
    pace = TablePace()
    for _ in range(200):
        pace.served(0.0, 0.0, 1)
    assert pace.rate == 12.0
    pace.dropped(0.0, 0.0, 1, None, 1)
    assert pace.rate == 6.0
    pace.dropped(0.5, 0.4, 1, None, 1)
    assert pace.rate == 1.5
    pace.dropped(100.0, 99.9, 1, None, 1)
    assert pace.rate == 1.0  # never below the least


def test_aimd_adds_in_time_and_halves_once_a_series() -> None:
    pace = AimdPace(rate=4.0, increase=0.5)
    for _ in range(4):
        pace.served(0.0, 0.0, 1)
    assert pace.rate == pytest.approx(4.5, rel=0.02)
    before = pace.rate
    pace.dropped(1.0, 0.9, 1, None, 1)
    pace.dropped(2.0, 1.9, 1, None, 2)
    assert pace.rate == before / 2


@pytest.mark.parametrize("pace", [AimdPace(), TablePace(), IntervalPace(Random(1)), SeekingPace(Random(1))])
def test_a_wait_that_is_told_is_never_cut_short(pace: AimdPace) -> None:
    pace.sent(0.0, 1)
    for in_a_row in (1, 2, 3):
        assert pace.dropped(0.1, 0.0, 1, 77.0, in_a_row) >= 77.0


def test_the_log_knows_what_led_to_a_refusal_and_what_left_after_it() -> None:
    log = SendLog()
    log.begin(10.0, 2.0)
    for number in range(20):
        log.send(10.0 + number * 0.5, 2.0, is_late=False)
    epoch = log.epoch(18.5, 1.0)  # the 18th of 20
    assert sum(requests for _, requests in epoch.pieces) == 17
    assert sum(seconds for seconds, _ in epoch.pieces) == pytest.approx(8.0)
    assert epoch.gap == pytest.approx(0.5)
    assert epoch.rest == 2.0


def test_a_countdown_measures_what_a_window_holds_and_it_is_spent_evenly() -> None:
    window = WindowPace()
    window.begin(0.0)
    assert not window.refused(10.0, 50.0, pace=100.0, accepted=480)  # as well a lock-out
    assert window.refused(75.0, 45.0, pace=50.0, accepted=480)
    assert window.rate == pytest.approx(480 / 60, rel=0.005)
    assert window.rate < 480 / 60
    for request in range(480):
        window.sent(120.0 + request / 8, request)
    assert window.refused(179.4, 1.0, pace=8.2, accepted=475)
    assert window.rate == pytest.approx(480 / 60, rel=0.005)


def test_a_window_that_slides_is_still_the_same_when_it_refuses_in_its_midst() -> None:
    window = WindowPace()
    window.begin(0.0)
    window.refused(2.0, 13.0, pace=16.0, accepted=10)
    assert window.refused(20.0, 10.0, pace=3.0, accepted=10)
    rate = window.rate
    for request in range(127):
        window.sent(30.0 + request / 0.67, request)
    assert window.refused(221.0, 2.0, pace=0.69, accepted=126)
    assert window.rate == rate


@pytest.mark.parametrize(("told", "length"), [(45.6, 60), (44.4, 60), (285.0, 300)])
def test_a_window_is_as_long_as_people_write_it_down(told: float, length: float) -> None:
    window = WindowPace()
    window.begin(0.0)
    window.refused(10.0, 50.0, pace=100.0, accepted=480)
    assert window.refused(75.0, told, pace=50.0, accepted=480)
    assert window.rate == pytest.approx(480 / length, rel=0.005)


def test_near_the_end_of_what_may_be_a_window_requests_go_one_at_a_time() -> None:
    window = WindowPace()
    window.begin(0.0)
    window.refused(10.0, 50.0, pace=100.0, accepted=480)
    near = []
    for request in range(1, 600):
        window.sent(60.0 + request / 50, request)
        near.append(window.is_near)
    assert near.index(True) == pytest.approx(455, abs=3)
    assert not near[-1]  # it held more: it is none


def test_a_known_window_is_tried_for_more_after_three_of_them() -> None:
    window = WindowPace()
    window.begin(0.0)
    window.refused(10.0, 50.0, pace=100.0, accepted=480)
    window.refused(75.0, 45.0, pace=50.0, accepted=480)
    rates = []
    for request in range(480 * 6):
        window.sent(120.0 + request / 8, request)
        rates.append(window.rate)
    assert rates[480 * 3 - 1] == rates[0]
    assert rates[-1] > 1.1 * rates[0]
    assert window.refused(500.0, 1.0, pace=9.0, accepted=100)  # it holds no more
    assert window.rate == rates[0]
    window.refused(560.0, 1.0, pace=8.0, accepted=100)  # neither its count nor its end
    assert window.rate is None


def test_a_lock_out_tells_the_same_wait_however_many_were_accepted() -> None:
    window = WindowPace()
    window.begin(0.0)
    assert not window.refused(10.0, 30.0, pace=8.0, accepted=80)
    assert not window.refused(90.0, 30.0, pace=8.0, accepted=300)


def test_two_quotas_spent_at_once_tell_the_same_wait_and_are_the_same() -> None:
    window = WindowPace()
    window.begin(0.0)
    assert not window.refused(8.0, 52.0, pace=300.0, accepted=480)
    assert window.refused(68.0, 52.0, pace=60.0, accepted=484)


def test_a_short_wait_is_no_countdown() -> None:
    window = WindowPace()
    window.begin(0.0)
    assert not window.refused(10.0, 1.0, pace=8.0, accepted=80)


def test_a_quota_is_spread_over_its_time_and_nothing_is_sent_when_it_is_spent() -> None:
    quota = QuotaPace()
    quota.told(0.0, Quota(40, 20.0), in_flight=0)
    assert quota.is_told(1.0)
    assert quota.rate(0.0) == pytest.approx(2.0)
    quota.told(0.0, Quota(40, 20.0), in_flight=20)  # these are not yet counted by the host
    assert quota.rate(0.0) == pytest.approx(1.0)
    quota.sent()
    quota.told(1.0, Quota(0, 19.0), in_flight=0)
    assert quota.rest == 19.0
    assert not quota.is_told(60.0)


def known(rate: float, spread: float = 0.02, burst: float = 8.0) -> Fit:
    return Fit((rate * (1 - spread / 2), rate, rate, rate, rate * (1 + spread / 2)), burst, 4)


def test_the_dearer_a_refusal_the_rarer_it_is_sought() -> None:
    plans = [refusal_plan(known(8.0), rest, refusals=3, served=10_000) for rest in (1.0, 10.0, 60.0)]
    assert plans[0] < plans[1] < plans[2]


def test_an_unsure_fit_is_worth_an_earlier_refusal() -> None:
    assert refusal_plan(known(8.0, 0.5), 1.0, 3, 10_000) < refusal_plan(known(8.0), 1.0, 3, 10_000)


@pytest.mark.parametrize(("rate", "share"), [(0.5, 0.005), (2.5, 0.0095), (8.0, 0.0055)])
def test_refusals_are_earned_by_what_is_served(rate: float, share: float) -> None:
    served = refusals = 0
    while served < 3000:
        refusals += 1
        served += int(refusal_plan(known(rate, 0.5), 1.0, refusals, served))
    assert refusals <= 3 + share * served


def test_a_wide_fit_is_climbed_through_from_below_and_a_sure_one_is_kept_to() -> None:
    hold = HoldPace()
    hold.fit, hold.plan = known(8.0, 1.0), 40.0
    rates = []
    for _ in range(40):
        hold.sent(0.1, is_on_time=True)
        rates.append(hold.rate(8.0, 0.1))
    assert rates == sorted(rates)
    assert rates[0] < 8.5
    assert rates[-1] > 11.0
    hold.fit = known(8.0, burst=1000.0)
    hold.begin(0.0)
    hold.sent(0.1, is_on_time=True)
    assert 7.8 < hold.rate(8.0, 0.1) < 8.1


def test_a_bucket_of_one_token_is_held_from_below_for_most_of_a_plan() -> None:
    hold = HoldPace()
    hold.fit, hold.plan = known(8.0, 0.08, burst=1.0), 100.0
    rates = []
    for _ in range(100):
        hold.sent(0.125, is_on_time=True)
        rates.append(hold.rate(8.0, 0.1))
    assert max(rates[:60]) < 8.0
    assert rates[-1] >= 8.0


def test_the_longer_a_refusal_shuts_the_host_the_more_doubt_is_lived_with() -> None:
    hold = HoldPace()
    hold.fit = known(8.0, 0.4)
    rates = []
    for rest in (1.0, 5.0, 30.0):
        hold.make_plan(rest, refusals=2, served=500)
        hold.begin(0.0)
        for _ in range(int(0.9 * hold.plan)):
            hold.sent(0.125, is_on_time=True)
        rates.append(hold.rate(8.0, 0.1))
    assert rates[0] > 9.0
    assert rates[1] > 9.0
    assert rates[2] < 8.0


def test_what_a_rest_refills_is_counted_once() -> None:
    """So the refusal that is sought comes at the plan's end, where it is known that it was sought."""
    pace = SeekingPace(Random(1))
    bucket_at, level = 0.0, 8.0
    now = at = 0.0
    shares = []
    for _ in range(2500):
        now = max(now + 1 / pace.rate, at)
        level = min(8.0, level + 8.0 * (now - bucket_at))
        bucket_at = now
        pace.sent(now, 1)
        if level >= 1:
            level -= 1
            pace.served(now + 0.001, now, 1)
        else:
            shares.append(pace._log.sent / max(1.0, pace._hold.plan))
            at = now + pace.dropped(now + 0.001, now, 1, 1.0, 1)
    assert median(shares[3:]) == pytest.approx(1.08, abs=0.05)


def test_a_lock_out_that_scouts_have_measured_makes_the_next_look_rare() -> None:
    pace = SeekingPace(Random(1))
    now = 0.0
    for _ in range(20):
        now += 1 / pace.rate
        pace.sent(now, 1)
        pace.served(now + 0.05, now, 1)
    pace.sent(now + 0.1, 1)
    pace.dropped(now + 0.15, now + 0.1, 1, None, 1)
    before = pace._hold.plan
    pace.sent(now + 0.5, 1)
    pace.dropped(now + 0.55, now + 0.5, 1, None, 2)
    pace.sent(now + 30.0, 1)
    pace.served(now + 30.1, now + 30.0, 1)
    assert pace._hold.plan > 3 * before


def test_when_nothing_refuses_the_pace_accelerates_and_stops_for_bursts_to_be_spent() -> None:
    hold = HoldPace()
    hold.fit, hold.plan = known(8.0), 20.0
    pace = 8.0
    for _ in range(60):
        hold.sent(1 / pace, is_on_time=True)
        pace = hold.rate(pace, 0.05)
    assert pace > 15.0
    assert pace < 30.0


def test_a_refusal_of_slots_that_was_one_of_the_pace_and_contradicts_the_first_fit_is_borne() -> None:
    hold = HoldPace()
    hold.remember(Epoch(None, [(10.0, 20.0)], 0.5, None))  # no plan was made of it
    hold.refused(Epoch(1.0, [(10.0, 1000.0)], 0.01, None), 1000)
    assert hold.fit is not None
    assert not hold.is_strange


def test_in_company_growth_is_even_in_time_and_a_refusal_cuts_a_share() -> None:
    share = SharePace()
    assert share.refused(8.0, is_strange=False, is_settled=False, likely=6.0) is None
    assert share.refused(8.0, is_strange=True, is_settled=False, likely=1.0) == pytest.approx(8.0 * 0.55)
    assert share.rate(3.0, 1.0) - 3.0 == pytest.approx(share.rate(2.5, 1.0) - 2.5)
    assert (share.rate(12.0, 1.0) - 12.0) / 12.0 < (share.rate(6.0, 1.0) - 6.0) / 6.0


def test_a_second_contradiction_at_once_is_a_limit_that_fell() -> None:
    share = SharePace()
    share.refused(8.0, is_strange=True, is_settled=False, likely=1.0)
    assert share.refused(4.4, is_strange=True, is_settled=False, likely=1.5) == 1.5


def test_a_later_contradiction_suggests_only_what_the_others_have_left() -> None:
    share = SharePace()
    share.refused(8.0, is_strange=True, is_settled=False, likely=1.0)
    share.refused(4.4, is_strange=True, is_settled=False, likely=1.5)
    assert share.refused(4.0, is_strange=True, is_settled=False, likely=0.5) == pytest.approx(4.0 * 0.55)


def test_limits_that_go_up_and_down_are_company_and_one_that_moved_is_not() -> None:
    def found(*rates: float) -> SharePace:
        share = SharePace()
        for rate in rates:
            share.refused(rate, is_strange=False, is_settled=False, likely=rate)
        return share

    assert found(10.0, 17.0, 14.0, 14.0, 21.0).is_sharing
    assert not found(10.0, 10.5, 9.8, 10.4, 9.9, 10.2).is_sharing  # noise
    assert not found(10.0, 20.0, 20.0, 40.0, 39.0, 20.0).is_sharing  # up, and once down
    assert not found(10.0, 12.0, 10.0, 10.0, 10.1, 10.0, 9.9, 12.0).is_sharing  # so long ago that it says nothing


def test_a_refusal_that_was_an_outage_starts_no_sharing() -> None:
    share = SharePace()
    share.refused(8.0, is_strange=True, is_settled=False, likely=1.0)
    share.recall()
    assert not share.is_sharing


def test_who_shares_holds_again_when_one_bucket_explains_three_refusals() -> None:
    share = SharePace()
    share.refused(8.0, is_strange=True, is_settled=False, likely=6.0)
    rates = [share.refused(4.0, is_strange=False, is_settled=True, likely=6.0) for _ in range(3)]
    assert rates[0] is not None
    assert rates[1] is not None
    assert rates[2] is None


def test_slots_shrink_when_the_host_gets_slow_and_not_when_it_is_only_busy() -> None:
    for latency, shrinks in ((lambda height: 0.1, False), (lambda height: 0.1 * max(1, height / 3), True)):
        limit, now = LatencyLimit(4, 100), 0.0
        for turn in range(2000):
            height = 1 + turn % int(limit.limit)
            limit.sent(height)
            now += 0.01
            limit.served(now + latency(height), now, height)
        assert (limit.limit < 15) is shrinks


def test_a_refusal_at_a_height_seldom_reached_is_one_of_slots_unless_the_next_comes_at_once() -> None:
    limit = LatencyLimit(10, 100)
    for turn in range(100):
        limit.served(turn * 0.1 + 0.1, turn * 0.1, 2)
    assert limit.refused(11.0, 6)
    assert limit.limit == 5
    assert not limit.refused(11.5, 5)
    assert limit.was_wrong
    assert limit.limit == 10


@pytest.mark.parametrize(("held_back", "is_slots"), [(0.9, True), (0.3, False)])
def test_many_slots_are_known_by_refusals_at_the_limit_that_holds_the_requests_back(
    held_back: float, is_slots: bool
) -> None:
    limit, random = LatencyLimit(20, 100), Random(1)
    assert limit.refused(0.0, 21)  # the start is over
    limit.limit = 20
    for turn in range(1, 1000):
        height = 20 if random.random() < held_back else 4
        limit.served(turn * 0.1 + 0.1, turn * 0.1, height)
    assert limit.refused(101.0, 20) is is_slots


def seek(situation: Situation, caller: int, random: Random) -> SeekingPace:
    return SeekingPace(random)


def situation(name: str) -> Score:
    return run(next(found for found in FOURTEEN if found.name == name), seek, seed=11)


def test_a_hidden_rate_is_found_and_kept() -> None:
    score = situation("8/s, 429 told")
    assert score.goodput > 0.95
    assert score.refused < 0.01


def test_fields_are_obeyed_without_a_refusal() -> None:
    score = situation("480 a minute, fields")
    assert score.goodput > 0.99
    assert score.refused == 0


def test_a_host_that_slows_before_it_refuses_is_kept_busy_and_not_slow() -> None:
    score = situation("knee: 4 and a queue")
    assert score.goodput > 0.95
    assert score.p95 < 1.5


def test_slots_are_told_from_a_rate() -> None:
    score = run(workers("slots", 8, 0), seek, seed=3)
    assert score.goodput > 0.93
    assert score.refused < 0.005


def test_a_step_down_is_followed_within_seconds() -> None:
    score = situation("8→2/s")
    assert score.settle is not None
    assert score.settle < 20
    assert score.refused < 0.02


def test_an_outage_is_probed_gently_and_its_end_noticed() -> None:
    score = situation("outage 60 s")
    assert score.probes is not None
    assert score.back is not None
    assert score.probes <= 0.2
    assert score.back < 7


def test_the_simulation_is_repeatable() -> None:
    short = bucket("short", 8, 8, seconds=60.0)
    assert run(short, seek, 1) == run(short, seek, 1)
