from __future__ import annotations

from contextlib import closing
from sqlite3 import connect
from typing import TYPE_CHECKING

import pytest

from app_example import fields

if TYPE_CHECKING:
    from app_example.settings import Settings


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("https://example.org/a?b=c#d", "https://example.org/a?b=c"),
        ("HTTPS://Example.ORG:443", "https://example.org/"),
        ("http://example.org:80/A", "http://example.org/A"),
        ("http://example.org:8080/", "http://example.org:8080/"),
        ("http://[::1]/", "http://[::1]/"),
        ("  https://example.org/\n", "https://example.org/"),
        ("10.1038/Nature.2013", "https://doi.org/10.1038/nature.2013"),
        ("doi: 10.1038/nature.2013", "https://doi.org/10.1038/nature.2013"),
        ("http://dx.doi.org/10.1038/nature.2013", "https://doi.org/10.1038/nature.2013"),
        ("10.1002/(SICI)1097<1::AID>3.0", "https://doi.org/10.1002/(sici)1097%3C1::aid%3E3.0"),
        ("arXiv:1304.7224v2", "https://arxiv.org/abs/1304.7224"),
        ("https://arxiv.org/pdf/1304.7224v1.pdf", "https://arxiv.org/abs/1304.7224"),
        ("https://www.arxiv.org/abs/cs/9809011", "https://arxiv.org/abs/cs/9809011"),
    ],
)
def test_what_means_one_paper_becomes_one_address(given: str, url: str) -> None:
    assert fields.address(given).url == url
    assert fields.address(url).url == url


@pytest.mark.parametrize(
    "given",
    [
        "",
        "example.org",
        "javascript:alert(1)",
        "data:text/html,x",
        "ftp://example.org/",
        "file:///etc/passwd",
        "http://",
        "http://[::1",
        "http://a:99999/",
        "http://user:secret@example.org/",
        "http://example.org/a b",
        'http://example.org/"><script>',
        "http://example.org/" + "a" * fields.ADDRESS_CHARACTERS_MAX,
        "10.1038/" + "a" * fields.DOI_CHARACTERS_MAX,
    ],
)
def test_what_is_no_address_of_a_paper_is_one_error(given: str) -> None:
    with pytest.raises(ValueError, match=r"web address|characters"):
        fields.address(given)


def test_the_addresses_of_the_shipped_papers_stay_as_they_are(settings: Settings) -> None:
    with closing(connect(settings.database)) as connection:
        for (url,) in connection.execute("SELECT url FROM papers"):
            assert fields.address(url).url == url


def test_tags_are_split_at_commas_and_kept_once_whatever_their_case() -> None:
    assert fields.tags(" open  access,h-index, ,Open Access,C++ ") == ("open access", "h-index", "C++")
    assert fields.tags("") == ()


@pytest.mark.parametrize("given", ["a/b", "..", "<b>", "a?b", "#a", "100%", "x" * 61, ",".join(map(str, range(21)))])
def test_what_cannot_be_a_tag_is_one_error(given: str) -> None:
    with pytest.raises(ValueError, match="tag"):
        fields.tags(given)


def test_text_that_is_kept_holds_no_control_and_no_turned_writing() -> None:
    assert fields.one_line("a\x00b\x02\ud800 \u202ec\n d\ufffe") == "ab c d"
    assert fields.lines("a\r\nb\rc\td") == "a\nb\nc d"
    assert fields.one_line("e\u0301") == "é"


@pytest.mark.parametrize("given", ["a", "x" * 31, "a b", "-a", "a--b", "ä", "a/b", "a.b", ""])
def test_what_cannot_be_a_user_name_is_one_error(given: str) -> None:
    with pytest.raises(ValueError, match="user name"):
        fields.user_name(given)
