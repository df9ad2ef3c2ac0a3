"""One line of an access log, as the request that it records.

Lines are bytes that anybody could have caused: nothing here fails on one, and nothing believes one. What is no line of
a known format is `Unread`.
"""

import re
from collections.abc import Callable
from datetime import date
from enum import Enum
from functools import lru_cache
from urllib.parse import unquote

from throttle.server.address import packed_address

Hit = tuple[int, int, str, str, str, bytes, bytes]
"""One request: microseconds since 1970 at which it started; microseconds that it took, or -1; the client's address;
method; path, decoded and without its query; User-Agent as it was sent; the forwarded addresses that the line names. A
bare tuple, since one is made for each line."""

UNKNOWN = -1
"""the duration that no field tells"""


class Unread(Enum):
    """Why a line is no hit."""

    UNPARSED = "not in the format"
    NO_REQUEST = "no request that an application could see"


ReadLine = Callable[[bytes], Hit | Unread]

_QUOTED = rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"'
_LINE = re.compile(
    rb'([^\["]*) \[([^\]"]{20,40})\] '
    + _QUOTED
    + rb" (?:\d{3}|-) (?:\d+|-)"
    # Referer and agent, which Common lacks; the agent's closing quote may be missing.
    + rb"(?: " + _QUOTED + rb' "([^"\\\n]*+(?:\\.[^"\\\n]*+)*+)"?)?'
    + rb"(.*)",
    re.DOTALL,
)  # fmt: skip
_MORE_QUOTED = re.compile(_QUOTED)
_DECIMAL_SECONDS = re.compile(rb"(?<![\w.])(\d+\.\d{3})(?![\w.])")
_ESCAPE = re.compile(rb"\\(x[0-9A-Fa-f]{2}|.)", re.DOTALL)
_CONTROL = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"v": b"\v", b"f": b"\f"}
_MONTHS = {
    name: number
    for number, name in enumerate(b"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), start=1)
}  # fmt: skip
_TIME = re.compile(rb"(\d\d)/(\w{3})/(\d{4}):(\d\d):(\d\d): ([+-])(\d\d)(\d\d)")
_EPOCH = date(1970, 1, 1).toordinal()


def read_text(line: bytes) -> Hit | Unread:
    """A line in Common or Combined, with or without a virtual host before it and fields behind it.

    Behind the agent: a quoted field that holds addresses is X-Forwarded-For. A number with three decimals is nginx's
    $request_time, and the line's time then is the request's end; a single whole number is Apache's %D, microseconds,
    and the time is the start (two whole numbers are bytes in and out, which Apache calls «combinedio»).
    """
    if not (match := _LINE.match(line)):
        return Unread.UNPARSED if line.strip() else Unread.NO_REQUEST
    before, time, request, _, agent, behind = match.groups()
    try:
        start = apache_time(time)
    except ValueError:
        return Unread.UNPARSED
    words = before.split()
    address = words[0] if len(words) == 3 else _address_among(words)
    if not address:
        return Unread.UNPARSED
    asked = method_and_path(request)
    if asked is None:
        return Unread.NO_REQUEST
    duration, forwarded = UNKNOWN, b""
    if len(behind) > 2:
        quoted = _MORE_QUOTED.search(behind)
        if quoted and packed_address(quoted[1].partition(b",")[0].decode("latin-1").strip()):
            forwarded = quoted[1]
        plain = _MORE_QUOTED.sub(b"", behind)
        if seconds := _DECIMAL_SECONDS.search(plain):
            duration = round(float(seconds[1]) * 1_000_000)
            start -= duration
        elif (number := plain.strip()).isdigit() and len(number) < 16:
            duration = int(number)
    return start, duration, address.decode("latin-1"), *asked, sent_agent(agent or b""), forwarded


def _address_among(words: list[bytes]) -> bytes:
    """The client among what stands before the time: after a virtual host, or before a user's name with blanks."""
    for word in words:
        if packed_address(word.decode("latin-1")) is not None:
            return word
    return words[0] if len(words) >= 3 else b""


@lru_cache(maxsize=8192)
def apache_time(text: bytes) -> int:
    """Microseconds since 1970 for «17/May/2015:10:05:03 +0000». Raises ValueError for anything else."""
    seconds = text[18:20]
    if not seconds.isdigit():
        raise ValueError(f"{text!r} is no time of an access log")
    return _minute(text[:18], text[20:]) + int(seconds) * 1_000_000


@lru_cache(maxsize=1024)
def _minute(time: bytes, zone: bytes) -> int:
    """Where a minute begins; apart, since in a quiet log each line has a second of its own."""
    if not (match := _TIME.fullmatch(time + zone)):
        raise ValueError(f"{time + zone!r} is no time of an access log")
    day, month, year, hour, minute, sign, zone_hour, zone_minute = match.groups()
    days = date(int(year), _MONTHS.get(month, 0), int(day)).toordinal() - _EPOCH
    ahead = (int(zone_hour) * 60 + int(zone_minute)) * (-60 if sign == b"-" else 60)
    return (days * 86_400 + int(hour) * 3600 + int(minute) * 60 - ahead) * 1_000_000


@lru_cache(maxsize=8192)
def method_and_path(request: bytes) -> tuple[str, str] | None:
    """Method and path of a request line as an application sees them; None for what no server passes on."""
    words = request.split(b" ", 2)
    if len(words) < 2 or not words[0].isalpha():
        return None
    target = words[1].partition(b"?")[0]
    if target[:1] != b"/":
        scheme, colon, rest = target.partition(b"://")
        if not colon or not scheme.isalpha():
            return (words[0].decode("latin-1"), "*") if target == b"*" else None
        target = b"/" + rest.partition(b"/")[2]
    path = target.decode("latin-1")
    return words[0].decode("latin-1"), unquote(path) if "%" in path else path


def sent_agent(logged: bytes) -> bytes:
    r"""The User-Agent as it was sent: «-» stands for none, and \" \\ \xe4 for what servers escape."""
    if logged == b"-":
        return b""
    return unescaped(logged) if b"\\" in logged else logged


def unescaped(logged: bytes) -> bytes:
    return _ESCAPE.sub(_unescape, logged)


def _unescape(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code[1:], 16)]) if len(code) == 3 else _CONTROL.get(code, code)
