"""The answer to who is refused: status, Retry-After, and a text for people or for programs.

Prepared in advance, since refusing must be cheaper than serving. Nothing that a caller sent stands in it.
"""

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from starlette.types import Message

PAUSED = "service_paused"
BANNED = "banned"

_WHY = {
    PAUSED: ("Back soon", "The site is paused for maintenance."),
    BANNED: ("Not served here", "The operator of this site does not serve this address or program."),
    "hit_stack": ("A little slower, please", "Many pages were requested from your address in a short time."),
    "parts": ("A little slower, please", "Many files were requested from your address in a short time."),
    "network": ("A little slower, please", "Many pages were requested from your network in a short time."),
    "network_parts": ("A little slower, please", "Many files were requested from your network in a short time."),
    "network_bots": ("A little slower, please", "Programs in your network requested much in a short time."),
    "share": ("Very busy", "The site is under a high load, and programs in your network have had their share."),
    "wide_share": ("Very busy", "The site is under a high load, and programs in your network have had their share."),
    "load_defer": ("Very busy", "The site is under a high load, and people are served first."),
    "lone_crawler": ("Crawling too fast", "A crawler may ask for one page in each interval."),
    "verified_crawlers": ("Crawling too fast", "Crawlers together may ask for one page in each interval."),
    "forged_crawlers": (
        "Crawling too fast",
        "This address is not one of those from which the crawler's operator says that it asks.",
    ),
    "store_lost": ("Back soon", "The site cannot count its requests at the moment."),
    "all_crawlers": ("Crawling too fast", "Crawlers together may ask for one page in each interval."),
}
REASONS = (*_WHY, "route_limit")
"""all names of refusals; those of path and route limits have a colon and the path behind"""


class Refusal(NamedTuple):
    """What there is to know of one refusal, for the answer and for the response hook."""

    status: int
    retry_after: int
    """whole seconds, at least 1"""
    reason: str
    """the name of the rule that refused, or `service_paused`"""
    is_person: bool
    """a browser asks, or nobody has looked at who asks"""

    @property
    def title(self) -> str:
        return _WHY.get(self.reason.partition(":")[0], _OTHER)[0]

    @property
    def explanation(self) -> str:
        return _WHY.get(self.reason.partition(":")[0], _OTHER)[1]

    @property
    def detail(self) -> str:
        """The explanation, and when to come back."""
        if self.reason == BANNED:
            return self.explanation
        return f"{self.explanation} Please come back in {in_words(self.retry_after)}."

    def problem(self) -> dict[str, object]:
        """RFC 9457; the types are those of draft-ietf-httpapi-ratelimit-headers-11."""
        problem: dict[str, object] = {"title": self.title, "status": self.status, "detail": self.detail}
        if self.reason != BANNED:
            is_load = self.reason in ("load_defer", "store_lost", PAUSED)
            kind = "temporary-reduced-capacity" if is_load else "quota-exceeded"
            problem["type"] = f"https://iana.org/assignments/http-problem-types#{kind}"
            problem["violated-policies"] = [self.reason]
            problem["retry-after"] = self.retry_after
        return problem


refusal_of = lru_cache(maxsize=1024)(Refusal)
"""A Refusal with these fields; the same object again, which is found sooner among the prepared answers"""

_OTHER = ("Please come back later", "A limit of this site was reached.")

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 1.1rem/1.6 system-ui, sans-serif; max-width: 34rem; margin: 15vh auto; padding: 0 1.5rem; }}
h1 {{ font-size: 1.6rem; line-height: 1.2; }}
</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p>{explanation}</p>
<p>{outlook}</p>
</main>
</body>
</html>
"""

_OUTLOOK = (
    "Nothing is wrong with your computer, and nothing is lost. Please come back in <strong>{wait}</strong>{again}."
)
_BANNED_OUTLOOK = "If you think that this is a mistake, please write to the operator."

Field = tuple[bytes, bytes]


def messages(
    refusal: Refusal, method: str, headers: Iterable[Field], fields: Iterable[Field] = ()
) -> tuple[Message, Message]:
    """The ASGI messages of the prepared answer, with `fields` (the RateLimit fields) added.

    HTML for browsers, problem+json for those who ask for JSON, else plain text; no body on HEAD.
    """
    accept = b""
    for name, value in headers:
        if name == b"accept":
            accept = value[:256]
            break
    accept = accept.lower()
    is_json = b"json" in accept and b"text/html" not in accept
    prepared, body = _prepared(refusal, method if method in ("GET", "HEAD") else "", is_json)
    return (
        # A list of this request's own: other middleware may add to it.
        {"type": "http.response.start", "status": refusal.status, "headers": [*prepared, *fields]},
        {"type": "http.response.body", "body": body},
    )


@lru_cache(maxsize=1024)
def _prepared(refusal: Refusal, method: str, is_json: bool) -> tuple[list[Field], bytes]:
    is_html = refusal.is_person and not is_json
    reloads = is_html and method == "GET" and refusal.reason != BANNED
    if is_html:
        content_type, body = b"text/html; charset=utf-8", _html(refusal, reloads=reloads)
    elif is_json:
        content_type, body = b"application/problem+json", json.dumps(refusal.problem())
    else:
        content_type, body = b"text/plain; charset=utf-8", f"{refusal.title}. {refusal.detail}\n"
    encoded = body.encode()
    fields = [(b"content-type", content_type), (b"content-length", str(len(encoded)).encode())]
    fields += required_fields(refusal)
    if reloads:
        fields.append((b"refresh", str(refusal.retry_after).encode()))
    return fields, b"" if method == "HEAD" else encoded


def required_fields(refusal: Refusal) -> tuple[Field, ...]:
    """What every refusal carries, also one that a response hook drew. A ban is no wait, and tells none."""
    if refusal.reason == BANNED:
        return ((b"cache-control", b"no-store"),)
    return (b"retry-after", str(refusal.retry_after).encode()), (b"cache-control", b"no-store")


def in_words(seconds: int) -> str:
    """«40 seconds», «2 minutes», «3 hours»: rounded up, as a person would say it."""
    for name, size in (("hour", 3600), ("minute", 60)):
        if seconds >= 2 * size:
            return f"{-(-seconds // size)} {name}s"
    return f"{seconds} second{'' if seconds == 1 else 's'}"


def _html(refusal: Refusal, *, reloads: bool) -> str:
    return _PAGE.format(
        title=refusal.title,
        explanation=refusal.explanation,
        outlook=_BANNED_OUTLOOK
        if refusal.reason == BANNED
        else _OUTLOOK.format(
            wait=in_words(refusal.retry_after),
            again="; this page will then load by itself" if reloads else " and try again",
        ),
    )
