"""Where a site's pages are: paths that a mix names, and such as are found on the site's own pages.

[site]
pages = ["/", {on = "/sitemap.xml"}]                      # every link there
feeds = ["/feed.atom"]
dear = [{on = "/users", like = "/user/*/related"}]        # links of that form
"""

import html
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from throttle.load.answer import Answer

PATHS = ("pages", "feeds", "api", "dear")
FOUND_MAX = 50_000
_LINKS = re.compile(r"""(?:<loc>\s*(?:https?://[^/<\s]+)?|\bhref=["'])(/(?!/)[^"'<\s]*)""")

Fetch = Callable[[str], Awaitable[Answer]]


class SiteError(ValueError):
    """The site's pages cannot be known; one line."""


@dataclass(frozen=True, slots=True)
class Links:
    """The links on a page, as far as they are like a pattern."""

    on: str
    like: str = "*"


SiteMap = Mapping[str, tuple[str | Links, ...]]
"""for some of `PATHS`"""
Places = Mapping[str, tuple[str, ...]]
"""for each of `PATHS`, at least one path"""

ANY_SITE: SiteMap = {"pages": (Links("/sitemap.xml"), Links("/"), "/")}


def read_site(told: Any) -> SiteMap:
    """The table `[site]` of a mix. Raises SiteError."""
    if not isinstance(told, Mapping):
        raise SiteError("site: a table is needed")
    for key in told:
        if key not in PATHS:
            raise SiteError(f"site.{key}: there is no such key, only {', '.join(PATHS)}")
    return {key: _entries(f"site.{key}", entries) for key, entries in told.items()}


def _entries(where: str, entries: Any) -> tuple[str | Links, ...]:
    if not isinstance(entries, list) or not entries:
        raise SiteError(f'{where}: a list is needed, of paths and of {{on = "/page", like = "/pattern/*"}}')
    return tuple(_entry(where, entry) for entry in entries)


def _entry(where: str, entry: Any) -> str | Links:
    if isinstance(entry, Mapping):
        if "on" not in entry or not set(entry) <= {"on", "like"}:
            raise SiteError(f'{where}: {{on = "/page", like = "/pattern/*"}} is needed, not {dict(entry)!r}')
        like = entry.get("like", "*")
        if not isinstance(like, str):
            raise SiteError(f"{where}: like = {like!r}: a pattern is needed, such as /user/*")
        return Links(_path(where, entry["on"]), like)
    return _path(where, entry)


def _path(where: str, path: Any) -> str:
    if not isinstance(path, str) or not re.fullmatch(r"/[!-~]*", path):
        raise SiteError(f"{where}: {path!r} is no path; it begins with / and has no spaces, as /search?q=x+y")
    return path


async def find_places(site: SiteMap | None, fetch: Fetch) -> Places:
    """The paths of each kind, those of links from the site itself. What a mix does not name is its pages.

    Raises SiteError where there are no pages.
    """
    known: dict[str, str] = {}
    found: dict[str, tuple[str, ...]] = {}
    site = ANY_SITE if site is None else site
    for kind, entries in ({"pages": ANY_SITE["pages"]} | dict(site)).items():
        paths: dict[str, None] = {}
        for entry in entries:
            if isinstance(entry, str):
                paths[entry] = None
                continue
            if entry.on not in known:
                known[entry.on] = await _page(entry.on, fetch, is_needed=site is not ANY_SITE)
            for match in _LINKS.finditer(known[entry.on]):
                path = html.unescape(match[1]).partition("#")[0]
                if fnmatchcase(path, entry.like) and re.fullmatch(r"/[!-~]*", path) and len(paths) < FOUND_MAX:
                    paths[path] = None
        if not paths:
            raise SiteError(f"site.{kind}: none of {', '.join(map(str, entries))} gives a path")
        found[kind] = tuple(paths)
    return {kind: found.get(kind, found["pages"]) for kind in PATHS}


async def _page(path: str, fetch: Fetch, *, is_needed: bool) -> str:
    answer = await fetch(path)
    if answer.is_served and answer.status == 200:
        return answer.body.decode("utf-8", "replace")
    if is_needed or answer.failed:
        refused = f"refused by {answer.refused_by}" if answer.refused_by else f"status {answer.status}"
        reason = answer.failed or refused
        raise SiteError(f"the site does not answer {path}: {reason}")
    return ""
