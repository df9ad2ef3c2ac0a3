"""The signed cookie by which a browser has a hit stack of its own, though others share its address and agent.

It holds a number drawn at random and the time from which it counts, nothing else; nothing is stored for it, so no
flood makes the site forget it. A caller cannot make one up, and to get one costs a hit on the shared key. Values are
never logged.
"""

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable

from starlette.types import Message

from throttle.server.place import STARTS
from throttle.server.stores import Digest

NAME = b"throttle="
LASTS = 86_400
"""seconds"""
_ID, _FROM, _MAC = 9, 5, 16
_SIGNED = _ID + _FROM
LENGTH = (_SIGNED + _MAC) * 8 // 6
"""characters of a value"""
REMEMBERED = 8192
"""headers with a genuine cookie, in at most 2 MB; those with forged ones are not"""
PENDING = 0
"""in place of a key"""
FORGED = (0, -LASTS)
TRIES = 4
"""values that are looked at: a site may have a cookie whose name ends as ours does"""

Field = tuple[bytes, bytes]


class Cookies:
    """Gives and reads them. All workers of a site need the same secret, else each gives its own."""

    def __init__(self, secret: bytes, digest: Digest = hash) -> None:
        self._digest = digest
        self._key = hashlib.sha256(b"throttle cookie\0" + secret).digest()
        self._found: dict[int, tuple[int, int]] = {}

    def field(self, now: float, *, wait: int = 0, is_secure: bool) -> Field:
        """Set-Cookie with a new cookie, which counts from `now` (seconds of the wall clock) and `wait` seconds on.

        Over https its name begins with «__Host-», so that no other host of the domain can plant one.
        """
        signed = secrets.token_bytes(_ID) + (int(now) + wait).to_bytes(_FROM, "big")
        value = urlsafe_b64encode(signed + self._mac(signed))
        prefix, suffix = (b"__Host-", b"; Secure") if is_secure else (b"", b"")
        attributes = b"; Path=/; Max-Age=%d; HttpOnly; SameSite=Lax" % (LASTS + wait)
        return b"set-cookie", prefix + NAME + value + attributes + suffix

    def read(self, header: bytes, now: float) -> int | None:
        """The key of the genuine cookie in a Cookie header; None where there is none, or its time is over.

        PENDING for one whose time has not come, since it was given with a refusal.
        """
        key, counts_from = self._found.get(hash(header)) or self._find(header, now)
        if counts_from <= now < counts_from + LASTS:
            return key
        return PENDING if now < counts_from else None

    def _find(self, header: bytes, now: float) -> tuple[int, int]:
        """The key of the first genuine cookie, and the time from which it counts."""
        at = header.find(NAME)
        for _ in range(TRIES):
            if at < 0:
                break
            at += len(NAME)
            opened = self._opened(header[at : at + LENGTH])
            if now < opened[1] + LASTS:
                if len(self._found) >= REMEMBERED:
                    self._found.clear()  # each costs 3 µs once more
                # Under the header's hash, which no outsider can foresee: the site's own cookies are not to be kept.
                self._found[hash(header)] = opened
                return opened
            at = header.find(NAME, at)
        return FORGED

    def _opened(self, value: bytes) -> tuple[int, int]:
        """The key of a genuine value and the time from which it counts; a forged one's time has never been."""
        try:
            raw = urlsafe_b64decode(value)
        except ValueError:
            return FORGED
        signed = raw[:_SIGNED]
        if not hmac.compare_digest(raw[_SIGNED:], self._mac(signed)):
            return FORGED
        return self._digest((signed[:_ID],)), int.from_bytes(signed[_ID:], "big")

    def _mac(self, signed: bytes) -> bytes:
        return hmac.digest(self._key, signed, "sha256")[:_MAC]


def with_cookie(send: Callable[[Message], Awaitable[None]], cookie: Field) -> Callable[[Message], Awaitable[None]]:
    """`send`, which adds the cookie to the answer; not to one that a shared cache may keep and give to everybody."""

    def sent(message: Message) -> Awaitable[None]:
        if message["type"] in STARTS:
            headers = message.get("headers", ())
            if not any(name == b"cache-control" and _is_for_all(value.lower()) for name, value in headers):
                # A new message: the application may send its own again, to another.
                message = {**message, "headers": [*headers, cookie]}
        return send(message)

    return sent


def _is_for_all(cache_control: bytes) -> bool:
    return b"public" in cache_control or b"s-maxage" in cache_control
