from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from starlette.testclient import TestClient

from tests.app_example.visitor import Visitor

if TYPE_CHECKING:
    from app_example.settings import Settings

POST = {"address": "10.9999/x", "title": "A title", "tags": ["open access"], "comment": "Good."}


@pytest.fixture
def program(ada: Visitor) -> TestClient:
    """A program with a token of ada's and no cookie."""
    return TestClient(ada.site.app, headers={"Authorization": f"Bearer {ada.token()}"}, raise_server_exceptions=False)


def test_a_program_posts_reads_changes_and_removes(program: TestClient) -> None:
    made = program.post("/api/posts", json=POST)
    assert made.status_code == 201
    assert made.headers["location"] == "/api/posts/2987"
    assert made.json()["posted_by"] == "ada"
    changed = program.post("/api/posts", json={**POST, "tags": ["other"]})
    assert changed.status_code == 200
    assert program.get("/api/posts/2987").json()["tags"] == ["other"]
    assert program.delete("/api/posts/2987").status_code == 204
    assert program.delete("/api/posts/2987").status_code == 404
    assert program.get("/api/papers/2987").status_code == 404


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer x",
        "Bearer papers_x.y",
        "Bearer papers_.",
        "Basic YWRhOnNldmVyYWw=",
        b"Bearer \xff\xfe",
        "Bearer " + "x" * 10_000,
    ],
)
def test_without_a_right_token_nothing_is_posted_or_removed(ada: Visitor, authorization: str | bytes | None) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    for answer in (
        ada.site.post("/api/posts", json=POST, headers=headers),  # the log-in's cookie counts for nothing here
        ada.site.delete("/api/posts/1", headers=headers),
        ada.site.get("/api/posts/1", headers=headers),
    ):
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.headers["content-type"] == "application/problem+json"


def test_a_tokens_public_half_with_another_secret_is_refused(ada: Visitor) -> None:
    token = ada.token()
    for wrong in (token[:-1], token + "x", token.partition(".")[0] + ".", token.partition(".")[0]):
        answer = ada.site.get("/api/posts/1", headers={"Authorization": f"Bearer {wrong}"})
        assert answer.status_code == 401


def test_a_token_is_kept_as_its_hash_and_shown_once(ada: Visitor, own_settings: Settings) -> None:
    token = ada.token()
    assert token not in ada.read("/account").text
    with closing(sqlite3.connect(own_settings.database)) as connection:
        text = "\n".join(connection.iterdump())
    assert token.partition(".")[2] not in text


def test_a_revoked_token_opens_nothing_and_nobody_revokes_anothers(ada: Visitor, program: TestClient) -> None:
    page = ada.read("/account").text
    token_id = page.split('name="token" value="')[1].split('"')[0]
    grace = Visitor(TestClient(ada.site.app))
    grace.sign_up("grace", "Grace Hopper")
    csrf = grace.read("/account").text.split('name="csrf" value="')[1].split('"')[0]
    grace.site.post("/account/tokens/revoke", data={"csrf": csrf, "token": token_id})
    assert program.post("/api/posts", json=POST).status_code == 201
    ada.send("/account", "/account/tokens/revoke")
    assert program.get("/api/posts/2987").status_code == 401


def test_an_account_has_ten_tokens_at_most_and_each_says_what_for(ada: Visitor) -> None:
    assert "what the token is for" in ada.send("/account", "/account/tokens", purpose=" ").text
    assert "what the token is for" in ada.send("/account", "/account/tokens", purpose="x" * 61).text
    for _ in range(10):
        ada.token()
    answer = ada.send("/account", "/account/tokens", purpose="one more")
    assert answer.status_code == 422
    assert "revoke one first" in answer.text


def test_another_users_post_cannot_be_removed(program: TestClient) -> None:
    assert program.delete("/api/posts/1").status_code == 404
    assert program.get("/api/papers/1").status_code == 200


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({}, "address"),
        ({"address": "https://example.org/"}, "title"),
        ({"address": "ftp://x/", "title": "x"}, "address"),
        ({**POST, "title": "x" * 501}, "title"),
        ({**POST, "tags": ["a"] * 21}, "tags"),
        ({**POST, "tags": ["a/b"]}, "tags"),
        ({**POST, "tags": ["x" * 61]}, "tags"),
        ({**POST, "tags": "a, b"}, "tags"),
        ({**POST, "coment": "a slip"}, "coment"),
        ([], "body"),
        ("x", "body"),
        (None, "body"),
    ],
)
def test_a_post_that_cannot_be_is_a_problem_that_names_the_member(program: TestClient, body: Any, where: str) -> None:
    answer = program.post("/api/posts", json=body)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert where in answer.json()["faults"][0]["where"]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b'{"title": "\\ud800", "address": "10.1000/1"}', b"[" * 50_000]
)
def test_what_is_no_json_is_a_problem(program: TestClient, content: bytes) -> None:
    answer = program.post("/api/posts", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/api/papers", "/api/papers/1", "/api/nothing", "/api/openapi.json"])
def test_head_is_answered_like_get_without_a_body(site: TestClient, path: str) -> None:
    head, get = site.head(path), site.get(path)
    assert head.status_code == get.status_code
    assert head.headers["content-length"] == get.headers["content-length"]
    assert head.content == b""


def test_a_method_that_an_address_does_not_know_is_a_problem(site: TestClient) -> None:
    answer = site.put("/api/papers/1")
    assert answer.status_code == 405
    assert "GET" in answer.headers["allow"]
    assert answer.headers["content-type"] == "application/problem+json"


def test_the_page_about_the_api_names_every_operation_and_every_member(site: TestClient) -> None:
    page = site.get("/web-api").text
    description = site.get("/api/openapi.json").json()
    for path, methods in description["paths"].items():
        for method in methods:
            assert f"<code>{method.upper()} /api{path}</code>" in page
    for member in ("posted_by", "likeness", "address"):
        assert f"<code>{member}</code>" in page
    assert site.get("/api/").url.path == "/web-api"
