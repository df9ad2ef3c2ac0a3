"""Who is logged in: by the signed session cookie, and by the row that a log-in leaves in the database.

Rules: nothing here believes a cookie whose signature or age is wrong. The throttle asks before any other
middleware has run, so the cookie is verified here too, and a forged one leaves no trace in memory. The cookie
alone says whose hits these are; whoever reads or changes what is private needs the row too, so that a copied
cookie opens nothing once its owner has logged out.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
import time
from base64 import b64decode
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import itsdangerous
from starlette.requests import HTTPConnection

from app_example.accounts import Account

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Scope

COOKIE = "session"
MAX_AGE_SECONDS = 14 * 24 * 60 * 60
USER, KEY, CSRF = "user", "key", "csrf"  # what the cookie holds
COOKIES_REMEMBERED = 4096
COOKIE_BYTES_MAX = 4096  # browsers send no more; whoever does gets no signature computed


def session_user(signing_key: str, now: Callable[[], float] = time.time) -> Callable[[Scope], str | None]:
    """A function from an ASGI scope to the name of the user whose session the cookie proves, or None.

    It reads what Starlette's SessionMiddleware wrote with the same key. Of a cookie seen before it only asks
    the age; verified cookies are remembered, at most 4,096 of them.
    """
    signer = itsdangerous.TimestampSigner(signing_key)

    @lru_cache(COOKIES_REMEMBERED)
    def verified(cookie: str) -> tuple[str | None, float]:
        # A bad signature raises, and lru_cache keeps no exceptions: forgers cannot push out those logged in.
        data, signed = signer.unsign(cookie.encode(), return_timestamp=True)
        user = json.loads(b64decode(data)).get(USER)
        return (user if isinstance(user, str) else None), signed.timestamp()

    def identify(scope: Scope) -> str | None:
        if not any(name == b"cookie" and b"session=" in value for name, value in scope["headers"]):
            return None
        cookie = HTTPConnection(scope).cookies.get(COOKIE, "")
        if not cookie or len(cookie) > COOKIE_BYTES_MAX:
            return None
        try:
            user, signed = verified(cookie)
        except itsdangerous.BadSignature:
            return None
        return user if now() - signed <= MAX_AGE_SECONDS else None

    return identify


def csrf_token(request: Request) -> str:
    """The token that this session's forms carry; made when the first form is drawn."""
    token = request.session.get(CSRF)
    if not isinstance(token, str):
        token = request.session[CSRF] = secrets.token_urlsafe(24)
    return token


def begin(request: Request, connection: sqlite3.Connection, account: Account) -> None:
    """Log in: a new session with a new token for forms, whatever the cookie held. In a transaction.

    Sessions past their age are forgotten on the way.
    """
    key, now = secrets.token_urlsafe(24), int(time.time())
    connection.execute("DELETE FROM sessions WHERE begun < ?", (now - MAX_AGE_SECONDS,))
    connection.execute("INSERT INTO sessions (id, user_id, begun) VALUES (?, ?, ?)", (_row_id(key), account.id, now))
    request.session.clear()
    request.session.update({USER: account.name, KEY: key})
    csrf_token(request)


def account(request: Request, connection: sqlite3.Connection) -> Account | None:
    """Who is logged in. A cookie whose session has ended is cleared."""
    if USER not in request.session:
        return None
    row = connection.execute(
        "SELECT users.id, name, full_name FROM sessions JOIN users ON users.id = user_id"
        " WHERE sessions.id = ? AND begun >= ?",
        (_row_id(request.session.get(KEY)), int(time.time()) - MAX_AGE_SECONDS),
    ).fetchone()
    if row is None:
        request.session.clear()
        return None
    return Account(*row)


def end(request: Request, connection: sqlite3.Connection) -> None:
    """Log out here."""
    connection.execute("DELETE FROM sessions WHERE id = ?", (_row_id(request.session.get(KEY)),))
    request.session.clear()


def end_every(connection: sqlite3.Connection, account: Account) -> None:
    """Log out everywhere."""
    connection.execute("DELETE FROM sessions WHERE user_id = ?", (account.id,))


def _row_id(key: object) -> str:
    """A session's row bears the key's SHA-256: who reads the database gets no key."""
    return hashlib.sha256(str(key).encode()).hexdigest()
