"""Makes the table of robots' names, `throttle/server/agent_table.txt`, from well-kept lists.

    pip install -U crawler-user-agents
    python tools/agent_table.py [--out FILE] [--crawler-user-agents FILE] [--before YYYY/MM/DD]

Sources: crawler-user-agents (MIT; the installed package, or its JSON by path), ai.robots.txt (MIT; its names
are in `ai_robots_txt.txt`, beside this file), and `agent_names_by_hand.txt`, which is read last and corrects
the others. A server takes the new table without a release, by `Classifier.refresh`.

`--before` leaves out the robots that crawler-user-agents first listed on or after that day, so that a
benchmark can tell how the rules fare with robots that nobody has listed yet.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import re
import sys
from pathlib import Path
from typing import Any

from throttle.server.agent_table import SHIPPED, Table, TableError

HERE = Path(__file__).parent
CRAWLER_TAGS = {"academic", "advertising", "ai-crawler", "archiver", "search-engine", "seo", "social-preview"}
DISTINCT = re.compile(r"bot|crawl|spider|[a-z0-9_.-]{9}")
"""Texts that tell a robot even without the «/» that the list has after them."""

Row = tuple[str, str, str]
"""Class, name, text: what a line of the table holds."""


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(SHIPPED))
    parser.add_argument("--crawler-user-agents", type=Path, metavar="FILE")
    parser.add_argument("--before", default="9999", metavar="YYYY/MM/DD")
    options = parser.parse_args(arguments)
    path, version = installed_list()
    if options.crawler_user_agents:
        path, version = options.crawler_user_agents, "(a file)"
    hand, skip, skip_ai = by_hand(HERE / "agent_names_by_hand.txt")
    entries = json.loads(path.read_text("utf-8"))
    late = [entry["pattern"] for entry in entries if entry.get("addition_date", "") >= options.before]
    hand = [row for row in hand if not any(re.search(pattern, row[1]) for pattern in late)]
    listed = from_crawler_user_agents(entries, skip.union(late))
    rows = merge(listed, ai_names(HERE / "ai_robots_txt.txt", skip_ai), hand)
    lines = [
        "# Robots' names for throttle.server.agents: class, name, text to stand in the agent (^: first).",
        f"# Made by tools/agent_table.py from crawler-user-agents {version}, ai.robots.txt, and by hand from",
        "# Crawler-Detect and COUNTER-Robots; their licences are in agent_table.NOTICE.txt.",
        *("\t".join(row[:2] if row[1].lower() == row[2] else row) for row in rows),
    ]
    content = "\n".join(lines) + "\n"
    try:
        names = Table(content, "the new table").names
    except TableError as error:
        sys.exit(f"{error}; nothing was written")
    options.out.write_text(content, "ascii")
    sys.stdout.write(f"{options.out}: {len(rows)} texts of {names} names\n")


def installed_list() -> tuple[Path, str]:
    found = importlib.util.find_spec("crawleruseragents")
    if found is None or found.origin is None:
        sys.exit("crawler-user-agents is not installed: pip install crawler-user-agents")
    path = Path(found.origin).with_name("crawler-user-agents.json")
    return path, importlib.metadata.version("crawler-user-agents")


def from_crawler_user_agents(entries: list[dict[str, Any]], skip: set[str]) -> list[Row]:
    rows: list[Row] = []
    for entry in entries:
        if entry["pattern"] in skip:
            continue
        kind = "crawler" if CRAWLER_TAGS & set(entry.get("tags", [])) else "bot"
        texts = set(literals(entry["pattern"]))
        examples = [whole_words(entry["pattern"], example) for example in entry.get("instances", [])]
        name = tidy(next((found for found, _ in filter(None, examples)), min(texts)))
        if not any(text.startswith("^") for text in texts):
            texts.update(words for _, words in filter(None, examples) if len(words) <= 60)
        for text in texts:
            bare = text.rstrip("/ ")
            rows.append((kind, name, bare if DISTINCT.search(bare) else text))
    return rows


def literals(pattern: str) -> list[str]:
    """The texts, in lower case, that one of the list's patterns stands for; «^» first if it is anchored."""
    start = "^" if pattern.startswith("^") else ""
    plain = re.sub(r"\(\^\| \)|\(\[\^-\]\|\$\)", "", pattern).strip("^$ ")
    plain = plain.split(r"[\s\S]*")[-1]
    plain = re.sub(r"\\([/.\-!+()])", r"\1", plain)
    plain = re.sub(r"\[(\w)(\w)\]", lambda m: m[1] if m[1].lower() == m[2].lower() else m[0], plain)
    choice = re.fullmatch(r"([^|]*)\(([\w|]+)\)([^|]*)", plain)
    if choice:
        return [start + (choice[1] + word + choice[3]).lower() for word in choice[2].split("|")]
    return [start + part.split(r"\d")[-1].strip().lower() for part in plain.split("|")]


def whole_words(pattern: str, example: str) -> tuple[str, str] | None:
    """What the pattern finds in an example, and that widened to whole words: «findlinks» for «findlink»."""
    found = re.search(pattern, example)
    if found is None:
        return None
    first, last = found.span()
    while example[first : first + 1].isalnum() and first > 0 and example[first - 1].isalnum():
        first -= 1
    while example[last - 1 : last].isalnum() and last < len(example) and example[last].isalnum():
        last += 1
    return found[0], example[first:last].strip().lower()


def tidy(name: str) -> str:
    """The name as logs show it: ASCII, at most 64 characters."""
    return re.sub(r"[^ -~]", "", name).strip(" /;()-^$,")[:64].strip()


def ai_names(path: Path, skip: set[str]) -> list[str]:
    names = [line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#")]
    return [name for name in names if name.lower() not in skip]


def by_hand(path: Path) -> tuple[list[Row], set[str], set[str]]:
    """The rows; then what to leave out: patterns of crawler-user-agents, names of ai.robots.txt."""
    rows: list[Row] = []
    skip: set[str] = set()
    skip_ai: set[str] = set()
    for line in path.read_text("utf-8").splitlines():
        match line.split("\t"):
            case ["skip", pattern]:
                skip.add(pattern)
            case ["skip-ai", name]:
                skip_ai.add(name.lower())
            case [("crawler" | "bot") as kind, name, *text] if len(text) < 2:
                rows.append((kind, name, text[0] if text else name.lower()))
            case _ if line and not line.startswith("#"):
                sys.exit(f"{path}: «{line}» is none of the forms that the file's head tells")
    return rows, skip, skip_ai


def merge(listed: list[Row], ai: list[str], hand: list[Row]) -> list[Row]:
    """One row for each text, by name; what is named by hand has the class given there."""
    class_by_hand = {name.lower(): kind for kind, name, _ in hand}
    rows: dict[str, Row] = {}
    for kind, name, text in listed:
        kind = class_by_hand.get(name.lower(), class_by_hand.get(text.strip("/ ^"), kind))
        rows[text] = (kind, name, text)
    for name in ai:
        rows.setdefault(name.lower(), ("crawler", name, name.lower()))
    for kind, name, text in hand:
        rows[text] = (kind, rows[text][1] if text in rows else name, text)
    return sorted(rows.values(), key=lambda row: (row[1].lower(), row[2]))


if __name__ == "__main__":
    main(sys.argv[1:])
