"""What is known of a caller beside its agent; and whether a browser looks like one.

A browser sends Sec-Fetch-Mode (over https) and Accept-Language with every request. A program that borrows a browser's
agent seldom thinks of either. Who sends neither, over https, is no browser of the makers and versions below. Nothing
here says of anybody that it *is* a browser: whoever sends the headers passes.
"""

import re
from collections.abc import Iterable
from enum import Enum


class Finding(Enum):
    """What is known of a caller beside its agent. All but `UNKNOWN` change what it is asked."""

    __hash__ = object.__hash__  # Enum's own is written in Python, and takes as long as the rest of a look-up

    UNKNOWN = "unknown"
    VERIFIED = "verified"
    """the crawler is who it says it is"""
    FORGED = "forged"
    """the crawler is not who it says it is"""
    NO_BROWSER = "browser without fetch metadata"
    """it says that it is a browser, and sends nothing that only browsers think of"""


# In any case, since such an agent is classified as a browser in any case.
_CHROMIUM = re.compile(rb" Chrome/(\d{1,4})\.", re.IGNORECASE)
_FIREFOX = re.compile(rb" Firefox/(\d{1,4})\.", re.IGNORECASE)
_SAFARI = re.compile(rb" Version/(\d{1,4})\.(\d{1,3})[. ].{0,40}Safari/", re.IGNORECASE)
_FETCHED_FOR_IT = (b"; wv)", b"UCBrowser", b"Puffin", b"Opera Mini", b"OPR/mini")
"""Web views, whose app may fetch by itself under the view's agent; browsers whose maker's servers fetch for them."""


def is_modern_browser(agent: bytes) -> bool:
    """The agent of a browser calls itself one that sends fetch metadata: Chrome (and its kin: Edge, Opera...) from 80,
    Firefox from 90, Safari from 16.4.

    To be asked once for each agent, of those that are classified as browsers.
    """
    if any(name in agent for name in _FETCHED_FOR_IT):
        return False
    if found := _CHROMIUM.search(agent):
        return int(found[1]) >= 80
    if found := _FIREFOX.search(agent):
        return int(found[1]) >= 90
    if found := _SAFARI.search(agent):
        return (int(found[1]), int(found[2])) >= (16, 4)
    return False


def has_fetch_metadata(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """One of Sec-Fetch-Mode and Accept-Language is there. Both must be missing to tell, since a proxy may drop one."""
    for name, _ in headers:  # noqa: SIM110 - any() takes twice as long, and browsers are asked on each request
        if name == b"accept-language" or name == b"sec-fetch-mode":
            return True
    return False


def finding_on_browser(agent: bytes, headers: Iterable[tuple[bytes, bytes]], *, is_https: bool) -> Finding:
    """NO_BROWSER for a modern browser's agent over https with neither header; else UNKNOWN.

    Over plain http browsers send no fetch metadata, so nothing can be told.
    """
    if is_https and is_modern_browser(agent) and not has_fetch_metadata(headers):
        return Finding.NO_BROWSER
    return Finding.UNKNOWN
