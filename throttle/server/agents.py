"""The class of a caller by its User-Agent: browser, known crawler, or assumed bot.

`classify` is what the middleware asks, where the site's settings have no own list that names the agent. A `Classifier`
of one's own has a table of names that can be refreshed at run time. Neither raises, whatever the bytes, nor costs more
for longer ones.
"""

import os
import re
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


class Classifier(AgentCache):
    """Classifies agents by the rules and the table of names.

    table: a file in the form of `agent_table.txt`, in place of the shipped one; TableError if it can't be used.
    """

    __slots__ = ("_table",)

    def __init__(
        self,
        *,
        table: str | os.PathLike[str] | None = None,
        entries: int = 4096,
        size: int = 1 << 20,
    ) -> None:
        super().__init__(self._judge_agent, entries, size)
        self._table = _shipped_table() if table is None else read_table(table)

    def refresh(self, table: str | os.PathLike[str]) -> int:
        """Take the names from this file from now on, and say how many there are.

        TableError, one line that tells the file, the line and what is wrong, if it can't be used; then the
        table in use stays. Reading takes some milliseconds: call it off the request path.
        """
        return self.take(read_table(table))

    def take(self, table: Table) -> int:
        """Classify by this table from now on, and say how many names it has."""
        self._table = table
        self.clear()
        return table.names

    def _judge_agent(self, raw: bytes) -> Agent:
        return judge(raw, self._table)


@cache
def _shipped_table() -> Table:
    return read_table(SHIPPED)


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
