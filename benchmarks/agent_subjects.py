"""Who classifies agents: ours, and four others, each as one function from bytes to browser, crawler or bot.

The others get the agent whole, as they would in a site that calls them; ours cuts it itself. No one's cache counts.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

Judge = Callable[[bytes], str]
"""browser, crawler or bot"""

_LABELS = {"browser": "browser", "known crawler": "crawler", "assumed bot": "bot"}
_ALONE = (
    # The package's own import would bring Starlette, which a site has anyway.
    "import sys, types\n"
    "package = types.ModuleType('throttle')\n"
    f"package.__path__ = [{str(ROOT / 'throttle')!r}]\n"
    "sys.modules['throttle'] = package\n"
)


@dataclass(frozen=True)
class Subject:
    name: str
    needs: str
    """the module without which it is left out"""
    start: str
    """a program up to the first verdict; its CPU time and memory are compared with an empty one's"""
    make: Callable[[], Judge]
    passes: int


def ours(table: str | None = None) -> Judge:
    from throttle.server.agents import Classifier

    classify = Classifier(table=table, entries=2).classify  # two generations of one agent: no agent is found again
    return lambda raw: _LABELS[classify(raw).caller_class.value]


def _connotea() -> Judge:
    from throttle.server.agent_adapters import CONNOTEA_BROWSERS, CONNOTEA_CRAWLERS

    crawlers = [re.compile(pattern) for pattern in CONNOTEA_CRAWLERS]
    browsers = [re.compile(pattern) for pattern in CONNOTEA_BROWSERS]

    def judge(raw: bytes) -> str:
        text = raw.decode("latin-1")
        if any(pattern.search(text) for pattern in crawlers):
            return "crawler"
        return "browser" if any(pattern.search(text) for pattern in browsers) else "bot"

    return judge


def _user_agents() -> Judge:
    import ua_parser
    from user_agents import parse

    # As it is installed: it asks for no fast backend, so its ua-parser is the one in pure Python.
    resolve = ua_parser.BasicResolver(ua_parser.load_builtins())
    ua_parser.parser = ua_parser.Parser(resolve)

    def judge(raw: bytes) -> str:
        agent = parse(raw.decode("latin-1"))
        if agent.is_bot:
            return "crawler"
        return "browser" if agent.is_pc or agent.is_mobile or agent.is_tablet else "bot"

    return judge


def _ua_parser() -> Judge:
    import ua_parser

    resolve = ua_parser.BestAvailableResolver(ua_parser.load_lazy_builtins())
    parser = ua_parser.Parser(resolve)

    def judge(raw: bytes) -> str:
        text = raw.decode("latin-1")
        parsed = parser.parse(text)
        if parsed.device is not None and parsed.device.family == "Spider":
            return "crawler"
        # It knows libraries and apps by name, too; only browsers begin like this.
        is_browser = parsed.user_agent is not None and text.startswith(("Mozilla", "Opera", "Lynx", "Links"))
        return "browser" if is_browser else "bot"

    return judge


def _crawler_user_agents() -> Judge:
    from crawleruseragents import CRAWLER_USER_AGENTS_DATA, is_crawler

    # Its matching_crawlers() compiles all patterns again at each hit, 6 ms in the mean; compiled once it is kinder.
    patterns = [(re.compile(entry["pattern"]), set(entry["tags"])) for entry in CRAWLER_USER_AGENTS_DATA]
    judge_others = _connotea()

    def judge(raw: bytes) -> str:
        text = raw.decode("latin-1")
        if not is_crawler(text):
            return judge_others(raw)
        tags = next((tags for pattern, tags in patterns if pattern.search(text)), set())
        return "bot" if tags & {"monitoring", "feed-reader", "http-library"} else "crawler"

    return judge


SUBJECTS = [
    Subject("throttle", "throttle", _ALONE + "from throttle.server.agents import classify\nclassify(b'x/1')", ours, 5),
    Subject(
        "Connotea's two lists",
        "throttle",
        _ALONE + "from throttle.server.agent_adapters import connotea_classifier as c\nc().classify(b'x/1')",
        _connotea,
        5,
    ),
    Subject(
        "crawler-user-agents + Connotea",
        "crawleruseragents",
        "from crawleruseragents import is_crawler\nis_crawler('x/1')",
        _crawler_user_agents,
        2,
    ),
    Subject(
        "user-agents",
        "user_agents",
        "import sys\nsys.modules['ua_parser_rs'] = None\nimport user_agents\nuser_agents.parse('x/1')",
        _user_agents,
        2,
    ),
    Subject("ua-parser, fastest backend", "ua_parser", "import ua_parser\nua_parser.parse('x/1')", _ua_parser, 3),
]


def available() -> tuple[list[Subject], list[str]]:
    """The subjects that can run here, and the names of those that can't."""
    here = [subject for subject in SUBJECTS if find_spec(subject.needs) is not None]
    return here, [subject.name for subject in SUBJECTS if subject not in here]
