"""What the middleware answers, and whom it leaves alone."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from tests.asgi import CHROME, FEED_READER, GOOGLEBOT, Answer, Request, ask, http_scope
from tests.server.site import Gate, site
from tests.virtual_clock import now, run
from throttle import Limits, MemoryStore, Refusal, ThrottleMiddleware
from throttle.server.exempt import Exempt


async def ask_times(app: Any, times: int, **scope: Any) -> list[Answer]:
    return [await ask(app, **scope) for _ in range(times)]


def statuses(answers: list[Answer]) -> list[int | None]:
    return [answer.status for answer in answers]


def test_a_browser_is_refused_at_its_eleventh_page_within_15_seconds() -> None:
    async def story() -> None:
        app = site()
        assert statuses(await ask_times(app, 11)) == [200] * 10 + [503]
        await asyncio.sleep(15)
        assert (await ask(app)).status == 200

    run(story())


def test_two_people_at_one_address_with_different_agents_do_not_share_a_stack() -> None:
    async def story() -> None:
        app = site()
        await ask_times(app, 10)
        assert (await ask(app, agent=CHROME.replace("143", "144"))).status == 200

    run(story())


def test_a_known_crawler_waits_30_seconds_at_its_address_and_2_seconds_for_any_other() -> None:
    async def story() -> None:
        app = site()
        assert (await ask(app, agent=GOOGLEBOT)).status == 200
        alone = await ask(app, agent=GOOGLEBOT)
        assert (alone.status, alone.retry_after) == (503, 30)
        any_other = await ask(app, agent="bingbot/2.0", client="192.0.2.9")
        assert (any_other.status, any_other.retry_after) == (503, 2)
        await asyncio.sleep(2)
        assert (await ask(app, agent="bingbot/2.0", client="192.0.2.9")).status == 200

    run(story())


def test_who_comes_back_after_the_seconds_told_is_served() -> None:
    async def story() -> None:
        app = site()
        await ask_times(app, 4)
        await asyncio.sleep(3.7)
        refused = (await ask_times(app, 7))[-1]
        assert refused.status == 503
        await asyncio.sleep(refused.retry_after)
        assert (await ask(app)).status == 200

    run(story())


def test_a_logged_in_user_counts_as_such_wherever_the_request_comes_from() -> None:
    async def story() -> None:
        app = site(identify=lambda scope: dict(scope["headers"]).get(b"x-verified-user", b"").decode() or None)
        for place in range(10):
            assert (await ask(app, client=f"192.0.2.{place}", headers={"X-Verified-User": "ada"})).status == 200
        assert (await ask(app, client="192.0.2.99", headers={"X-Verified-User": "ada"})).status == 503
        assert (await ask(app, client="192.0.2.99", headers={"X-Verified-User": "bob"})).status == 200

    run(story())


def test_those_whom_identify_gives_an_empty_name_are_not_one_user() -> None:
    async def story() -> None:
        app = site(identify=lambda scope: "", limits=Limits(stack_hits=1))
        assert [(await ask(app, client=f"192.0.2.{place}")).status for place in range(3)] == [200] * 3

    run(story())


def test_an_agent_on_the_list_is_exempt_from_the_hit_stack() -> None:
    async def story() -> None:
        app = site(limits=Limits(stack_exempt_agents=("OwnMonitor",)))
        assert statuses(await ask_times(app, 30, agent="ownmonitor/1.0")) == [200] * 30

    run(story())


def test_who_calls_the_web_api_is_held_to_the_load_whatever_its_agent() -> None:
    async def story() -> None:
        gate = Gate()
        app = site(gate, limits=Limits(load_max=1, sleeping_max=0), api_paths=["/api"])
        running = Request(app, http_scope("/slow"))
        await asyncio.sleep(0)
        assert (await ask(app, "/api/papers")).status == 503
        assert (await ask(app, "/api")).status == 503
        assert (await ask(app, "/apis")).status == 200
        gate.opened.set()
        await running.finished()

    run(story())


def test_who_shows_an_api_token_is_an_api_client_too() -> None:
    async def story() -> None:
        gate = Gate()
        has_token = lambda scope: any(name == b"authorization" for name, _ in scope["headers"])  # noqa: E731
        app = site(gate, limits=Limits(load_max=1, sleeping_max=0), is_web_api=has_token)
        running = Request(app, http_scope("/slow"))
        await asyncio.sleep(0)
        assert (await ask(app, headers={"Authorization": "Bearer x"})).status == 503
        assert (await ask(app)).status == 200
        gate.opened.set()
        await running.finished()

    run(story())


# The answer


def test_a_refused_browser_reads_a_page_that_says_when_to_return() -> None:
    async def story() -> None:
        refused = (await ask_times(site(), 11))[-1]
        assert refused.fields["content-type"] == "text/html; charset=utf-8"
        assert refused.fields["cache-control"] == "no-store"
        assert refused.fields["refresh"] == refused.fields["retry-after"] == "15"
        assert b"15 seconds" in refused.body
        assert len(refused.body) == int(refused.fields["content-length"])

    run(story())


def test_who_asks_for_json_reads_a_problem_document() -> None:
    async def story() -> None:
        refused = (await ask_times(site(), 11, headers={"Accept": "application/json"}))[-1]
        assert refused.fields["content-type"] == "application/problem+json"
        assert refused.json["status"] == 503
        assert refused.json["violated-policies"] == ["hit_stack"]
        assert "refresh" not in refused.fields

    run(story())


def test_a_program_reads_plain_text_and_no_refresh() -> None:
    async def story() -> None:
        refused = (await ask_times(site(), 11, agent=FEED_READER))[-1]
        assert refused.fields["content-type"] == "text/plain; charset=utf-8"
        assert "refresh" not in refused.fields
        assert b"15 seconds" in refused.body

    run(story())


def test_a_refused_head_has_no_body_and_a_refused_post_no_refresh() -> None:
    async def story() -> None:
        app = site()
        await ask_times(app, 10)
        head = await ask(app, method="HEAD")
        assert (head.status, head.body) == (503, b"")
        assert int(head.fields["content-length"]) > 0
        assert "refresh" not in (await ask(app, method="POST")).fields

    run(story())


def test_the_status_may_differ_by_reason() -> None:
    async def story() -> None:
        app = site(status={"hit_stack": 429}, limits=Limits(stack_hits=1))
        assert statuses(await ask_times(app, 2)) == [200, 429]
        await ask(app, agent=GOOGLEBOT)
        assert (await ask(app, agent=GOOGLEBOT)).status == 503

    run(story())


def test_the_sites_own_answer_keeps_the_fields_that_every_refusal_carries() -> None:
    def own(scope: Any, refusal: Refusal) -> Response | None:
        return JSONResponse({"why": refusal.reason}, status_code=refusal.status) if scope["path"] == "/own" else None

    async def async_own(scope: Any, refusal: Refusal) -> Response | None:
        return own(scope, refusal)

    async def story(hook: Any) -> None:
        app = site(response=hook, limits=Limits(stack_hits=1))
        await ask(app, "/own")
        refused = await ask(app, "/own")
        assert (refused.status, refused.json) == (503, {"why": "hit_stack"})
        assert refused.retry_after == 15
        assert refused.fields["cache-control"] == "no-store"
        assert b"<h1>" in (await ask(app, "/other")).body

    run(story(own))
    run(story(async_own))


def test_one_response_of_the_sites_own_tells_each_refusal_its_own_wait() -> None:
    async def story() -> None:
        full = PlainTextResponse("full", status_code=503)
        app = site(response=lambda scope, refusal: full)
        await ask(app, agent=GOOGLEBOT)
        assert (await ask(app, agent=GOOGLEBOT)).retry_after == 30
        await asyncio.sleep(10)
        assert (await ask(app, agent=GOOGLEBOT)).retry_after == 20

    run(story())


def test_served_and_refused_answers_tell_what_is_left() -> None:
    async def story() -> None:
        app = site()
        first = await ask(app)
        assert first.fields["ratelimit-policy"] == '"hit_stack";q=10;w=15'
        assert first.fields["ratelimit"] == '"hit_stack";r=9;t=15'
        await asyncio.sleep(5)
        assert (await ask(app)).fields["ratelimit"] == '"hit_stack";r=8;t=10'
        refused = (await ask_times(app, 9))[-1]
        assert refused.status == 503
        assert refused.fields["ratelimit"].startswith('"hit_stack";r=0;t=')
        crawler = await ask(app, agent=GOOGLEBOT)
        assert crawler.fields["ratelimit"] == ('"lone_crawler";r=0;t=30, "all_crawlers";r=0;t=2, "hit_stack";r=9;t=15')

    run(story())


def test_one_switch_turns_the_rate_limit_fields_off() -> None:
    async def story() -> None:
        answers = await ask_times(site(rate_limit_fields=False), 11)
        assert not any("ratelimit" in name for answer in answers for name in answer.fields)

    run(story())


def test_no_answer_shares_its_list_of_fields_with_another() -> None:
    async def story() -> None:
        app = site(limits=Limits(stack_hits=1))
        await ask(app)
        first = await ask(app)
        first.messages[0]["headers"].append((b"added", b"by other middleware"))
        assert "added" not in (await ask(app)).fields

    run(story())


def test_an_application_that_sends_one_message_again_and_again_finds_it_unchanged() -> None:
    start = {"type": "http.response.start", "status": 200, "headers": []}

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        await send(start)
        await send({"type": "http.response.body", "body": b""})

    async def story() -> None:
        app = ThrottleMiddleware(inner, clock=now)
        assert [(await ask(app)).fields["ratelimit"] for _ in range(2)] == [
            '"hit_stack";r=9;t=15',
            '"hit_stack";r=8;t=15',
        ]
        assert start["headers"] == []

    run(story())


# Who is left alone


def test_promise_10_robots_txt_is_always_served_in_a_pause_too_and_so_are_health_checks() -> None:
    async def story() -> None:
        app = site(limits=Limits(stack_hits=1, paused=True))
        for path in ("/robots.txt", "/healthz"):
            assert statuses(await ask_times(app, 5, path=path)) == [200] * 5
        own = site(limits=Limits(stack_hits=1), exempt_paths=["/up"])
        assert statuses(await ask_times(own, 3, path="/up")) == [200] * 3
        assert statuses(await ask_times(own, 3, path="/robots.txt")) == [200] * 3
        assert statuses(await ask_times(own, 3, path="/healthz")) == [200, 503, 503]

    run(story())


def test_mounted_static_files_are_exempt_and_what_looks_like_one_is_not(tmp_path: Path) -> None:
    app = Starlette(routes=[Mount("/static", StaticFiles(directory=tmp_path)), Mount("/pages", Starlette())])
    is_exempt = Exempt()
    assert is_exempt(http_scope("/static/site.css", app=app))
    assert is_exempt(http_scope("/below/static/site.css", app=app, root_path="/below"))
    for path in ("/search.css", "/static", "/staticky/a", "/pages/a.css", "/a/static/b.css", "//static/b.css"):
        assert not is_exempt(http_scope(path, app=app, headers={"Sec-Fetch-Dest": "style"})), path
    named = Exempt(prefixes=["/files"])
    assert named(http_scope("/files/a", app=app))
    assert not named(http_scope("/static/site.css", app=app))


def test_static_files_are_exempt_wherever_they_are_mounted_and_wherever_the_throttle_stands(tmp_path: Path) -> None:
    def mounted(path: str) -> Mount:
        return Mount(path, StaticFiles(directory=tmp_path), middleware=[Middleware(GZipMiddleware)])

    inner = Starlette(
        routes=[Mount("/docs", routes=[mounted("/static"), mounted("/")]), mounted("/files"), mounted("/")]
    )
    for app in (inner, GZipMiddleware(inner)):
        is_exempt = ThrottleMiddleware(app)._book.is_exempt
        assert is_exempt(http_scope("/docs/static/a"))
        assert is_exempt(http_scope("/files/a"))
        for path in ("/a", "/docs/a", "/static/a"):
            assert not is_exempt(http_scope(path)), path


def test_a_cors_preflight_is_exempt_and_a_bare_options_is_not() -> None:
    async def story() -> None:
        app = site(limits=Limits(stack_hits=1))
        preflight = {"Origin": "https://reader.example", "Access-Control-Request-Method": "POST"}
        assert statuses(await ask_times(app, 3, method="OPTIONS", headers=preflight)) == [200] * 3
        assert statuses(await ask_times(app, 2, method="OPTIONS")) == [200, 503]

    run(story())


def test_a_pause_refuses_all_but_the_exempt_and_tells_the_time_left() -> None:
    async def story() -> None:
        store = MemoryStore(clock=asyncio.get_running_loop().time)
        app = site(store=store, limits=Limits(pause_exempt=("198.51.100.0/24",)))
        store.pause(90)
        refused = await ask(app)
        assert (refused.status, refused.retry_after) == (503, 90)
        assert b"maintenance" in refused.body
        assert (await ask(app, client="198.51.100.7")).status == 200
        assert (await ask(app, client="::ffff:198.51.100.7")).status == 200
        await asyncio.sleep(89)
        assert (await ask(app)).retry_after == 1
        await asyncio.sleep(1)
        assert (await ask(app)).status == 200
        store.pause()
        assert (await ask(app)).retry_after == 300
        store.resume()
        assert (await ask(app)).status == 200

    run(story())


def test_an_early_pause_looks_at_nobody() -> None:
    async def story() -> None:
        def identify(scope: Any) -> None:
            raise AssertionError("looked at the caller")

        app = site(limits=Limits(paused=True, pause_early=True, pause_exempt=("192.0.2.1",)), identify=identify)
        assert (await ask(app)).status == 503
        assert (await ask(app, "/robots.txt")).status == 200

    run(story())


def test_other_scope_types_pass_untouched() -> None:
    seen = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    async def story() -> None:
        app = ThrottleMiddleware(inner)
        await app({"type": "lifespan"}, None, None)  # type: ignore[arg-type]
        await app({"type": "other"}, None, None)  # type: ignore[arg-type]

    run(story())
    assert seen == ["lifespan", "other"]


def test_a_refused_websocket_gets_a_denial_where_the_server_can_and_else_a_close() -> None:
    async def story() -> None:
        app = site(limits=Limits(paused=True))
        scope = http_scope("/ws", type="websocket", extensions={"websocket.http.response": {}})
        denied = Request(app, scope)
        assert (await denied.finished()).status == 503
        assert denied.answer.retry_after == 300
        closed = Request(app, http_scope("/ws", type="websocket"))
        await closed.finished()
        assert closed.answer.messages[0]["type"] == "websocket.close"
        assert closed.answer.messages[0]["code"] == 1013

    run(story())


# Settings


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"store": "postgres://x"}, "store='postgres://x'"),
        ({"status": 200}, "status=200"),
        ({"trusted_proxies": "10.0.0.0/8"}, "trusted_proxies='10.0.0.0/8'"),
        ({"trusted_proxies": ["10.0.0.0/99"]}, "10.0.0.0/99"),
        ({"ipv6_prefix": 0}, "ipv6_prefix=0"),
        ({"forwarded_header": "x-evil"}, "x-evil"),
        ({"api_paths": ["api"]}, "api_paths=['api']"),
        ({"exempt_paths": "/up"}, "exempt_paths='/up'"),
        ({"exempt_prefixes": ["/"]}, "whole site"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(setting: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        ThrottleMiddleware(Starlette(), **setting)
    assert "\n" not in str(caught.value)


def test_starlette_mounts_it_by_keyword() -> None:
    async def story() -> None:
        app = Starlette()
        app.add_middleware(ThrottleMiddleware, limits=Limits(stack_hits=1), trusted_proxies=["10.0.0.0/8"])
        assert statuses([await ask(app), await ask(app)]) == [404, 503]

    run(story())


def test_a_proxy_that_nobody_named_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        app = site(limits=Limits(stack_hits=1))
        await ask_times(app, 4, headers={"X-Forwarded-For": "203.0.113.5"})

    run(story())
    assert [record.message.count("trusted_proxies") for record in caplog.records] == [1]
