"""The links of an HTML page, as its owner means them: `base`, `rel=nofollow` and the robots meta are obeyed.

The standard library's parser: a page takes some milliseconds, which beside the request is little, and it needs no
package. What it cannot parse yields the links so far.
"""

import contextlib
from collections.abc import Set
from html.parser import HTMLParser

from throttle.crawl.web_url import NotFetchableError, WebUrl, web_url

LINKS_MAX = 10_000
TEXT_MAX = 4 * 1024 * 1024


class _Links(HTMLParser):
    def __init__(self, agent: str) -> None:
        super().__init__(convert_charrefs=True)
        self.base: str | None = None
        self.hrefs: dict[str, None] = {}
        self.is_nofollow = False
        self._names = ("robots", agent.lower())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("a", "area", "base", "meta", "iframe", "frame"):
            return
        found = {name: value or "" for name, value in reversed(attrs)}  # the first of a repeated one counts
        if tag == "meta":
            if found.get("name", "").strip().lower() in self._names:
                words = found.get("content", "").lower().replace(",", " ").split()
                self.is_nofollow = self.is_nofollow or "nofollow" in words or "none" in words
            return
        href = found.get("src" if tag in ("iframe", "frame") else "href", "").strip()
        if tag == "base":
            self.base = self.base or href or None
        elif "nofollow" in found.get("rel", "").lower().split() or href.startswith("#"):
            return
        elif href and len(self.hrefs) < LINKS_MAX:
            self.hrefs[href] = None


def links(text: str, page: str, agent: str = "throttle-crawl") -> list[WebUrl]:
    """Where a page links to, each once, in its order."""
    parser = _Links(agent)
    with contextlib.suppress(AssertionError, ValueError, RecursionError):  # the parser gives up on a hostile page
        parser.feed(text[:TEXT_MAX])
    if parser.is_nofollow:
        return []
    try:
        base = web_url(parser.base, page).url if parser.base else page
    except NotFetchableError:
        base = page
    found: dict[str, WebUrl] = {}
    for href in parser.hrefs:
        try:
            one = web_url("".join(href.split()) if "\n" in href else href, base)
        except NotFetchableError:
            continue  # mailto:, javascript: and the like are links, but not ours
        found.setdefault(one.url, one)
    return list(found.values())


def is_within(authority: str, sites: Set[str]) -> bool:
    """Whether a link stays on a site; with «www.» or without is the same site."""
    return authority.removeprefix("www.") in sites
