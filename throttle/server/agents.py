"""The class of a caller by its User-Agent: browser, known crawler, or assumed bot.

`classify` is what the middleware asks on each request. A `Classifier` of one's own has own lists, and a table
of names that can be refreshed at run time. Neither raises, whatever the bytes, nor costs more for longer
ones.
"""

import os
import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache

from throttle.server.agent_cache import LONGEST, AgentCache, cut
from throttle.server.agent_class import UNLISTED, WHYS, Agent, CallerClass
from throttle.server.agent_rules import judge
from throttle.server.agent_table import SHIPPED, Table, TableError, read_table

__all__ = [
    "LONGEST",
    "UNLISTED",
    "WHYS",
    "Agent",
    "CallerClass",
    "Classifier",
    "TableError",
    "classify",
    "cut",
    "describe",
]

Names = Iterable[str | re.Pattern[str]]


class Classifier(AgentCache):
    """Classifies agents by own lists first, then by the rules and the table of names.

    crawlers, bots, browsers: own lists, asked in this order. A string is a name, found as whole words in
    whatever case; a compiled pattern is searched for in the agent, decoded as latin-1. (Connotea:
    THROTTLE_FOR and ANTI_THROTTLE_FOR.) table: a file in the form of `agent_table.txt`, in place of the
    shipped one; TableError if it can't be used.
    """

    __slots__ = ("_own", "_table")

    def __init__(
        self,
        *,
        crawlers: Names = (),
        bots: Names = (),
        browsers: Names = (),
        table: str | os.PathLike[str] | None = None,
        entries: int = 4096,
        size: int = 1 << 20,
    ) -> None:
        super().__init__(self._judge_agent, entries, size)
        self._own = (
            *_own_list("crawlers", CallerClass.KNOWN_CRAWLER, crawlers),
            *_own_list("bots", CallerClass.ASSUMED_BOT, bots),
            *_own_list("browsers", CallerClass.BROWSER, browsers),
        )
        self._table = _shipped_table() if table is None else read_table(table)

    def refresh(self, table: str | os.PathLike[str]) -> int:
        """Take the names from this file from now on, and say how many there are.

        TableError, one line that tells the file, the line and what is wrong, if it can't be used; then the
        table in use stays. Reading takes some milliseconds: call it off the request path.
        """
        self._table = read_table(table)
        self.clear()
        return self._table.names

    def _judge_agent(self, raw: bytes) -> Agent:
        if self._own:
            text = raw.decode("latin-1")
            for pattern, agent in self._own:
                if pattern.search(text):
                    return agent
        return judge(raw, self._table)


@cache
def _shipped_table() -> Table:
    return read_table(SHIPPED)


def _own_list(option: str, caller_class: CallerClass, names: Names) -> Iterator[tuple[re.Pattern[str], Agent]]:
    if isinstance(names, str | re.Pattern):
        raise TypeError(f"{option}: should be a list of names and patterns; write [{names!r}]")
    for name in names:
        if isinstance(name, re.Pattern) and isinstance(name.pattern, str):
            pattern, label = name, name.pattern
        elif isinstance(name, str) and name.strip():
            label = name.strip()
            pattern = re.compile(rf"(?<![a-z0-9]){re.escape(label)}(?![a-z0-9])", re.IGNORECASE)
        else:
            raise TypeError(f"{option}: should hold names and compiled patterns of text, not {name!r}")
        yield pattern, Agent(caller_class, label if caller_class.is_known_crawler else None, "own list")


classify = Classifier().classify
"""The class of an agent, by the shipped table."""


def describe(raw: bytes) -> str:
    """The agent's name for people, such as "Chrome on Windows" or "Googlebot".

    At most 80 letters, digits and " .+-/_", so it may stand in any log or page. By the `user-agents` package, which
    takes milliseconds: for reports, not for each request.
    """
    return _describe(cut(raw))


@lru_cache(maxsize=512)
def _describe(raw: bytes) -> str:
    import user_agents  # a tenth of a second, and only reports need it

    agent = classify(raw)
    if agent.crawler is not None and agent.crawler != UNLISTED:
        return "a blank agent" if agent.crawler == "-" else agent.crawler
    text = raw[:256].decode("utf-8", "replace")
    parsed = user_agents.parse(text)
    name, system = parsed.browser.family, parsed.os.family
    if name == "Other":
        name = text.strip().split("/")[0].split(" ")[0]
    if system != "Other" and agent.caller_class.is_browser:
        name = f"{name} on {system}"
    return re.sub(r"[^\w .+\-/]", "", name)[:80].strip() or "an unknown agent"
