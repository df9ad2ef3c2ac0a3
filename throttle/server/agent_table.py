"""The table of names: which robots are known crawlers, and which are bots that act for their own user.

A line is `class TAB name TAB text`. Class is `crawler` or `bot`; name is what logs and keys say; text, in
lower case, is what must stand in the agent, at its start if it begins with `^`; it may be left out where it
is the name. `agent_table.txt`, which `tools/agent_table.py` makes, is such a table.
"""

import os
import re

from throttle.server.agent_class import Agent, CallerClass
from throttle.server.agent_words import COMMON, GENERIC

SHIPPED = os.path.join(os.path.dirname(__file__), "agent_table.txt")
BYTES_MAX = 4 << 20

_LINE = re.compile(r"^(?:(crawler|bot)\t([!-~][ -~]{0,62}[!-~]|[!-~])(?:\t(\^?[ -@\[-~]{1,80}))?|#.*|)$", re.MULTILINE)
_WORD = re.compile("[a-z0-9]+")
_LINE_SHOULD_BE = (
    "should be «crawler» or «bot», a tab, a name of at most 64 printable ASCII characters, and perhaps a tab and a "
    "text in lower case, with a word that not every browser has"
)


class TableError(ValueError):
    """A table that can't be used: the file, the line, and what should be there."""


class Table:
    """Names, found by their longest word: a look-up costs one dictionary access for each word of an agent."""

    __slots__ = ("_agents", "_by_word", "names")

    def __init__(self, lines: str, where: str) -> None:
        # A file is read in one go, and an `Agent` made when it is first found: starting must not take long.
        fields = _LINE.findall(lines)
        if len(fields) != lines.count("\n") + 1:
            raise TableError(f"{where}, line {_first_wrong(lines)}: {_LINE_SHOULD_BE}")
        by_word: dict[str, list[tuple[str, str, str]]] = {}
        for number, (kind, name, text) in enumerate(fields, 1):
            if kind:
                needed = text or name.lower()
                key = needed if needed.isalnum() and needed not in COMMON else _key(needed)
                if not key:
                    raise TableError(f"{where}, line {number}: {_LINE_SHOULD_BE}")
                by_word.setdefault(key, []).append((needed, kind, name))
        if not by_word:
            raise TableError(f"{where}: there is no name in it")
        self._by_word = by_word
        self._agents: dict[tuple[str, str], Agent] = {}
        self.names = len({name for found in by_word.values() for _, _, name in found})

    def find(self, words: list[str], text: str) -> Agent | None:
        """The name that stands first in the text (in lower case), looked up by its words; of two there the longer."""
        known = self._by_word.keys() & words  # each word once, however often a hostile agent repeats it
        if not known:
            return None
        first, longest, named = len(text), 0, None
        for word in known:
            for needed, kind, name in self._by_word[word]:
                is_start = needed[0] == "^"
                place = (0 if text.startswith(needed[1:]) else -1) if is_start else text.find(needed)
                if 0 <= place < first or (place == first and len(needed) > longest):
                    first, longest, named = place, len(needed), (kind, name)
        return None if named is None else self._agents.get(named) or self._agent(*named)

    def _agent(self, kind: str, name: str) -> Agent:
        if kind == "crawler":
            agent = Agent(CallerClass.KNOWN_CRAWLER, name, "table")
        else:
            agent = Agent(CallerClass.ASSUMED_BOT, None, "table")
        self._agents[kind, name] = agent
        return agent


def _key(text: str) -> str:
    """The word by which the text is looked up: its longest, if it has one that few robots' names have."""
    words = [word for word in _WORD.findall(text) if word not in COMMON]
    return max([word for word in words if word not in GENERIC] or words, key=len, default="")


def _first_wrong(lines: str) -> int:
    for number, line in enumerate(lines.split("\n"), 1):
        if _LINE.fullmatch(line) is None:
            return number
    return 0


def read_table(path: str | os.PathLike[str]) -> Table:
    """The table in a file; TableError if it can't be read or used."""
    where = os.fspath(path)
    try:
        with open(path, "rb") as file:
            content = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise TableError(f"{where}: {error.strerror or error}") from error
    if len(content) > BYTES_MAX:
        raise TableError(f"{where}: larger than {BYTES_MAX:,} bytes, so no table of names")
    try:
        return Table(content.decode("ascii"), where)
    except UnicodeDecodeError as error:
        raise TableError(f"{where}: byte {error.start} is not ASCII") from error
