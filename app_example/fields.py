"""What people write into fields, made fit to be kept. Touches no database.

Rule: text that leaves here is Unicode in its composed form (NFC), within its length, and holds no character that
XML forbids or that turns the writing direction of what follows it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit, urlunsplit

ADDRESS_CHARACTERS_MAX = 2000
DOI_CHARACTERS_MAX = 300
TITLE_CHARACTERS_MAX = 500
AUTHORS_CHARACTERS_MAX = 2000
COMMENT_CHARACTERS_MAX = 2000
NAME_CHARACTERS_MAX = 30
FULL_NAME_CHARACTERS_MAX = 80
PURPOSE_CHARACTERS_MAX = 60
TAG_CHARACTERS_MAX = 60
TAGS_MAX = 20

UNFIT_CHARACTERS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\ufffe\uffff\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")
UNFIT_IN_AN_ADDRESS = re.compile(r"[\s\"<>\\^`{|}]")
UNFIT_IN_A_TAG = re.compile(r"[,/\\?#%<>\"]")
USER_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
DOI = r"(10\.\d{4,9}/\S+)"
BARE_DOI = re.compile(rf"(?:doi:\s*)?{DOI}", re.IGNORECASE)
DOI_ADDRESS = re.compile(rf"(?:https?://)?(?:dx\.|www\.)?doi\.org/{DOI}", re.IGNORECASE)
ARXIV_ID = r"([a-z-]+(?:\.[a-z]{2})?/\d{7}|\d{4}\.\d{4,5})(?:v\d+)?"
ARXIV_ADDRESS = re.compile(
    rf"(?:arxiv:\s*|https?://(?:www\.)?arxiv\.org/(?:abs|pdf)/){ARXIV_ID}(?:\.pdf)?", re.IGNORECASE
)


class UnfitError(ValueError):
    """What was written cannot be kept. ``faults``: for each field, what to do about it."""

    def __init__(self, faults: dict[str, str]) -> None:
        super().__init__(" ".join(faults.values()))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Address:
    """Where a paper is: its address in one form, and its DOI in lower case if that is what was given."""

    url: str
    doi: str = ""


def one_line(text: str) -> str:
    """The text in one line, without spaces at its ends."""
    return " ".join(lines(text).split())


def lines(text: str) -> str:
    """The text with its line breaks, without spaces at its ends."""
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", " "))
    return UNFIT_CHARACTERS.sub("", text).strip()


def address(text: str) -> Address:
    """The address that a link, a DOI or an arXiv number means. Raises ValueError with what to do.

    «doi:10.1000/XYZ» and «https://dx.doi.org/10.1000/xyz» are one; so are an arXiv paper's PDF and its page.
    """
    text = one_line(text)
    if match := BARE_DOI.fullmatch(text) or DOI_ADDRESS.fullmatch(unquote(text)):
        doi = match[1].lower()
        fits("A DOI", doi, DOI_CHARACTERS_MAX)
        return Address(f"https://doi.org/{quote(doi, safe='/:;()')}", doi)
    if match := ARXIV_ADDRESS.fullmatch(text):
        return Address(f"https://arxiv.org/abs/{match[1]}")
    try:
        parts = urlsplit(text)
        is_web_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # half an IPv6 address, a port that is no number
        is_web_address = False
    if not is_web_address or "@" in parts.netloc or UNFIT_IN_AN_ADDRESS.search(text):
        raise ValueError("Give a web address that begins with http:// or https://, or a DOI such as 10.1000/182.")
    if len(text) > ADDRESS_CHARACTERS_MAX:
        raise ValueError(f"An address may have {ADDRESS_CHARACTERS_MAX} characters.")
    host = parts.netloc.lower().removesuffix(":443" if parts.scheme == "https" else ":80")
    return Address(urlunsplit((parts.scheme, host, parts.path or "/", parts.query, "")))


def tags(text: str) -> tuple[str, ...]:
    """The tags that commas separate, each once whatever its case. Raises ValueError with what to do."""
    return checked_tags(text.split(","))


def checked_tags(given: Iterable[str]) -> tuple[str, ...]:
    """The tags of a list, each once whatever its case. Raises ValueError with what to do."""
    found: dict[str, str] = {}
    for tag in map(one_line, given):
        if tag:
            found.setdefault(tag.lower(), tag)
    chosen = tuple(found.values())
    for tag in chosen:
        if len(tag) > TAG_CHARACTERS_MAX:
            raise ValueError(f"A tag may have {TAG_CHARACTERS_MAX} characters; “{tag[:20]}…” has more.")
        if UNFIT_IN_A_TAG.search(tag) or not any(c.isalnum() for c in tag):
            raise ValueError(f'“{tag}” cannot be a tag: use words, without any of , / \\ ? # % < > ".')
    if len(chosen) > TAGS_MAX:
        raise ValueError(f"A post may have {TAGS_MAX} tags; these are {len(chosen)}.")
    return chosen


def fits(what: str, text: str, characters_max: int) -> str:
    """The text. Raises ValueError if it is longer than it may be."""
    if len(text) > characters_max:
        raise ValueError(f"{what} may have {characters_max} characters; this has {len(text)}.")
    return text


def user_name(text: str) -> str:
    """A name that can stand in an address. Raises ValueError with what to do."""
    name = one_line(text).lower()
    if not 2 <= len(name) <= NAME_CHARACTERS_MAX or not USER_NAME.fullmatch(name):
        raise ValueError(
            f"A user name has 2 to {NAME_CHARACTERS_MAX} letters from a to z, digits, and single hyphens between them."
        )
    return name
