"""Whom the site has met, and whom it forgets when a million strangers come."""

from throttle.server.acquaintances import Acquaintance, Acquaintances

SECOND = 1_000_000
HOUR = 3600 * SECOND
SINCE = Acquaintance.of(3, 10, 86_400)
START = 1_000 * SECOND


def met(acquaintances: Acquaintances, key: int, *seconds: float) -> bool:
    """Whether the caller is known after these visits, at the last of them."""
    for second in seconds:
        acquaintances.note(key, START + round(second * SECOND), SINCE)
    return acquaintances.knows(key, START + round(seconds[-1] * SECOND), SINCE)


def test_a_caller_is_known_after_three_visits() -> None:
    assert not met(Acquaintances(), 7, 0, 10)
    assert met(Acquaintances(), 7, 0, 10, 20)


def test_visits_count_only_when_they_are_ten_seconds_apart() -> None:
    assert not met(Acquaintances(), 7, *range(20))
    assert not met(Acquaintances(), 7, 0, 9.999999, 19.999998)
    assert met(Acquaintances(), 7, *range(21))


def test_a_visit_is_forgotten_after_a_day() -> None:
    acquaintances = Acquaintances()
    assert met(acquaintances, 7, 0, 10, 20)
    assert acquaintances.knows(7, START + 24 * HOUR - 1, SINCE)
    assert not acquaintances.knows(7, START + 24 * HOUR, SINCE)


def test_who_comes_every_hour_stays_known() -> None:
    acquaintances = Acquaintances()
    for hour in range(100):
        assert acquaintances.knows(7, START + hour * HOUR, SINCE) is (hour >= 3)
        acquaintances.note(7, START + hour * HOUR, SINCE)


def test_a_stranger_is_not_known() -> None:
    assert not Acquaintances().knows(7, START, SINCE)


def test_an_acquaintance_of_a_minute_ago_is_not_forgotten_because_a_million_strangers_came() -> None:
    acquaintances = Acquaintances(max_callers=3 * 1024)
    for friend in range(300):
        met(acquaintances, friend * 7919, 0, 10, 20)
    for stranger in range(200_000):
        acquaintances.note(1_000_003 * stranger + 5, START + 21 * SECOND + stranger * 60, SINCE)
    assert len(acquaintances) <= 3 * 1024
    later = START + 80 * SECOND
    assert all(acquaintances.knows(friend * 7919, later, SINCE) for friend in range(300))
