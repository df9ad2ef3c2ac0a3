"""The verdict says what decided: to the site (`scope["throttle"].who`), in its counts, and in the log."""

import asyncio
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.asgi import CHROME, FEED_READER, GOOGLEBOT, ask
from tests.virtual_clock import in_virtual_time, now
from throttle import Limits, ThrottleMiddleware
from throttle.server.agents import CallerClass
from throttle.server.crawler_operators import Operator
from throttle.server.evidence import Finding
from throttle.server.refusal import Refusal
from throttle.server.verify import Verifier

BROWSERS_OWN = [("Sec-Fetch-Mode", "navigate")]


class Known(Verifier):
    """Knows the truth at once."""

    def __call__(self, operator: Operator, address: str) -> Finding:
        return {"192.0.2.1": Finding.VERIFIED, "192.0.2.2": Finding.FORGED}.get(address, Finding.UNKNOWN)


async def told(request: Request) -> Response:
    who = request.scope["throttle"].who(request.scope)
    return JSONResponse([who.caller_class.value, who.crawler, who.finding.value, who.why])


def site(**settings: Any) -> ThrottleMiddleware:
    app = Starlette(routes=[Route("/{path:path}", told)])
    limits = settings.pop("limits", Limits.modern())
    return ThrottleMiddleware(app, limits=limits, verify=Known(), clock=now, wall_clock=now, **settings)


@pytest.mark.parametrize(
    ("asked", "who"),
    [
        ({"agent": CHROME, "headers": BROWSERS_OWN}, ["browser", None, "unknown", "browser form"]),
        (
            {"agent": CHROME},
            ["assumed bot", None, "browser without fetch metadata", "browser without fetch metadata"],
        ),
        ({"agent": GOOGLEBOT}, ["known crawler", "Googlebot", "verified", "verified"]),
        ({"agent": GOOGLEBOT, "client": "192.0.2.2"}, ["known crawler", "Googlebot", "forged", "forged"]),
        ({"agent": GOOGLEBOT, "client": "192.0.2.3"}, ["known crawler", "Googlebot", "unknown", "table"]),
        ({"agent": FEED_READER}, ["assumed bot", None, "unknown", "table"]),
        ({"agent": ""}, ["known crawler", "-", "unknown", "blank"]),
        ({"agent": "Kiosk"}, ["browser", None, "unknown", "own list"]),
        ({"agent": CHROME, "headers": BROWSERS_OWN, "path": "/api"}, ["assumed bot", None, "unknown", "web api"]),
    ],
)
@in_virtual_time
async def test_the_site_is_told_who_asks_and_what_decided(asked: dict[str, Any], who: list[Any]) -> None:
    app = site(browsers=["Kiosk"], api_paths=["/api"])
    assert (await ask(app, **{"scheme": "https", "path": "/", **asked})).json == who


@in_virtual_time
async def test_the_answer_to_a_refusal_may_depend_on_it() -> None:
    heard = []

    def response(scope: Any, refusal: Refusal) -> None:
        heard.append(scope["throttle"].who(scope).why)

    app = site(response=response)
    for _ in range(2):
        await ask(app, agent=GOOGLEBOT, client="192.0.2.2")
    assert heard == ["forged"]


@in_virtual_time
async def test_what_became_of_requests_is_counted_by_what_decided() -> None:
    app = site()
    for client in ("192.0.2.1", "192.0.2.2", "192.0.2.2", "192.0.2.3"):
        await ask(app, agent=GOOGLEBOT, client=client)
        await asyncio.sleep(0.001)
    await ask(app, agent=CHROME, scheme="https")
    await ask(app, agent="curl/8.0")
    crawlers = app.counts()["known crawler"]
    assert crawlers["served"] == 3
    assert crawlers["refused"] == {"lone_crawler": 1}
    assert crawlers["findings"]["verified"]["served"] == 1
    assert crawlers["findings"]["forged"] == {"served": 1, "slept": 0, "hung_up": 0, "refused": {"lone_crawler": 1}}
    bots = app.counts()["assumed bot"]
    assert bots["served"] == 2
    assert bots["findings"]["browser without fetch metadata"]["served"] == 1
    assert "findings" not in app.counts()["browser"]


@in_virtual_time
async def test_by_the_pages_rules_nothing_but_the_agent_decides() -> None:
    app = site(limits=Limits())
    assert (await ask(app, agent=GOOGLEBOT, client="192.0.2.2")).json[2:] == ["unknown", "table"]
    assert app.counts()["known crawler"] == {"served": 1, "slept": 0, "hung_up": 0, "refused": {}}


def test_all_that_decides_has_a_name_for_people() -> None:
    assert {finding.value for finding in Finding} == {"unknown", "verified", "forged", "browser without fetch metadata"}
    assert {one.value for one in CallerClass} == {"browser", "known crawler", "assumed bot"}
