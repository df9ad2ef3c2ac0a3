"""What travels between a worker and the ledger."""

from threading import Lock

from throttle.client.fleet.call import Call, Report, news_from, packed
from throttle.client.fleet.steering import LAG, SETTLE, Steering
from throttle.client.pace import rest_seconds
from throttle.client.pace.aimd import AimdPace


class Hearing(AimdPace):
    """Notes in which order it is told what, and slows down with the first request after a refusal."""

    def __init__(self) -> None:
        super().__init__(rate=10.0)
        self.heard: list[tuple[str, float]] = []
        self.dropped_sent_at: float | None = None

    def sent(self, now: float, height: int) -> None:
        self.heard.append(("sent", round(now, 3)))
        if self.dropped_sent_at is not None:
            self.rate = 5.0

    def served(self, now: float, sent_at: float, height: int) -> None:
        self.heard.append(("served", round(now, 3)))

    def dropped(self, now: float, sent_at: float, height: int, told: float | None, in_a_row: int) -> float:
        self.heard.append((f"dropped, the {in_a_row}.", round(now, 3)))
        self.dropped_sent_at = sent_at
        return rest_seconds(told, in_a_row, first=0.7)


def report(age: float, *sightings: list[object], row: int = 0, is_first: bool = False) -> Report:
    return Report(age, row, is_first, [list(sighting) for sighting in sightings])


def test_ages_travel_and_never_times() -> None:
    call = Call("example.org", "me", 3, 1e9, [["sent", 1e9 - 0.25]], dropped_era=7, rest=2.0)
    arguments = call.arguments(0, "news")
    assert packed(call.sightings, call.at) == '[["sent",250000]]'
    assert arguments[:6] == [0, "me", 3, '[["sent",250000]]', 7, 2_000_000]
    assert not [part for part in arguments if str(part).startswith("1000000000")]


def test_a_hosts_name_may_hold_anything() -> None:
    assert news_from("rest 4 -1 0 a host with spaces:80").host == "a host with spaces:80"
    assert news_from("rest 4 -1 0 a").rest is None
    assert news_from("rest 4 0 0 a").rest == 0.0


def test_the_pace_hears_what_all_saw_in_order_of_time() -> None:
    pace = Hearing()
    steering = Steering(pace)
    steering.note(10.0, [report(0.0, ["sent", 500_000], ["served", 350_000, 90_000])])
    steering.note(10.0, [report(0.1, ["sent", 350_000], ["sent", 0])])
    steering.hear(10.0, 10.0)
    assert pace.heard == [("sent", 9.5), ("sent", 9.55), ("served", 9.65)]
    steering.hear(10.0 + LAG, 10.0)
    assert pace.heard[-1] == ("sent", 9.9)


def test_a_refusal_is_judged_when_all_have_told_what_led_to_it() -> None:
    pace = Hearing()
    steering = Steering(pace)
    dropped = ["dropped", 0, 50_000, None, 1]
    steering.note(10.0, [report(0.0, dropped, row=2, is_first=True)])
    steering.hear(10.0 + SETTLE, 10.05)
    assert pace.heard == []
    # Another's, told late; its worker had not heard of the refusal when the second left.
    steering.note(10.2, [report(0.0, ["sent", 300_000], ["sent", 150_000])])
    steering.hear(10.2, 10.0 + SETTLE)
    assert pace.heard == [("sent", 9.9), ("sent", 10.05), ("dropped, the 2.", 10.0)]
    assert steering.rest_least == 6.0


def test_a_refused_request_is_one_of_those_that_were_heard_however_late_its_answer_was_told() -> None:
    pace = Hearing()
    steering = Steering(pace)
    steering.note(10.0, [report(0.0, ["sent", 20_000], ["sent", 10_000])])
    steering.note(10.1, [report(0.0, ["dropped", 1_000, 119_002, None, 1], row=1, is_first=True)])
    steering.hear(10.3, 10.3)
    assert pace.dropped_sent_at == 9.98


def test_nothing_is_sent_at_the_old_rate_after_a_rest() -> None:
    pace = Hearing()
    steering = Steering(pace)
    steering.note(10.0, [report(0.0, ["sent", 50_000], ["dropped", 0, 50_000, 1.0, 1], row=1, is_first=True)])
    steering.hear(10.2, 10.2)
    assert pace.rate == 10.0
    assert steering.rate == 5.0
    steering.note(11.5, [report(0.0, ["sent", 0])])
    steering.hear(11.5 + LAG, 11.5)
    assert steering.rate == pace.rate == 5.0


def test_a_pace_that_cannot_be_copied_goes_on_at_its_own_rate() -> None:
    pace = Hearing()
    pace.lock = Lock()  # type: ignore[attr-defined]
    steering = Steering(pace)
    steering.note(10.0, [report(0.0, ["dropped", 0, 50_000, 1.0, 1], row=1, is_first=True)])
    steering.hear(10.2, 10.2)
    assert steering.rate == pace.rate == 10.0


def test_a_refusal_that_left_before_the_cut_teaches_nothing() -> None:
    pace = Hearing()
    steering = Steering(pace)
    steering.note(10.0, [report(0.0, ["dropped", 0, 50_000, None, 1], row=1, is_first=False)])
    steering.hear(20.0, 20.0)
    assert pace.heard == []
    assert steering.settles_at is None
