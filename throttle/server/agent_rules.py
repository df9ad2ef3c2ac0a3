"""The rules that tell a browser, a known crawler and an assumed bot apart by one User-Agent string.

In this order: a browser as browsers write themselves today; a name in the table; a word for what the program
does («crawl», «monitor»); a robot's comment or address in a browser's string; a browser's engine; else a bot.

Rule 1: the cost is linear in the string. No pattern backtracks over what another part has matched, words are
looked for as plain substrings, and whoever calls `judge` has cut the string.
Rule 2: nothing of the string reaches the verdict.
"""

import re

from throttle.server import agent_words as say
from throttle.server.agent_class import UNLISTED, Agent, CallerClass
from throttle.server.agent_table import Table

_BLANK = Agent(CallerClass.KNOWN_CRAWLER, "-", "blank")
_BROWSER_FORM = Agent(CallerClass.BROWSER, None, "browser form")
_BROWSER_ENGINE = Agent(CallerClass.BROWSER, None, "browser engine")
_TEXT_BROWSER = Agent(CallerClass.BROWSER, None, "text browser")
_CRAWLER_WORD = Agent(CallerClass.KNOWN_CRAWLER, UNLISTED, "crawler word")
_ROBOT_COMMENT = Agent(CallerClass.KNOWN_CRAWLER, UNLISTED, "robot's comment")
_ODD = Agent(CallerClass.ASSUMED_BOT, None, "odd characters")
_BOT_WORD = Agent(CallerClass.ASSUMED_BOT, None, "bot word")
_NO_BROWSER = Agent(CallerClass.ASSUMED_BOT, None, "no browser")

_FRAME = re.compile(r"[^(]*\(([^()]*(?:\([^()]*\)[^()]*)*)(.*)", re.DOTALL)
"""Within the first brackets, which may hold others, stands the platform; after them the products."""


def judge(agent: bytes, table: Table) -> Agent:
    """The verdict on an agent as it stood in the header, cut to a length that bounds the cost."""
    form = say.FORM.fullmatch(agent)
    if form and not _has(say.SUSPICIOUS_IN_A_MODEL, (form[1] or b"").decode("latin-1").lower()):
        return _BROWSER_FORM
    text = agent.strip(b" \t\r\n\0\"'").decode("latin-1").lower()
    if text in ("", "-"):
        return _BLANK
    if text.startswith(("mozilla/", "opera/")):
        frame = _FRAME.match(text)
        platform, rest = (frame[1], frame[2]) if frame else ("", text)
        if platform.startswith("khtml"):  # something on the way has removed the platform's brackets
            platform, rest = "", text
        is_browser_frame = not platform.startswith("compatible") or say.COMPATIBLE_BROWSER.match(platform)
        if (is_browser_frame or "msie " in platform) and _has(say.ENGINES, text):
            return _judge_browser_string(text, platform, rest, table)
    return _judge_other_string(text, table)


def _judge_browser_string(text: str, platform: str, rest: str, table: Table) -> Agent:
    """A browser, unless a robot's name, word, comment or address stands in its string."""
    in_app = say.IN_APP.search(rest)
    if in_app:
        text, rest = text[: in_app.start() - len(rest)], rest[: in_app.start()]
    own = text
    if platform.startswith(say.FREE_TEXT_PLATFORMS) and "compatible;" not in platform:
        own = text.partition("(")[0] + rest  # a model may be named «Spider», so fewer rules hold for the platform
        robot = _robot_in_a_model(platform, table)
    else:
        robot = _robot_in_a_platform(platform)
    words = say.words_of(own)
    found = table.find(words, own) or robot
    if found is not None:
        return found
    names = " ".join(words)
    if _has(say.BOT_WORDS, names):
        return _BOT_WORD
    if _has_crawler_word(own, names):
        return _CRAWLER_WORD
    if _has(("compatible;", "like gecko;", "like gecko,"), rest) and say.COMMENT.search(rest):
        return _ROBOT_COMMENT
    is_in_app = _is_web_view(platform, rest)  # behind it stands the app's name: «PriceChecker», «booking.app»
    if not is_in_app and _has(say.BOT_WORDS_IN_BROWSERS, rest):
        return _BOT_WORD
    if _has_address(text, words, rest, is_in_app=is_in_app):
        return _ROBOT_COMMENT
    if say.ODD_CHARACTERS.search(rest) or (not text.isascii() and say.LOOK_ALIKE.search(text)):
        return _ODD
    return _BROWSER_ENGINE


def _robot_in_a_model(platform: str, table: Table) -> Agent | None:
    if not _has(say.SUSPICIOUS_IN_A_MODEL, platform):
        return None
    found = table.find(say.words_of(platform), platform)
    if found is None and say.BOT_IN_A_MODEL.search(platform):
        return _CRAWLER_WORD
    return _ROBOT_COMMENT if found is None and _has(("http", "www.", "@"), platform) else found


def _robot_in_a_platform(platform: str) -> Agent | None:
    """Internet Explorer's platform is full of people's programs, of which some told where they are to be had."""
    has_address = "+http" in platform or ("; http" in platform and "msie " not in platform)
    return _ROBOT_COMMENT if has_address or ("@" in platform and say.MAIL.search(platform)) else None


def _judge_other_string(text: str, table: Table) -> Agent:
    """A robot, unless it is a text browser; its words say which kind."""
    words = say.words_of(text)
    found = table.find(words, text)
    if found is not None:
        return found
    names = " ".join(words)
    if text.startswith(say.OTHER_BROWSERS) and not _has_crawler_word(text, names):
        return _TEXT_BROWSER
    if _has(say.BOT_WORDS, names) or _has(("rss", "podcast"), names):
        return _BOT_WORD
    if "feed" in names and "feedback" not in names:
        return _BOT_WORD
    if _has_crawler_word(text, names):
        is_podcast = any(word.startswith("pod") and word.endswith("bot") for word in words)
        return _BOT_WORD if is_podcast else _CRAWLER_WORD
    if "(compatible;" in text and not _has(("msie ", "http/", "winhttp", "compatible;)"), text):
        return _ROBOT_COMMENT
    return _CRAWLER_WORD if _has(say.CRAWLER_WORDS_ELSEWHERE, names) else _NO_BROWSER


def _has(words: tuple[str, ...], text: str) -> bool:
    for word in words:  # noqa: SIM110 - any() takes twice as long, and this is most of a verdict's cost
        if word in text:
            return True
    return False


def _has_crawler_word(text: str, names: str) -> bool:
    if _has(say.CRAWLER_WORDS, names):
        return True
    if "google" in names and ("google-" in text or "-google" in text) and "client" not in names:
        return True  # Google's libraries call themselves clients
    return "-user/" in text or (_has(("bot", "b0t"), text) and say.BOT.search(text) is not None)


def _is_web_view(platform: str, rest: str) -> bool:
    """An app on a phone shows a page. Few robots drive one."""
    if platform.startswith(("iphone", "ipad", "ipod")):
        return "mobile/" in rest and "safari/" not in rest
    return platform.endswith("; wv")


def _has_address(text: str, words: list[str], rest: str, *, is_in_app: bool) -> bool:
    if "translate.google" in rest:  # a person reads a translation
        return False
    if _has(("http", "(at)"), rest) or ("@" in rest and say.MAIL.search(rest)):
        return True
    if is_in_app:
        return "www." in rest
    if "www." not in rest and (say.TOP_LEVEL.isdisjoint(words) or not say.DOMAIN.search(rest)):
        return False
    return say.MODERN.search(text) is not None
