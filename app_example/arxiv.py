"""What the shipped arXiv metadata says, as papers, the users who post them, and tags. Touches no database.

Rule: authors become users under a name made from theirs; two spellings that differ only in accents, dots or
case are one user.
"""

from __future__ import annotations

import csv
import io
import lzma
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources

SOURCE = resources.files(__package__) / "data" / "arxiv_cs.DL_2020-01-01.tsv.xz"

# Words that say nothing about a paper when they stand in its title.
STOP_WORDS = frozenset(
    """
    about across after all among and another any are based been before being between both but can case could
    does during each first for from has have her his how into its less many may more most much new not number
    off one only other our out over own per recent set should some study such than that the their them then
    there these they this those through too toward towards two under until upon use used using very via was
    way were what when where whether which while who whose why will with within without would yet you your
    """.split()  # noqa: SIM905 — a hundred quotation marks less
)

TITLE_WORD = re.compile(r"[^\W\d_]+(?:-[^\W_]+)*")

# Old records write their accents in TeX: \'e, \'{e}, {\'e}, \c{c}, \H{o}. Each with its combining character.
TEX_ACCENTS = {
    "'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307",
    "c": "\u0327", "H": "\u030b", "u": "\u0306", "v": "\u030c", "k": "\u0328", "r": "\u030a",
}  # fmt: skip
TEX_ACCENT = re.compile(r"""\\(['`^"~=.]|[cHuvkr](?=\{))(?:\{(\\?[A-Za-z])\}|(\\?[A-Za-z]))""")


@dataclass(frozen=True, slots=True)
class Paper:
    """One paper of the data. ``posted`` is midnight UTC of its day at arXiv, in seconds since 1970."""

    url: str
    title: str
    abstract: str
    doi: str
    authors: tuple[str, ...]
    tags: tuple[str, ...]
    posted: int


def papers() -> Iterator[Paper]:
    """Every paper of the shipped file, oldest first."""
    with SOURCE.open("rb") as packed, lzma.open(packed) as plain:
        rows = csv.DictReader(io.TextIOWrapper(plain, "utf-8", newline=""), delimiter="\t")
        yield from sorted((_paper(row) for row in rows), key=lambda paper: (paper.posted, paper.url))


def user_name(author: str) -> str:
    """The name in the address of an author's page: «D'Angelo» is d-angelo. Empty if there is no letter."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", author) if not unicodedata.combining(c))
    return re.sub(r"[\W_]+", "-", plain).strip("-").lower()


def title_words(title: str) -> list[str]:
    """The words of a title that serve as tags, each once, in order."""
    words = (word.lower() for word in TITLE_WORD.findall(title))
    return list(dict.fromkeys(word for word in words if len(word) > 2 and word not in STOP_WORDS))


def without_tex_accents(text: str) -> str:
    """The text with TeX's accents on letters as letters: «d\\'ej\\`a» is «déjà». Other TeX stays as it is."""

    def letter(match: re.Match[str]) -> str:
        accent, braced, bare = match.groups()
        return unicodedata.normalize("NFC", (braced or bare).lstrip("\\") + TEX_ACCENTS[accent])

    return TEX_ACCENT.sub(letter, text)


def _paper(row: dict[str, str]) -> Paper:
    title = without_tex_accents(" ".join(row["title"].split()))
    authors = {user_name(author): " ".join(author.split()) for author in row["author_text"].split(",")}
    return Paper(
        url=f"https://arxiv.org/abs/{row['arxiv_id']}",
        title=title,
        abstract=without_tex_accents(" ".join(row["abstract"].split())),
        doi=row["doi"].strip(),
        authors=tuple(author for name, author in authors.items() if name),
        tags=tuple(dict.fromkeys([*row["categories"].split(","), *title_words(title)])),
        posted=int(datetime.fromisoformat(row["created"]).replace(tzinfo=UTC).timestamp()),
    )
