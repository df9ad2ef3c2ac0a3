"""Who is logged in, by the signed session cookie.

Rule: nothing here believes a cookie whose signature or age is wrong. The throttle asks before any other
middleware has run, so the cookie is verified here too, and a forged one leaves no trace in memory.
"""

from __future__ import annotations

import json
import time
from base64 import b64decode
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import itsdangerous
from starlette.requests import HTTPConnection

if TYPE_CHECKING:
    from starlette.types import Scope

COOKIE = "session"
MAX_AGE_SECONDS = 14 * 24 * 60 * 60
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
        user = json.loads(b64decode(data)).get("user")
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
