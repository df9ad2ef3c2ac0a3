from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from starlette.testclient import TestClient

from app_example import passwords
from app_example.account_pages import local_path
from app_example.site import create_app
from tests.app_example.visitor import PASSWORD, Visitor

if TYPE_CHECKING:
    from app_example.settings import Settings


def rows(settings: Settings, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(settings.database)) as connection:
        return connection.execute(query).fetchall()


def test_who_signs_up_is_logged_in_and_has_a_page(visitor: Visitor) -> None:
    visitor.sign_up()
    assert visitor.is_logged_in
    assert "Ada Lovelace" in visitor.read("/account").text
    assert "posted nothing yet" in visitor.read("/user/ada").text


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"name": "a"}, "A user name has 2 to 30"),
        ({"name": "tom-barclay"}, "is taken"),
        ({"name": "Tom-Barclay"}, "is taken"),
        ({"password": "short"}, "A password has 10 to 200"),
        ({"password": "x" * 201}, "A password has 10 to 200"),
        ({"password": "aaaaaaaaaaaa"}, "easily guessed"),
        ({"full_name": "x" * 81}, "A full name may have 80"),
    ],
)
def test_a_sign_up_that_cannot_be_is_told_what_to_do_and_keeps_what_was_written(
    visitor: Visitor, fields: dict[str, str], fault: str
) -> None:
    given = {"name": "grace", "full_name": "Grace Hopper", "password": PASSWORD, **fields}
    answer = visitor.send("/sign-up", "/sign-up", **given)
    assert answer.status_code == 422
    assert fault in answer.text
    assert f'value="{given["full_name"]}"' in answer.text
    assert given["password"] not in answer.text
    assert not visitor.is_logged_in


def test_a_password_is_kept_as_an_argon2id_hash_only(ada: Visitor, own_settings: Settings) -> None:
    ((kept,),) = rows(own_settings, "SELECT password_hash FROM users WHERE name = 'ada'")
    assert str(kept).startswith("$argon2id$")
    assert PASSWORD.encode() not in own_settings.database.read_bytes()


def test_logging_out_and_in_again(ada: Visitor) -> None:
    ada.send("/account", "/log-out")
    assert not ada.is_logged_in
    assert ada.log_in("ADA").status_code == 200
    assert ada.is_logged_in


@pytest.mark.parametrize(
    ("name", "password"),
    [("ada", "wrong password"), ("nobody", PASSWORD), ("tom-barclay", PASSWORD), ("tom-barclay", ""), ("", "")],
)
def test_a_wrong_name_and_a_wrong_password_get_the_same_answer(ada: Visitor, name: str, password: str) -> None:
    ada.send("/account", "/log-out")
    answer = ada.log_in(name, password)
    assert answer.status_code == 401
    assert "The name or the password is wrong." in answer.text
    assert not ada.is_logged_in


def test_a_log_in_hashes_once_whether_the_user_exists_or_not(ada: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    ada.send("/account", "/log-out")
    checked: list[str] = []

    class Hasher:
        def verify(self, password_hash: str, password: str) -> bool:
            checked.append(password_hash)
            return True

    monkeypatch.setattr(passwords, "HASHER", Hasher())
    assert ada.log_in("nobody").status_code == 401
    assert ada.log_in("tom-barclay").status_code == 401
    assert checked == [passwords.NOBODYS_HASH] * 2


def test_the_session_and_its_token_are_new_after_log_in(visitor: Visitor) -> None:
    visitor.read("/log-in")
    before = visitor.site.cookies["session"]
    visitor.sign_up()
    after = visitor.site.cookies["session"]
    assert before != after
    visitor.site.cookies.clear()
    visitor.site.cookies.set("session", before)
    assert not visitor.is_logged_in


def test_the_session_cookie_is_signed_http_only_and_same_site(visitor: Visitor, own_settings: Settings) -> None:
    cookie = visitor.read("/log-in").headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "secure" not in cookie
    https = type(own_settings)(data=own_settings.data, secret=own_settings.secret, https=True)
    with TestClient(create_app(https, throttled=False), base_url="https://testserver") as site:
        assert "secure" in site.get("/log-in").headers["set-cookie"].lower()


def test_a_forged_cookie_is_nobody(visitor: Visitor) -> None:
    visitor.site.cookies.set("session", "eyJ1c2VyIjogImFkYSJ9.aaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbb")
    assert not visitor.is_logged_in
    assert visitor.read("/account").url.path == "/log-in"


def test_a_copied_cookie_opens_nothing_after_log_out(ada: Visitor) -> None:
    copied = ada.site.cookies["session"]
    ada.send("/account", "/log-out")
    ada.site.cookies.clear()
    ada.site.cookies.set("session", copied)
    assert ada.read("/account").url.path == "/log-in"


def test_logging_out_everywhere_ends_every_session(ada: Visitor, own_settings: Settings) -> None:
    ada.site.cookies.clear()
    ada.log_in()
    assert len(rows(own_settings, "SELECT * FROM sessions")) == 2
    ada.send("/account", "/account/log-out-everywhere")
    assert rows(own_settings, "SELECT * FROM sessions") == []


def test_another_password_ends_the_sessions_that_began_with_the_former(ada: Visitor, own_settings: Settings) -> None:
    ada.site.cookies.clear()
    ada.log_in()
    changed = ada.send("/account", "/account/password", password=PASSWORD, new_password="another set of words")
    assert "all other browsers are logged out" in changed.text
    assert len(rows(own_settings, "SELECT * FROM sessions")) == 1
    assert ada.is_logged_in
    ada.send("/account", "/log-out")
    assert ada.log_in().status_code == 401
    assert ada.log_in(password="another set of words").status_code == 200


def test_another_password_needs_the_present_one(ada: Visitor) -> None:
    answer = ada.send("/account", "/account/password", password="a wrong one", new_password="another set of words")
    assert answer.status_code == 422
    assert "This is not your password." in answer.text


def test_sessions_are_kept_by_their_hash_and_forgotten_past_their_age(ada: Visitor, own_settings: Settings) -> None:
    ((kept,),) = rows(own_settings, "SELECT id FROM sessions")
    assert re.fullmatch("[0-9a-f]{64}", str(kept))
    with closing(sqlite3.connect(own_settings.database)) as connection:
        connection.execute("UPDATE sessions SET begun = begun - 15 * 86400")
        connection.commit()
    assert ada.read("/account").url.path == "/log-in"
    ada.log_in()
    assert len(rows(own_settings, "SELECT * FROM sessions")) == 1


def test_after_log_in_one_is_where_one_wanted_to_be(ada: Visitor) -> None:
    ada.send("/account", "/log-out")
    asked = ada.read("/post?address=10.1038/x&title=a%26b")
    assert asked.url.path == "/log-in"
    answer = ada.log_in(page=str(asked.url))
    assert answer.url.path == "/post"
    assert 'value="a&amp;b"' in answer.text


@pytest.mark.parametrize(
    "elsewhere",
    [
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "https://evil.example",
        "javascript:alert(1)",
        "/\t/evil.example",
        "/\n/evil.example",
        " //evil.example",
        "evil",
        "/" * 20_000,
        "",
    ],
)
def test_log_in_leads_to_no_other_site(visitor: Visitor, elsewhere: str) -> None:
    assert local_path(elsewhere) == "/"
    assert elsewhere == "" or f'value="{elsewhere}"' not in visitor.site.get("/log-in", params={"next": elsewhere}).text


def test_pages_that_show_a_name_or_a_token_are_for_no_shared_cache(ada: Visitor) -> None:
    for path in ("/", "/account", "/paper/1"):
        answer = ada.read(path)
        assert answer.headers["cache-control"] == "private, no-cache"
        assert "cookie" in answer.headers["vary"].lower()
