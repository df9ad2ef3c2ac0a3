"""Other classifiers for the middleware's `classify=`: Connotea's two lists, and the `user-agents` package.

Each is an `AgentCache`, so cut and cached like ours; its `classify` is what the middleware takes.
`benchmarks/agents.py` shows how they fare.
"""

import re

from throttle.server.agent_cache import AgentCache
from throttle.server.agent_class import UNLISTED, Agent, CallerClass

CONNOTEA_CRAWLERS = (
    *("Googlebot", "Slurp", "msnbot", "bingbot", "Baiduspider", "Yandex", "Teoma", "Ask Jeeves", "Gigabot"),
    *("ia_archiver", "Exabot", "psbot", "Sogou", "Twiceler", "ShopWiki", "MJ12bot", "ScoutJet", "Yeti"),
)
"""Crawlers of Connotea's years. Connotea itself came without a list (THROTTLE_FOR): each site wrote its
own."""

CONNOTEA_BROWSERS = (
    r"^Mozilla/[\d.]+ .*(?:Gecko|KHTML|MSIE)",
    r"^(?:Opera|amaya|Democracy|Dillo|iCab|IBrowse|ICE Browser|Lynx)/[\d.]+\b",
    r"^Links\b",
    r"^Emacs-",
    r"NetPositive",
    r"WWW::Connotea",
)
"""Connotea's browsers (ANTI_THROTTLE_FOR)."""

_BLANK = Agent(CallerClass.KNOWN_CRAWLER, "-", "blank")
_BROWSER = Agent(CallerClass.BROWSER, None, "other classifier")
_CRAWLER = Agent(CallerClass.KNOWN_CRAWLER, UNLISTED, "other classifier")
_BOT = Agent(CallerClass.ASSUMED_BOT, None, "other classifier")


def connotea_classifier(
    crawlers: tuple[str, ...] = CONNOTEA_CRAWLERS, browsers: tuple[str, ...] = CONNOTEA_BROWSERS
) -> AgentCache:
    """Connotea's rule: a pattern of the first list makes a known crawler of that name, else a pattern of the
    second makes a browser, and whatever matches neither is an assumed bot.
    """
    known = [(re.compile(pattern), Agent(CallerClass.KNOWN_CRAWLER, pattern, "own list")) for pattern in crawlers]
    human = [re.compile(pattern) for pattern in browsers]

    def judge(raw: bytes) -> Agent:
        text = raw.decode("latin-1").strip()
        if text in ("", "-"):
            return _BLANK
        for pattern, agent in known:
            if pattern.search(text):
                return agent
        return _BROWSER if any(pattern.search(text) for pattern in human) else _BOT

    return AgentCache(judge)


def user_agents_classifier() -> AgentCache:
    """The `user-agents` package's word: its bots are known crawlers, and what runs on a PC, phone or tablet
    is a browser. The crawlers all go by one name, since the package takes names from the caller's text.

    It takes many libraries, apps and feed readers for browsers, and half a millisecond for each new agent.
    """
    from user_agents import parse  # a tenth of a second, so only for those who want it

    def judge(raw: bytes) -> Agent:
        text = raw.decode("latin-1").strip()
        if text in ("", "-"):
            return _BLANK
        agent = parse(text)
        if agent.is_bot:
            return _CRAWLER
        return _BROWSER if agent.is_pc or agent.is_mobile or agent.is_tablet else _BOT

    return AgentCache(judge)
