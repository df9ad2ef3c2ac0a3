from __future__ import annotations

import pytest

from app_example import arxiv


def test_the_shipped_file_holds_2986_papers_oldest_first() -> None:
    papers = list(arxiv.papers())
    assert len(papers) == 2986
    assert papers == sorted(papers, key=lambda paper: (paper.posted, paper.url))
    assert papers[0].url == "https://arxiv.org/abs/cs/9809011"
    assert papers[0].authors[0] == "Tom Barclay"


def test_every_paper_has_a_title_a_poster_and_a_tag_and_each_only_once() -> None:
    for paper in arxiv.papers():
        assert paper.title
        assert paper.authors
        assert "cs.DL" in paper.tags
        assert len({arxiv.user_name(author) for author in paper.authors}) == len(paper.authors)
        assert len({tag.lower() for tag in paper.tags}) == len(paper.tags)


@pytest.mark.parametrize(
    ("author", "name"),
    [
        ("Ciriaco Andrea D'Angelo", "ciriaco-andrea-d-angelo"),
        ("Vincent Larivière", "vincent-lariviere"),
        ("Michael L. Nelson", "michael-l-nelson"),
        ("Michael L Nelson", "michael-l-nelson"),
        ("Jakob Voß", "jakob-voß"),
        (".", ""),
    ],
)
def test_a_user_name_is_the_authors_without_accents_dots_and_case(author: str, name: str) -> None:
    assert arxiv.user_name(author) == name


def test_accents_written_in_tex_become_letters_and_other_tex_stays() -> None:
    assert arxiv.without_tex_accents(r"D\'ej\`a vu, Erd\H{o}s, intera\c{c}\~ao, Na\"{\i}ve") == (
        "Déjà vu, Erdős, interação, Naïve"
    )
    assert arxiv.without_tex_accents(r"the $h_\alpha$ index, $\mathbf{h}$") == r"the $h_\alpha$ index, $\mathbf{h}$"


def test_the_words_of_a_title_that_say_something_are_its_tags() -> None:
    assert arxiv.title_words("On the h-index: an index of the impact of 3 Papers") == [
        "h-index",
        "index",
        "impact",
        "papers",
    ]
