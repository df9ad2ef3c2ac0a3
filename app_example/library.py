"""What the library holds: papers by time, tag, user and words; tags and users. Reads only.

Rule: whatever a caller wrote reaches SQL as a parameter, and the search language as quoted words.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, field

PAGE_SIZE = 20
PAGE_MAX = 10_000
QUERY_CHARACTERS_MAX = 200
QUERY_TERMS_MAX = 12

# Around a word that was found, in a snippet. Control characters never occur in the texts themselves.
MARK_BEGIN, MARK_END = "\x02", "\x03"

QUERY_TERM = re.compile(r'"([^"]*)"|([^\s"]+)')


@dataclass(frozen=True, slots=True)
class User:
    """A user, with the number of papers posted."""

    id: int
    name: str
    full_name: str
    papers: int


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag, with the number of papers under it."""

    id: int
    name: str
    papers: int


@dataclass(slots=True)
class Entry:
    """A paper as a list shows it. ``posted`` is the time that the list is ordered by, seconds since 1970."""

    id: int
    url: str
    title: str
    authors: str
    abstract: str
    doi: str
    posted: int
    comment: str = ""
    snippet: str = ""
    tags: list[str] = field(default_factory=list)
    posters: list[tuple[str, str]] = field(default_factory=list)  # name, full name


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list: its entries, its number from 1, and how many entries there are on all pages."""

    entries: list[Entry]
    number: int
    total: int

    @property
    def last(self) -> int:
        """The number of the last page; 1 for an empty list."""
        return max(1, -(-self.total // PAGE_SIZE))


def recent(connection: sqlite3.Connection, number: int) -> Page:
    """All papers, last posted first."""
    return _page(connection, "SELECT id, posted, '' AS comment FROM papers", (), number)


def by_tag(connection: sqlite3.Connection, tag: Tag, number: int) -> Page:
    """The papers under a tag, last posted under it first."""
    source = """
        SELECT paper_id AS id, max(posted) AS posted, '' AS comment
        FROM posts JOIN post_tags ON post_id = posts.id WHERE tag_id = ? GROUP BY paper_id
    """
    return _page(connection, source, (tag.id,), number)


def by_user(connection: sqlite3.Connection, user: User, number: int) -> Page:
    """The papers that a user posted, with the comments, last posted first."""
    source = "SELECT paper_id AS id, posted, comment FROM posts WHERE user_id = ?"
    return _page(connection, source, (user.id,), number)


def search(connection: sqlite3.Connection, query: str, number: int) -> Page:
    """The papers that hold every word and "quoted phrase" of the query, best match first."""
    match = _full_text_query(query)
    if not match:
        return Page([], number, 0)
    rows = connection.execute(
        """
        SELECT id, posted, '' AS comment, snippet(papers_text, 2, :begin, :end, '…', 40) AS snippet
        FROM papers_text JOIN papers ON papers.id = papers_text.rowid
        WHERE papers_text MATCH :match ORDER BY bm25(papers_text, 10, 5, 1), id LIMIT :limit OFFSET :offset
        """,
        {"begin": MARK_BEGIN, "end": MARK_END, "match": match, **_window(number)},
    ).fetchall()
    total = connection.execute("SELECT count(*) FROM papers_text WHERE papers_text MATCH ?", (match,)).fetchone()[0]
    entries = _entries(connection, rows)
    for entry, row in zip(entries, rows, strict=True):
        entry.snippet = row["snippet"] if MARK_BEGIN in row["snippet"] else ""
    return Page(entries, number, total)


def paper(connection: sqlite3.Connection, paper_id: int) -> Entry | None:
    """One paper."""
    rows = connection.execute("SELECT id, posted, '' AS comment FROM papers WHERE id = ?", (paper_id,))
    return next(iter(_entries(connection, rows.fetchall())), None)


def comments(connection: sqlite3.Connection, paper_id: int) -> list[sqlite3.Row]:
    """What posters said of a paper, oldest first: name, full_name, comment, posted. Without empty ones."""
    return connection.execute(
        "SELECT name, full_name, comment, posted FROM posts JOIN users ON users.id = user_id"
        " WHERE paper_id = ? AND comment <> '' ORDER BY posted",
        (paper_id,),
    ).fetchall()


def tag(connection: sqlite3.Connection, name: str) -> Tag | None:
    """The tag of this name, whatever its case."""
    row = connection.execute(
        """
        SELECT tags.id, name, count(DISTINCT paper_id) AS papers
        FROM tags JOIN post_tags ON tag_id = tags.id JOIN posts ON posts.id = post_id
        WHERE name = ? GROUP BY tags.id
        """,
        (name,),
    ).fetchone()
    return Tag(*row) if row else None


def user(connection: sqlite3.Connection, name: str) -> User | None:
    """The user of this name, whatever its case."""
    row = connection.execute(
        "SELECT id, name, full_name, (SELECT count(*) FROM posts WHERE user_id = users.id) FROM users WHERE name = ?",
        (name,),
    ).fetchone()
    return User(*row) if row else None


def users(connection: sqlite3.Connection, number: int) -> tuple[list[User], int]:
    """One page of all users, most papers first, and how many users there are."""
    rows = connection.execute(
        """
        SELECT users.id, name, full_name, count(posts.id) AS papers
        FROM users LEFT JOIN posts ON user_id = users.id
        GROUP BY users.id ORDER BY papers DESC, name LIMIT :limit OFFSET :offset
        """,
        _window(number),
    )
    return [User(*row) for row in rows], connection.execute("SELECT count(*) FROM users").fetchone()[0]


def tag_cloud(connection: sqlite3.Connection, limit: int) -> list[Tag]:
    """The tags with the most papers, in order of their names."""
    rows = connection.execute(
        """
        SELECT tags.id, name, count(DISTINCT paper_id) AS papers
        FROM tags JOIN post_tags ON tag_id = tags.id JOIN posts ON posts.id = post_id
        GROUP BY tags.id ORDER BY papers DESC, name LIMIT ?
        """,
        (limit,),
    )
    return sorted((Tag(*row) for row in rows), key=lambda tag: tag.name.lower())


def tags_of_user(connection: sqlite3.Connection, user: User, limit: int) -> list[Tag]:
    """A user's tags, with the number of that user's papers under each, most first."""
    rows = connection.execute(
        """
        SELECT tags.id, name, count(*) AS papers
        FROM posts JOIN post_tags ON post_id = posts.id JOIN tags ON tags.id = tag_id
        WHERE user_id = ? GROUP BY tags.id ORDER BY papers DESC, name LIMIT ?
        """,
        (user.id, limit),
    )
    return [Tag(*row) for row in rows]


def related_tags(connection: sqlite3.Connection, tag: Tag, limit: int) -> list[Tag]:
    """The tags that most often stand beside this one, with the number of papers that bear both."""
    rows = connection.execute(
        """
        SELECT tags.id, name, count(DISTINCT paper_id) AS papers
        FROM post_tags AS this
        JOIN post_tags AS beside ON beside.post_id = this.post_id AND beside.tag_id <> this.tag_id
        JOIN posts ON posts.id = this.post_id JOIN tags ON tags.id = beside.tag_id
        WHERE this.tag_id = ? GROUP BY tags.id ORDER BY papers DESC, name LIMIT ?
        """,
        (tag.id, limit),
    )
    return [Tag(*row) for row in rows]


def _page(connection: sqlite3.Connection, source: str, values: tuple[int, ...], number: int) -> Page:
    window = _window(number)
    rows = connection.execute(
        f"{source} ORDER BY posted DESC, id DESC LIMIT ? OFFSET ?",
        (*values, window["limit"], window["offset"]),
    ).fetchall()
    total = connection.execute(f"SELECT count(*) FROM ({source})", values).fetchone()[0]
    return Page(_entries(connection, rows), number, total)


def _window(number: int) -> dict[str, int]:
    return {"limit": PAGE_SIZE, "offset": (number - 1) * PAGE_SIZE}


def _entries(connection: sqlite3.Connection, rows: Iterable[sqlite3.Row]) -> list[Entry]:
    """The papers of these rows (id, posted, comment), in their order, with tags and posters."""
    rows = list(rows)
    ids = [row["id"] for row in rows]
    marks = ",".join("?" * len(ids))
    found = connection.execute(f"SELECT id, url, title, authors, abstract, doi FROM papers WHERE id IN ({marks})", ids)
    columns = {row["id"]: dict(row) for row in found}
    entries = {row["id"]: Entry(**columns[row["id"]], posted=row["posted"], comment=row["comment"]) for row in rows}
    for paper_id, name in connection.execute(
        f"""
        SELECT DISTINCT paper_id, name
        FROM posts JOIN post_tags ON post_id = posts.id JOIN tags ON tags.id = tag_id
        WHERE paper_id IN ({marks}) ORDER BY paper_id, tags.id
        """,
        ids,
    ):
        entries[paper_id].tags.append(name)
    for paper_id, name, full_name in connection.execute(
        f"""
        SELECT paper_id, name, full_name FROM posts JOIN users ON users.id = user_id
        WHERE paper_id IN ({marks}) ORDER BY posts.id
        """,
        ids,
    ):
        entries[paper_id].posters.append((name, full_name))
    return list(entries.values())


def _full_text_query(query: str) -> str:
    """The words and phrases of a query, each quoted, so that none of them is an operator of FTS5."""
    terms = (phrase or word for phrase, word in QUERY_TERM.findall(query[:QUERY_CHARACTERS_MAX]))
    words = [" ".join(re.findall(r"[^\W_]+", term)) for term in terms]
    return " ".join(f'"{word}"' for word in words[:QUERY_TERMS_MAX] if word)
