from __future__ import annotations

import json
import time
from base64 import b64encode

import itsdangerous
import pytest

from app_example import sessions

KEY = "a key that signs sessions"


def cookie(content: object, key: str = KEY) -> bytes:
    return itsdangerous.TimestampSigner(key).sign(b64encode(json.dumps(content).encode()))


def scope(*cookies: bytes) -> dict[str, object]:
    return {"type": "http", "headers": [(b"cookie", value) for value in cookies]}


identify = sessions.session_user(KEY)


def test_a_signed_session_names_its_user() -> None:
    assert identify(scope(b"theme=dark; session=" + cookie({"user": "ada", "csrf": "x"}))) == "ada"


def test_without_a_session_there_is_nobody() -> None:
    assert identify(scope()) is None
    assert identify(scope(b"theme=dark")) is None
    assert identify(scope(b"session=")) is None


def test_a_session_without_a_user_is_nobody() -> None:
    assert identify(scope(b"session=" + cookie({"csrf": "x"}))) is None
    assert identify(scope(b"session=" + cookie({"user": ["ada"]}))) is None


@pytest.mark.parametrize(
    "forged",
    [
        cookie({"user": "ada"}, "another key"),
        cookie({"user": "ada"})[:-1],
        b64encode(b'{"user": "ada"}'),
        b"\xff\xfe\x00",
        b"." * 3000,
        b"x" * 100_000,
    ],
    ids=["another key", "cut short", "not signed", "binary", "dots", "long"],
)
def test_a_forged_session_is_nobody(forged: bytes) -> None:
    assert identify(scope(b"session=" + forged)) is None


def test_a_session_ends_after_its_age() -> None:
    now = time.time()
    signed = scope(b"session=" + cookie({"user": "ada"}))
    assert sessions.session_user(KEY, lambda: now + sessions.MAX_AGE_SECONDS - 1)(signed) == "ada"
    assert sessions.session_user(KEY, lambda: now + sessions.MAX_AGE_SECONDS + 2)(signed) is None
