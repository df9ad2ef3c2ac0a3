"""A URL as it is fetched: absolute, http or https, ASCII, without a fragment. What is none is told why."""

import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, urljoin, urlsplit

LENGTH_MAX = 8192
_CONTROL = re.compile(r"[\x00-\x20\x7f]")
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,251}[a-z0-9.])?\Z|\[[0-9a-f:.]+\]\Z")
_PORTS = {"http": 80, "https": 443}
# What may stand in a path or query as it is (RFC 3986), and «%», which is there already.
_SAFE = "/?:@!$&'()*+,;=-._~%[]|"
# Most URLs are in their one form already, and are told by this alone, in a tenth of the time.
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_PLAIN = re.compile(
    rf"(https?://((?:{_LABEL}\.){{1,9}}{_LABEL}(?::(?:[1-9][0-9]{{3}}|[1-5][0-9]{{4}}))?))/[\w.~!$&'()*+,;=:@%/|-]*(?:\?[\w.~!$&'()*+,;=:@%/|?-]+)?\Z",
    re.ASCII,
)


class NotFetchableError(ValueError):
    """The message is a sentence for the person who wrote the URL."""


class WebUrl(NamedTuple):
    url: str
    origin: str
    """scheme, name and port: what a robots.txt is for"""
    authority: str


def web_url(text: str, within: str | None = None) -> WebUrl:
    """Raises NotFetchableError. `within` is the page that a link stands on."""
    if within is None and len(text) <= LENGTH_MAX and (plain := _PLAIN.match(text)) is not None:
        return WebUrl(text, plain[1], plain[2])
    return _web_url(text, within)


def _web_url(text: str, within: str | None) -> WebUrl:
    text = text.strip()
    if len(text) > LENGTH_MAX:
        raise NotFetchableError(f"longer than {LENGTH_MAX} characters")
    try:
        parts = urlsplit(urljoin(within, text) if within is not None else text)
        port = parts.port
        name = parts.hostname
    except ValueError as error:
        raise NotFetchableError(f"no URL: {error}") from None
    scheme = parts.scheme
    if scheme not in _PORTS:
        raise NotFetchableError(_why_not(text, scheme))
    if _CONTROL.search(text):
        raise NotFetchableError("a space or control character stands inside")
    if not name:
        raise NotFetchableError("no host is named")
    authority = ascii_host(name)
    if port is not None and port != _PORTS[scheme]:
        authority += f":{port}"
    origin = f"{scheme}://{authority}"
    path = quote(parts.path, safe=_SAFE) or "/"
    query = "?" + quote(parts.query, safe=_SAFE) if parts.query else ""
    return WebUrl(origin + path + query, origin, authority)


@lru_cache(maxsize=10_000)
def ascii_host(name: str) -> str:
    """A host name as DNS knows it. Raises NotFetchableError."""
    if ":" in name:
        name = f"[{name}]"
    elif not name.isascii():
        import idna  # comes with every HTTP client

        try:
            name = idna.encode(name, uts46=True).decode("ascii")
        except idna.IDNAError as error:
            raise NotFetchableError(f"no host name: {error}") from None
    name = name.lower()
    if not _HOST.match(name) or ".." in name or any(len(label) > 63 for label in name.split(".")):
        raise NotFetchableError("no host name")
    return name


def _why_not(text: str, scheme: str) -> str:
    if not scheme or "." in scheme or scheme == "localhost":
        return "no scheme: write https:// before it"
    return f"only http and https can be fetched, not {scheme[:20]}:"
