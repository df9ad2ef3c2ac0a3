"""The signed cookie by which a browser has a hit stack of its own, though others share its address and agent.

It holds a number drawn at random and the time from which it counts, nothing else; nothing is stored for it, so no
flood makes the site forget it. A caller cannot make one up, and to get one costs a hit on the shared key. Values are
never logged.
"""

import binascii
import hashlib
import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable
from enum import Enum
from functools import lru_cache

from starlette.types import Message

from throttle.server.place import STARTS

NAME = b"throttle="
LASTS = 86_400
"""seconds"""
_ID, _FROM, _MAC = 9, 5, 16
_SIGNED = _ID + _FROM
LENGTH = (_SIGNED + _MAC) * 8 // 6
"""characters of a value"""
TRIES = 4
"""values that are looked at: a site may have a cookie whose name ends as ours does"""

Field = tuple[bytes, bytes]


class Cookie(Enum):
    """What a browser without a valid cookie has."""

    NONE = "none"
    """nothing, or something forged, or one whose time is over"""
    PENDING = "pending"
    """a genuine one whose time has not come: it was given with a refusal"""


class Cookies:
    """Gives and reads them. All workers of a site need the same secret, else each gives its own."""

    def __init__(self, secret: bytes) -> None:
        self._key = hashlib.sha256(b"throttle cookie\0" + secret).digest()
        # Only genuine values are remembered, in at most 2 MB; a forged one costs 2 µs each time.
        self._genuine = lru_cache(maxsize=8192)(self._read_genuine)

    def field(self, now: float, *, wait: int = 0, is_secure: bool) -> Field:
        """Set-Cookie with a new cookie, which counts from `now` (seconds of the wall clock) and `wait` seconds on.

        Over https its name begins with «__Host-», so that no other host of the domain can plant one.
        """
        signed = secrets.token_bytes(_ID) + (int(now) + wait).to_bytes(_FROM, "big")
        value = urlsafe_b64encode(signed + self._mac(signed))
        prefix, suffix = (b"__Host-", b"; Secure") if is_secure else (b"", b"")
        attributes = b"; Path=/; Max-Age=%d; HttpOnly; SameSite=Lax" % (LASTS + wait)
        return b"set-cookie", prefix + NAME + value + attributes + suffix

    def read(self, header: bytes, now: float) -> bytes | Cookie:
        """The number of the first genuine cookie in a Cookie header whose time is now."""
        found: Cookie = Cookie.NONE
        at = header.find(NAME)
        for _ in range(TRIES):
            if at < 0:
                break
            begin = at + len(NAME)
            try:
                number, counts_from = self._genuine(header[begin : begin + LENGTH])
            except _ForgedError:
                pass
            else:
                if counts_from <= now < counts_from + LASTS:
                    return number
                if now < counts_from:
                    found = Cookie.PENDING
            at = header.find(NAME, begin)
        return found

    def _read_genuine(self, value: bytes) -> tuple[bytes, int]:
        try:
            raw = urlsafe_b64decode(value)
        except (binascii.Error, ValueError):
            raise _ForgedError from None
        signed, mac = raw[:_SIGNED], raw[_SIGNED:]
        if not hmac.compare_digest(mac, self._mac(signed)):
            raise _ForgedError
        return signed[:_ID], int.from_bytes(signed[_ID:], "big")

    def _mac(self, signed: bytes) -> bytes:
        return hmac.digest(self._key, signed, "sha256")[:_MAC]


def with_cookie(send: Callable[[Message], Awaitable[None]], cookie: Field) -> Callable[[Message], Awaitable[None]]:
    """`send`, which adds the cookie to the answer; not to one that a shared cache may keep and give to everybody."""

    def sent(message: Message) -> Awaitable[None]:
        if message["type"] in STARTS:
            headers = message.get("headers", ())
            if not any(name == b"cache-control" and _is_for_all(value.lower()) for name, value in headers):
                message["headers"] = [*headers, cookie]
        return send(message)

    return sent


def _is_for_all(cache_control: bytes) -> bool:
    return b"public" in cache_control or b"s-maxage" in cache_control


class _ForgedError(Exception):
    """Not ours. (An exception, since these are not to be remembered.)"""
