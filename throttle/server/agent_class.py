"""What is said of a caller's agent: its class, the crawler's name, and which rule decided."""

from enum import Enum
from typing import NamedTuple


class CallerClass(Enum):
    """People are served first, API clients and feed readers next, crawlers last."""

    BROWSER = "browser"
    KNOWN_CRAWLER = "known crawler"
    ASSUMED_BOT = "assumed bot"

    def __init__(self, label: str) -> None:
        self.is_browser = label == "browser"
        self.is_known_crawler = label == "known crawler"
        self.is_assumed_bot = label == "assumed bot"


class Agent(NamedTuple):
    """The verdict on one User-Agent. Its texts are ours, or the operator's; never the caller's.

    (A named tuple, since importing dataclasses would take a third of the time to start.)

    crawler: the name as the table writes it; `UNLISTED` for a crawler that only its words give away; "-" for
    a blank agent; None for a browser or a bot. why: the rule that decided, one of `WHYS`.
    """

    caller_class: CallerClass
    crawler: str | None
    why: str


UNLISTED = "unlisted crawler"
"""One name for all crawlers that are in no list, so that a robot wins nothing by changing its name."""

WHYS = (
    "blank",  # nothing, white space, or "-"
    "own list",  # the operator's names
    "browser form",  # written as today's browsers write themselves
    "table",  # a listed name
    "crawler word",  # crawl, bot, archiv...
    "bot word",  # monitor, feed, headless...
    "robot's comment",  # a robot's comment or address in a browser's string
    "odd characters",  # an attack's characters, or look-alikes of letters, in a browser's string
    "browser engine",  # an older or rarer browser, by its engine
    "text browser",  # Lynx, w3m...
    "no browser",  # none of these
    "other classifier",  # said by another package
)
