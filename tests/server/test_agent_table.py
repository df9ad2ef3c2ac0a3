"""The table of names, and its refresh at run time."""

from pathlib import Path

import pytest

from throttle.server.agent_rules import judge
from throttle.server.agent_table import SHIPPED, Table, TableError, read_table
from throttle.server.agents import Agent, CallerClass, Classifier

BROWSER, CRAWLER, BOT = CallerClass.BROWSER, CallerClass.KNOWN_CRAWLER, CallerClass.ASSUMED_BOT
CHROME = (
    b"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"
)


def test_the_shipped_table_can_be_read_and_finds_each_of_its_names() -> None:
    table = read_table(SHIPPED)
    assert table.names > 1500
    for line in Path(SHIPPED).read_text("ascii").splitlines():
        if not line.startswith("#"):
            kind, name, *text = line.split("\t")
            agent = judge((text[0] if text else name).removeprefix("^").encode(), table)
            assert agent.why == "table", line
            assert agent.caller_class is (CRAWLER if kind == "crawler" else BOT) or len(name) < 12, line


def test_a_refreshed_table_counts_at_once(tmp_path: Path) -> None:
    classifier = Classifier()
    before = classifier.classify(b"Xqz/1.0")
    (tmp_path / "table.txt").write_text("# a new robot\ncrawler\tXqz\n")
    assert classifier.refresh(tmp_path / "table.txt") == 1
    assert before.caller_class is BOT
    assert classifier.classify(b"Xqz/1.0") == Agent(CRAWLER, "Xqz", "table")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"crawler\tGood\nrobot\tBad\n", "line 2"),
        (b"crawler\n", "line 1"),
        (b"crawler\tA\tb\tc\n", "line 1"),
        (b"crawler\tName\tUPPER\n", "line 1"),
        (b"crawler\tthe\n", "line 1"),
        (b"crawler\t" + b"x" * 65 + b"\n", "line 1"),
        (b"crawler\tEvil\x1b[2J\n", "line 1"),
        ("crawler\tNaïve\n".encode(), "not ASCII"),
        (b"# nothing\n", "no name"),
        (b"crawler\tX\n" * 500_000, "larger than"),
    ],
)
def test_a_broken_table_is_one_clear_error_and_the_old_one_stays(tmp_path: Path, content: bytes, what: str) -> None:
    classifier = Classifier()
    path = tmp_path / "table.txt"
    path.write_bytes(content)
    with pytest.raises(TableError, match=what) as error:
        classifier.refresh(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    assert classifier.classify(b"CCBot/2.0").crawler == "CCBot"


def test_a_missing_table_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="No such file"):
        Classifier(table=tmp_path / "none.txt")
    with pytest.raises(TableError, match=r"directory|denied"):
        Classifier().refresh(tmp_path)


def test_of_two_listed_names_the_first_is_found_and_of_two_in_one_place_the_longer() -> None:
    names = ["Xqz", "Xqz-Image", "Xqz-Image-Large", "Xqz-Image-Larger-Still", "Google"]
    table = Table("\n".join(f"crawler\t{name}" for name in names), "a test")
    assert judge(b"Xqz-Image-Larger-Still/1.0", table).crawler == "Xqz-Image-Larger-Still"
    assert judge(b"Xqz/1.0 (like Google)", table).crawler == "Xqz"


def test_a_listed_text_with_a_caret_must_begin_the_agent() -> None:
    table = Table("crawler\tXqz\t^xqz/\n", "a test")
    assert judge(b"Xqz/1.0", table).crawler == "Xqz"
    assert judge(CHROME + b" Xqz/1.0", table).caller_class is BROWSER
