"""The table of names: which robots are known crawlers, and which are bots that act for their own user.

A line is `class TAB name TAB text`. Class is `crawler` or `bot`; name is what logs and keys say; text, in
lower case, is what must stand in the agent, at its start if it begins with `^`; it may be left out where it
is the name. `agent_table.txt`, which `tools/agent_table.py` makes, is such a table.
"""

import re
from pathlib import Path
from typing import Final

from throttle.server.agent_class import Agent, CallerClass
from throttle.server.agent_words import GENERIC, words_of

SHIPPED: Final = Path(__file__).with_name("agent_table.txt")
BYTES_MAX: Final = 4 << 20

_CLASSES: Final = {"crawler": CallerClass.KNOWN_CRAWLER, "bot": CallerClass.ASSUMED_BOT}
_LINE: Final = re.compile(r"(crawler|bot)\t([!-~](?:[ -~]{0,62}[!-~])?)(?:\t(\^?[ -@\[-~]{1,80}))?")
_FORM: Final = (
    "should be «crawler» or «bot», a tab, a name of at most 64 printable ASCII characters, and perhaps a tab "
    "and a text in lower case, with a word that not every browser has"
)


class TableError(ValueError):
    """A table that can't be used: the file, the line, and what should be there."""


class Table:
    """Names, found by their longest word: a look-up costs one dictionary access for each word of an agent."""

    __slots__ = ("_by_word", "names")

    def __init__(self, lines: str, where: str) -> None:
        by_word: dict[str, list[tuple[str, Agent]]] = {}
        agents: dict[tuple[str, str], Agent] = {}
        for number, line in enumerate(lines.split("\n"), 1):
            if not line or line[0] == "#":
                continue
            fields = _LINE.fullmatch(line)
            if fields is None:
                raise TableError(f"{where}, line {number}: {_FORM}")
            kind, name, text = fields.groups()
            text = text or name.lower()
            key = max(words_of(text), key=lambda word: (word not in GENERIC, len(word)), default=None)
            if key is None:
                raise TableError(f"{where}, line {number}: {_FORM}")
            agent = agents.get((kind, name))
            if agent is None:
                agent = Agent(_CLASSES[kind], name if kind == "crawler" else None, "table")
                agents[kind, name] = agent
            by_word.setdefault(key, []).append((text, agent))
        if not by_word:
            raise TableError(f"{where}: there is no name in it")
        self._by_word = by_word
        self.names = len(agents)

    def find(self, words: list[str], text: str) -> Agent | None:
        """The name that stands first in the text (in lower case), looked up by its words; of two there the longer."""
        by_word = self._by_word
        if by_word.keys().isdisjoint(words):
            return None
        first, longest, named = len(text), 0, None
        for word in words:
            for needed, agent in by_word.get(word, ()):
                is_start = needed[0] == "^"
                place = (0 if text.startswith(needed[1:]) else -1) if is_start else text.find(needed)
                if 0 <= place < first or (place == first and len(needed) > longest):
                    first, longest, named = place, len(needed), agent
        return named


def read_table(path: Path) -> Table:
    """The table in a file; TableError if it can't be read or used."""
    try:
        with path.open("rb") as file:
            content = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise TableError(f"{path}: {error.strerror or error}") from error
    if len(content) > BYTES_MAX:
        raise TableError(f"{path}: larger than {BYTES_MAX:,} bytes, so no table of names")
    try:
        return Table(content.decode("ascii"), str(path))
    except UnicodeDecodeError as error:
        raise TableError(f"{path}: byte {error.start} is not ASCII") from error
