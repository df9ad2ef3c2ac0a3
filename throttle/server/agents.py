"""The class of an agent: a browser, a known crawler, or an assumed bot.

The lists are data below. Every agent is hostile: it is cut before it is decoded or hashed, and the cache is bounded.
"""

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

LONGEST = 512
"""bytes of an agent that are looked at; the rest cannot change its class"""


class CallerClass(Enum):
    """Who asks, as the page tells callers apart."""

    BROWSER = "browser"
    KNOWN_CRAWLER = "known crawler"
    ASSUMED_BOT = "assumed bot"

    def __init__(self, label: str) -> None:
        self.is_browser = label == "browser"
        self.is_known_crawler = label == "known crawler"
        self.is_assumed_bot = label == "assumed bot"


@dataclass(frozen=True, slots=True)
class Agent:
    """What a User-Agent says of its sender."""

    caller_class: CallerClass
    crawler: str | None
    """the name of the matched crawler; `-` for a blank agent; None for all others"""
    why: str
    """which rule decided; never text from the caller"""


KNOWN_CRAWLERS = re.findall(
    r"\S+",
    "AhrefsBot Amazonbot anthropic-ai Applebot archive.org_bot Baiduspider bingbot BLEXBot Bytespider CCBot "
    "ChatGPT-User ClaudeBot Claude-SearchBot Claude-User DataForSeoBot DotBot DuckDuckBot facebookexternalhit "
    "GoogleOther Googlebot Google-InspectionTool GPTBot ia_archiver LinkedInBot meta-externalagent MJ12bot msnbot "
    "OAI-SearchBot PerplexityBot PetalBot Pinterestbot Qwantify SemrushBot SeznamBot Slurp Sogou Twitterbot "
    "YandexBot Yeti",
)

_CRAWLER = re.compile("|".join(re.escape(name) for name in KNOWN_CRAWLERS), re.IGNORECASE)
_NAMES = {name.lower(): name for name in KNOWN_CRAWLERS}
# Connotea's own list of browsers: an engine's name behind Mozilla, Opera, and the two text browsers.
_BROWSER = re.compile(r"Mozilla/[\d.]+ .*(Gecko|KHTML|MSIE|Trident)|Opera/[\d.]+\b|Lynx/[\d.]+|Links\b|w3m/")
# A robot's usual words, and the contact address it leaves behind a browser's name.
_ROBOT = re.compile(r"bot\b|crawl|spider|slurp|\+?https?://|@", re.IGNORECASE)
_PHONE_NAMED_BOT = re.compile(r"\b(CUBOT|POWER BOT)\b", re.IGNORECASE)


@lru_cache(maxsize=4096)
def _classify(agent: bytes) -> Agent:
    text = agent.decode("latin-1").strip()
    if text in ("", "-"):
        return Agent(CallerClass.KNOWN_CRAWLER, "-", "blank")
    if match := _CRAWLER.search(text):
        return Agent(CallerClass.KNOWN_CRAWLER, _NAMES[match[0].lower()], "known name")
    if not _BROWSER.match(text):
        return Agent(CallerClass.ASSUMED_BOT, None, "on no browser list")
    if _ROBOT.search(_PHONE_NAMED_BOT.sub("", text)):
        return Agent(CallerClass.ASSUMED_BOT, None, "robot's word")
    return Agent(CallerClass.BROWSER, None, "browser list")


def classify(raw: bytes) -> Agent:
    """The class of a User-Agent header as the server hands it over; blank is the known crawler `-`."""
    return _classify(raw[:LONGEST])


@lru_cache(maxsize=512)
def describe(raw: bytes) -> str:
    """A name for people, such as «Chrome on Windows»; for logs and reports, never on the way of a request.

    The `user-agents` package may take a millisecond, so the string is cut to 256 bytes first.
    """
    agent = _classify(raw[:LONGEST])
    if agent.crawler is not None:
        return "a blank agent" if agent.crawler == "-" else agent.crawler
    from user_agents import parse

    parsed = parse(raw[:256].decode("latin-1"))
    name = f"{parsed.browser.family} on {parsed.os.family}" if agent.caller_class.is_browser else parsed.browser.family
    return "".join(letter for letter in name if letter.isprintable())[:64] or "an unknown agent"
