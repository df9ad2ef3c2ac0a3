"""What the crowd reads from an answer, by the throttle's own answers and by hostile ones."""

import pytest

from tests import virtual_clock
from tests.asgi import CHROME, ask
from throttle import Limits, ThrottleMiddleware
from throttle.load.agents import ACCEPT_OF_PEOPLE, ACCEPT_OF_ROBOTS
from throttle.load.answer import Answer, read_answer


async def plain_site(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"a page"})


def second_answer(agent: str, accept: str) -> Answer:
    site = ThrottleMiddleware(plain_site, limits=Limits(stack_hits=1), exempt_prefixes=[], clock=virtual_clock.now)

    async def two():
        await ask(site, agent=agent, headers={"accept": accept})
        return await ask(site, agent=agent, headers={"accept": accept})

    second = virtual_clock.run(two())
    fields = {name.encode(): value.encode() for name, value in second.fields.items()}
    return read_answer(second.status, fields, second.body)


@pytest.mark.parametrize(("agent", "accept"), [("curl/8", ACCEPT_OF_ROBOTS), (CHROME, ACCEPT_OF_PEOPLE)])
def test_the_rule_that_refused_is_told_to_robots_by_problem_json_and_to_people_by_ratelimit(agent, accept):
    answer = second_answer(agent, accept)
    assert answer.refused_by == "hit_stack"
    assert answer.retry_after == 15


def test_a_refusal_that_names_no_rule_is_counted_as_unnamed():
    assert read_answer(503, {}, b"").refused_by == "unnamed"
    assert read_answer(429, {b"ratelimit": b'"a";r=3;t=1, "b";r=10;t=1'}, b"").refused_by == "unnamed"


@pytest.mark.parametrize(
    "body", [b"", b"\xff", b"[]", b"{}", b'{"violated-policies": []}', b'{"violated-policies": [1]}']
)
def test_a_broken_problem_document_is_a_refusal_all_the_same(body):
    assert read_answer(503, {b"content-type": b"application/problem+json"}, body).refused_by == "unnamed"


def test_an_error_of_the_server_is_a_failure_and_a_404_is_served():
    assert read_answer(500, {}, b"").failed == "status 500"
    assert read_answer(404, {}, b"").is_served
    assert read_answer(304, {}, b"").is_served


def test_the_time_slept_is_read_in_seconds():
    assert read_answer(200, {b"server-timing": b'db;dur=3, throttle;desc="slept";dur=1500'}, b"").slept == 1.5
    assert read_answer(200, {b"server-timing": b"db;dur=3"}, b"").slept is None


@pytest.mark.parametrize("value", [b"soon", b"-1", b"9" * 400, "٣".encode(), b""])
def test_a_retry_after_that_is_no_number_of_seconds_is_none(value):
    assert read_answer(503, {b"retry-after": value}, b"").retry_after is None
