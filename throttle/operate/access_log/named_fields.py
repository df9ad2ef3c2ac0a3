"""Lines whose fields have names: JSON of Caddy and nginx, and whatever a format string of nginx or Apache describes.

The names are nginx's variables; Caddy nests its own.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

from throttle.operate.access_log.line import (
    UNKNOWN,
    Hit,
    ReadLine,
    Unread,
    apache_time,
    method_and_path,
    sent_agent,
    unescaped,
)

Fields = Mapping[str, Any]

TIMES = ("msec", "time_iso8601", "time_local", "ts", "time", "timestamp", "@timestamp")
ADDRESSES = ("remote_addr", "client_ip", "remote_ip", "client", "ip")
AGENTS = ("http_user_agent", "user_agent", "agent")
DURATIONS = ("request_time", "duration")
FORWARDED = ("http_x_forwarded_for", "x_forwarded_for")


class FormatError(ValueError):
    """A format string that cannot be used; one line."""


def read_json(line: bytes) -> Hit | Unread:
    """A JSON object a line, of Caddy or of nginx (escape=json); its time is the end of the request."""
    try:
        # surrogateescape: nginx writes bytes beyond ASCII as they came, and the agent shall be those bytes again.
        fields = json.loads(line.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return Unread.UNPARSED
    if not isinstance(fields, dict):
        return Unread.UNPARSED
    asked = fields.get("request")
    try:
        return hit_of(_caddy(fields, asked) if isinstance(asked, dict) else fields)
    except (ValueError, TypeError, AttributeError, LookupError, OverflowError):  # other types than the format has
        return Unread.UNPARSED


def _caddy(fields: Fields, request: Fields) -> Fields:
    headers = request.get("headers") or {}
    named = {name.lower(): values[0] for name, values in headers.items() if values}
    return {
        "ts": fields.get("ts"),
        "duration": fields.get("duration"),
        "remote_addr": request.get("client_ip") or request.get("remote_ip"),
        "request_method": request.get("method"),
        "uri": request.get("uri"),
        "http_user_agent": named.get("user-agent", ""),
        "http_x_forwarded_for": named.get("x-forwarded-for", ""),
    }


def hit_of(fields: Fields) -> Hit | Unread:
    """The hit that named fields describe; raises ValueError or TypeError for a time or a text that is none."""
    time, address = _first(fields, TIMES), _first(fields, ADDRESSES)
    request = fields.get("request")
    if request is None:
        method, target = fields.get("request_method"), fields.get("request_uri") or fields.get("uri")
        request = None if method is None or target is None else f"{method} {target}"
    if time is None or address is None:
        # A server's own message (Caddy's «server running») has no request; what has one should have both.
        return Unread.NO_REQUEST if request is None else Unread.UNPARSED
    end = microseconds(time)
    asked = None if request is None else method_and_path(_bytes(request))
    if asked is None:
        return Unread.NO_REQUEST
    duration = _duration(_first(fields, DURATIONS))
    agent = sent_agent(_bytes(_first(fields, AGENTS) or ""))
    forwarded = _bytes(_first(fields, FORWARDED) or "")
    return (
        end if duration == UNKNOWN else end - duration,
        duration,
        str(address),
        *asked,
        agent,
        b"" if forwarded == b"-" else forwarded,
    )


def _first(fields: Fields, names: tuple[str, ...]) -> Any:
    for name in names:
        if (value := fields.get(name)) is not None:
            return value
    return None


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _duration(value: Any) -> int:
    """Microseconds of a duration in seconds; `UNKNOWN` for anything else, such as nginx's «-»."""
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return UNKNOWN
    return round(seconds * 1_000_000) if 0 <= seconds < 1e9 else UNKNOWN


def microseconds(time: str | float) -> int:
    """Microseconds since 1970 of a log's time: seconds (or milli-, micro-, nanoseconds, by their size) or a date.

    Raises ValueError for anything else.
    """
    return _of_text(time) if isinstance(time, str) else _of_number(float(time))


def _of_number(number: float) -> int:
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"{number} is no time")
    for unit in (1, 1e3, 1e6, 1e9):
        if number / unit < 1e11:  # the year 5138 in seconds, 1973 in milliseconds
            return round(number / unit * 1_000_000)
    raise ValueError(f"{number} is no time")


@lru_cache(maxsize=8192)
def _of_text(text: str) -> int:
    try:
        return _of_number(float(text))
    except ValueError:
        pass
    try:
        return apache_time(text.encode("utf-8", "replace"))
    except ValueError:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise ValueError(f"{text!r} lacks a time zone") from None
        return round(moment.timestamp() * 1_000_000)


_VARIABLE = re.compile(r"\$\{?(\w+)\}?")


def nginx_reader(format_string: str) -> ReadLine:
    """A reader of lines in nginx's `log_format`. Raises FormatError where time, address or request are missing."""
    names = _VARIABLE.findall(format_string)
    for what, some in (
        ("a time ($time_local, $time_iso8601 or $msec)", TIMES),
        ("$remote_addr", ADDRESSES),
        ("the request ($request, or $request_method and $request_uri)", ("request", "request_uri", "uri")),
    ):
        if not any(name in names for name in some):
            raise FormatError(f"--format: {what} is missing in {format_string!r}")
    pieces = _VARIABLE.split(format_string.strip())
    seen: set[str] = set()
    pattern = re.escape(pieces[0])
    for name, behind in zip(pieces[1::2], pieces[2::2], strict=True):
        value = _value_before(behind, name)
        pattern += (value if name in seen else f"(?P<{name}>{value})") + re.escape(behind)
        seen.add(name)
    line_of = re.compile(pattern.encode(), re.DOTALL)

    def read(line: bytes) -> Hit | Unread:
        if not (match := line_of.fullmatch(line.strip())):
            return Unread.UNPARSED if line.strip() else Unread.NO_REQUEST
        try:
            return hit_of({name: _text(value) for name, value in match.groupdict().items()})
        except (ValueError, TypeError, OverflowError):
            return Unread.UNPARSED

    return read


def _value_before(behind: str, name: str) -> str:
    """The pattern of a value that ends where `behind` begins; without backtracking, whatever the line holds."""
    if behind.startswith('"'):
        return r'[^"\\]*+(?:\\.[^"\\]*+)*+'  # nginx escapes a quote within
    if name == "remote_user" or not behind:
        return ".*?"  # may hold blanks, or ends the line
    return f"[^{re.escape(behind[0])}]*+"


def _text(value: bytes) -> str:
    return (unescaped(value) if b"\\" in value else value).decode("utf-8", "surrogateescape")


def apache_reader(format_string: str) -> ReadLine:
    """A reader of lines in Apache's `LogFormat`. Raises FormatError for a directive that is unknown or missing."""
    try:
        import apachelogs
    except ImportError:
        raise FormatError(
            "--format: an Apache format needs the apachelogs package: pip install 'asgi-throttle[replay]'"
        ) from None
    try:
        parser = apachelogs.LogParser(format_string.strip(), encoding="latin-1")
    except (apachelogs.Error, ValueError) as error:
        raise FormatError(f"--format: {error}") from None
    for what, some in (
        ("the time (%t)", ("%t", "}t")),
        ("the address (%h or %a)", ("%h", "%a", "%{c}a", "%{c}h")),
        ("the request (%r, or %m and %U)", ("%r", "%U")),
    ):
        if not any(directive in format_string for directive in some):
            raise FormatError(f"--format: {what} is missing in {format_string!r}")

    def read(line: bytes) -> Hit | Unread:
        try:
            entry = parser.parse(line.decode("latin-1").strip())
        except (apachelogs.InvalidEntryError, ValueError):
            return Unread.UNPARSED if line.strip() else Unread.NO_REQUEST
        return _of_apache(entry)

    return read


_APACHE_DURATIONS: tuple[tuple[str, int], ...] = (
    ("request_duration_microseconds", 1),
    ("request_duration_milliseconds", 1000),
    ("request_duration_seconds", 1_000_000),
)


def _of_apache(entry: Any) -> Hit | Unread:
    """Apache's %t is when the request arrived."""
    get: Callable[..., Any] = lambda name: getattr(entry, name, None)  # noqa: E731
    moment, address = get("request_time"), get("remote_address") or get("remote_host")
    if moment is None or moment.tzinfo is None or address is None:
        return Unread.UNPARSED
    request = get("request_line")
    if request is None and get("request_method") and get("request_uri"):
        request = f"{entry.request_method} {entry.request_uri}"
    asked = None if request is None else method_and_path(request.encode("latin-1", "replace"))
    if asked is None:
        return Unread.NO_REQUEST
    headers = get("headers_in") or {}
    duration = next((get(name) * unit for name, unit in _APACHE_DURATIONS if get(name) is not None), UNKNOWN)
    agent = (headers.get("User-Agent") or "").encode("latin-1", "replace")
    forwarded = (headers.get("X-Forwarded-For") or "").encode("latin-1", "replace")
    return round(moment.timestamp() * 1_000_000), duration, address, *asked, agent, forwarded


def reader_for(format_string: str) -> ReadLine:
    """A reader of lines in a format given as nginx or Apache write it. Raises FormatError."""
    if "%" in format_string:
        return apache_reader(format_string)
    if "$" in format_string:
        return nginx_reader(format_string)
    raise FormatError(
        f"--format {format_string!r}: a format string is needed, of Apache (with %) or nginx (with $); "
        "Combined, Common and JSON are known without it"
    )
