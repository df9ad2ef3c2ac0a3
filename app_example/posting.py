"""Posting: a user files a paper, which may be new here, under tags, with a comment; changes or removes the post.

Rules: a user has one post of a paper, and posting it again changes it; a paper is here as long as somebody
posted it; nothing is fetched from the address, so nobody can send this server anywhere.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from app_example import fields
from app_example.fields import UnfitError


@dataclass(frozen=True, slots=True)
class Draft:
    """A post as its user means it, checked. Without an address, the title says which paper of the library."""

    address: fields.Address | None
    title: str
    authors: str
    tags: tuple[str, ...]
    comment: str


@dataclass(frozen=True, slots=True)
class Post:
    """A user's post of a paper. Times are seconds since 1970."""

    paper_id: int
    tags: list[str]
    comment: str
    posted: int


def checked(*, address: str, title: str, authors: str, tags: str | Sequence[str], comment: str) -> Draft:
    """The draft that the fields make. Raises UnfitError, with every field that is at fault."""
    faults: dict[str, str] = {}
    where: fields.Address | None = None
    chosen: tuple[str, ...] = ()
    if fields.one_line(address):
        try:
            where = fields.address(address)
        except ValueError as error:
            faults["address"] = str(error)
    elif not fields.one_line(title):
        faults["address"] = "Give the paper's address, its DOI, or the title of a paper that is here already."
    try:
        chosen = fields.tags(tags) if isinstance(tags, str) else fields.checked_tags(tags)
    except ValueError as error:
        faults["tags"] = str(error)
    texts = {"title": fields.one_line(title), "authors": fields.one_line(authors), "comment": fields.lines(comment)}
    longest = {
        "title": fields.TITLE_CHARACTERS_MAX,
        "authors": fields.AUTHORS_CHARACTERS_MAX,
        "comment": fields.COMMENT_CHARACTERS_MAX,
    }
    for name, text in texts.items():
        if len(text) > longest[name]:
            faults[name] = f"This may have {longest[name]} characters; it has {len(text)}."
    if faults:
        raise UnfitError(faults)
    return Draft(where, tags=chosen, **texts)


def save(connection: sqlite3.Connection, user_id: int, draft: Draft, now: int) -> tuple[int, bool]:
    """Post it: the number of the paper, and whether the user's post of it is new.

    To be called in a transaction. Raises UnfitError if it needs a title, or no paper has this one.
    """
    paper_id = _known_paper(connection, draft)
    if paper_id is None:
        paper_id = _new_paper(connection, draft, now)
    former = _withdraw(connection, user_id, paper_id)
    post_id = connection.execute(
        "INSERT INTO posts (user_id, paper_id, comment, posted, changed) VALUES (?, ?, ?, ?, ?)",
        (user_id, paper_id, draft.comment, now if former is None else former, now),
    ).lastrowid
    for tag in draft.tags:
        connection.execute("INSERT INTO tags (name) VALUES (?) ON CONFLICT DO NOTHING", (tag,))
        connection.execute(
            "INSERT INTO post_tags (post_id, tag_id) SELECT ?, id FROM tags WHERE name = ? ON CONFLICT DO NOTHING",
            (post_id, tag),
        )
    _settle(connection, paper_id)
    return paper_id, former is None


def remove(connection: sqlite3.Connection, user_id: int, paper_id: int) -> bool:
    """Remove a user's post of a paper; False if there is none. To be called in a transaction."""
    if _withdraw(connection, user_id, paper_id) is None:
        return False
    _settle(connection, paper_id)
    return True


def own_post(connection: sqlite3.Connection, user_id: int, paper_id: int) -> Post | None:
    """A user's post of a paper."""
    row = connection.execute(
        "SELECT id, comment, posted FROM posts WHERE user_id = ? AND paper_id = ?", (user_id, paper_id)
    ).fetchone()
    if row is None:
        return None
    tags = connection.execute(
        "SELECT name FROM post_tags JOIN tags ON tags.id = tag_id WHERE post_id = ? ORDER BY tags.id", (row["id"],)
    )
    return Post(paper_id, [name for (name,) in tags], row["comment"], row["posted"])


def _known_paper(connection: sqlite3.Connection, draft: Draft) -> int | None:
    if draft.address is None:
        row = connection.execute(
            "SELECT id FROM papers WHERE title = ? COLLATE NOCASE ORDER BY id", (draft.title,)
        ).fetchone()
        if row is None:
            raise UnfitError({"address": "No paper of this title is here yet: give its address or DOI, too."})
    elif draft.address.doi:
        row = connection.execute(  # a paper of the data may have several DOIs, separated by spaces
            "SELECT id FROM papers WHERE url = ? OR instr(' ' || lower(doi) || ' ', ' ' || ? || ' ') ORDER BY id",
            (draft.address.url, draft.address.doi),
        ).fetchone()
    else:
        row = connection.execute("SELECT id FROM papers WHERE url = ?", (draft.address.url,)).fetchone()
    return None if row is None else int(row["id"])


def _new_paper(connection: sqlite3.Connection, draft: Draft, now: int) -> int:
    if draft.address is None or not draft.title:
        raise UnfitError({"title": "This paper is new here: give its title, too."})
    paper_id = connection.execute(
        "INSERT INTO papers (url, title, authors, doi, posted) VALUES (?, ?, ?, ?, ?)",
        (draft.address.url, draft.title, draft.authors, draft.address.doi, now),
    ).lastrowid
    assert paper_id is not None
    return paper_id


def _withdraw(connection: sqlite3.Connection, user_id: int, paper_id: int) -> int | None:
    """Take out a user's post of a paper: when it was posted, or None if there is none."""
    row = connection.execute(
        "SELECT id, posted FROM posts WHERE user_id = ? AND paper_id = ?", (user_id, paper_id)
    ).fetchone()
    if row is None:
        return None
    connection.execute("DELETE FROM post_tags WHERE post_id = ?", (row["id"],))
    connection.execute("DELETE FROM posts WHERE id = ?", (row["id"],))
    return int(row["posted"])


def _settle(connection: sqlite3.Connection, paper_id: int) -> None:
    """What follows from a paper's posts: when it was last posted, and whether it and its tags are still here."""
    last = connection.execute("SELECT max(posted) FROM posts WHERE paper_id = ?", (paper_id,)).fetchone()[0]
    if last is None:
        connection.execute("DELETE FROM papers WHERE id = ?", (paper_id,))
    else:
        connection.execute("UPDATE papers SET posted = ? WHERE id = ?", (last, paper_id))
    connection.execute("DELETE FROM tags WHERE NOT EXISTS (SELECT 1 FROM post_tags WHERE tag_id = tags.id)")
