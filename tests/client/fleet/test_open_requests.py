"""How many of the fleet's requests were open when one left."""

from throttle.client.fleet.open_requests import OpenRequests


def test_a_request_whose_end_is_not_told_yet_is_presumed_to_take_as_long_as_others() -> None:
    open_requests = OpenRequests()
    assert open_requests.sent(10.0, 100) == 1
    open_requests.served(10.2, 0.2)
    assert [open_requests.sent(11.0 + 0.05 * number, 100) for number in range(6)] == [1, 2, 3, 4, 4, 4]


def test_a_height_is_by_what_is_known_when_it_is_asked_for() -> None:
    open_requests = OpenRequests()
    open_requests.sent(10.0, 100)
    open_requests.sent(10.01, 100)
    assert open_requests.sent(10.05, 100) == 3
    open_requests.served(10.02, 0.02)  # told late: the first had ended when the third left
    assert open_requests.refused(10.06, 0.01) == (10.05, 2)


def test_a_height_is_no_more_than_might_be_open_then() -> None:
    open_requests = OpenRequests()
    heights = [open_requests.sent(10.0 + number / 1000, 2) for number in range(4)]
    assert heights == [1, 2, 2, 2]


def test_an_answer_that_belongs_to_nothing_is_taken_as_it_is() -> None:
    open_requests = OpenRequests()
    assert open_requests.refused(10.0, 0.5) == (9.5, 1)
    assert open_requests.served(10.0, 0.5) == 1
