from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from starlette.routing import Route
from starlette.testclient import TestClient

from app_example.body_limit import BYTES_MAX
from app_example.settings import Settings
from app_example.site import create_app

if TYPE_CHECKING:
    from tests.app_example.visitor import Visitor

FORMS = [
    "/sign-up",
    "/log-in",
    "/log-out",
    "/post",
    "/post/remove",
    "/account/password",
    "/account/tokens",
    "/account/tokens/revoke",
    "/account/log-out-everywhere",
]


def test_every_address_that_takes_a_form_is_asked_below(settings: Settings) -> None:
    routes = [route for route in create_app(settings, throttled=False).routes if isinstance(route, Route)]
    assert sorted(route.path for route in routes if "POST" in (route.methods or ())) == sorted(FORMS)


@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize("token", [{}, {"csrf": "x"}, {"csrf": ""}, {"csrf": "é\x00"}])
def test_a_form_without_the_sessions_token_is_refused(ada: Visitor, path: str, token: dict[str, str]) -> None:
    answer = ada.site.post(path, data={"address": "https://example.org/", "title": "x", **token})
    assert answer.status_code == 403
    assert ada.is_logged_in


def test_a_token_is_good_for_its_own_session_only(ada: Visitor) -> None:
    theirs = TestClient(ada.site.app)
    page = theirs.get("/log-in").text
    token = page.split('name="csrf" value="')[1].split('"')[0]
    assert ada.site.post("/log-out", data={"csrf": token}).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://testserver.evil.example"},
        {"Origin": "http://["},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://testserver"},
    ],
)
def test_a_form_from_another_site_is_refused_even_with_the_token(ada: Visitor, headers: dict[str, str]) -> None:
    ada.site.headers.update(headers)
    assert ada.send("/account", "/log-out").status_code == 403
    assert ada.is_logged_in


@pytest.mark.parametrize("headers", [{"Origin": "http://testserver"}, {"Sec-Fetch-Site": "same-origin"}])
def test_a_form_from_this_site_is_accepted(ada: Visitor, headers: dict[str, str]) -> None:
    ada.site.headers.update(headers)
    ada.send("/account", "/log-out")
    assert not ada.is_logged_in


def test_behind_a_proxy_the_sites_address_is_the_one_that_was_set(own_settings: Settings) -> None:
    settings = Settings(data=own_settings.data, secret=own_settings.secret, public_url="https://papers.example")
    with TestClient(create_app(settings, throttled=False)) as site:
        token = site.get("/log-in").text.split('name="csrf" value="')[1].split('"')[0]
        form = {"csrf": token, "name": "nobody", "password": "x"}
        assert site.post("/log-in", data=form, headers={"Origin": "https://papers.example"}).status_code == 401
        assert site.post("/log-in", data=form, headers={"Origin": "http://testserver"}).status_code == 403


def test_a_form_that_grew_old_comes_back_with_what_was_written(ada: Visitor) -> None:
    answer = ada.site.post("/post", data={"csrf": "old", "address": "10.1038/x", "comment": "long <thoughts>"})
    assert answer.status_code == 403
    assert 'value="10.1038/x"' in answer.text
    assert "long &lt;thoughts&gt;" in answer.text
    assert "send it again" in answer.text


@pytest.mark.parametrize("path", ["/log-in", "/post", "/api/posts"])
def test_a_body_that_is_too_large_is_answered_413(ada: Visitor, path: str) -> None:
    kind = "application/json" if path.startswith("/api") else "application/x-www-form-urlencoded"
    answer = ada.site.post(path, content=b"a" * (BYTES_MAX + 1), headers={"Content-Type": kind})
    assert answer.status_code == 413
    assert "128 kB" in answer.text


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data; boundary=x", b"--x\r\nnonsense"),
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="a"; filename="f"\r\n\r\n'),
        ("application/x-www-form-urlencoded", b"\xff\xfe=%zz&&&=;" * 10),
        ("application/x-www-form-urlencoded", b"&".join(b"a=b" for _ in range(30))),
        ("text/plain", b"csrf=x"),
    ],
)
def test_a_body_that_is_no_form_is_refused_with_a_page(visitor: Visitor, kind: str, body: bytes) -> None:
    answer = visitor.site.post("/log-in", content=body, headers={"Content-Type": kind})
    assert answer.status_code in (400, 403)
    assert "<h1>" in answer.text
