import asyncio
import io

import pytest

from tests import virtual_clock
from throttle.cli.screen import Screen
from throttle.load.answer import Answer
from throttle.load.report import Report


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown_on(stream: io.StringIO, monkeypatch) -> str:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    report = Report(["people"])
    for _ in range(12):
        report.offer("people")
        report.count("people", Answer(), 0.125)
    report.offer("people")
    report.count("people", Answer(refused_by="hit_stack"), 0.001)
    screen = Screen(stream)

    async def traffic():
        async with screen.progress(report, 30):
            await asyncio.sleep(11)

    virtual_clock.run(traffic())
    screen.table(report)
    return stream.getvalue()


def test_without_a_terminal_there_is_a_plain_line_now_and_then(monkeypatch):
    shown = shown_on(io.StringIO(), monkeypatch)
    assert shown.isascii()
    assert "\x1b" not in shown
    assert [line.strip()[:4] for line in shown.splitlines() if "of offered" in line] == ["5 s,", "10 s"]
    assert "people 12/13" in shown


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_the_table_shows_counts_latencies_and_rules(stream, monkeypatch):
    shown = shown_on(stream(), monkeypatch)
    for text in ("people", "12", "13", "0.125", "hit_stack 1", "slept:"):
        assert text in shown


def test_a_terminal_shows_the_table_while_it_moves(monkeypatch):
    shown = shown_on(Terminal(), monkeypatch)
    assert "\x1b" in shown
    assert "11 of 30 s" in shown


def test_no_color_is_honoured(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    shown = shown_on(Terminal(), monkeypatch)
    colours = [part for part in shown.split("\x1b[")[1:] if part.startswith(("3", "4", "9")) and "m" in part[:6]]
    assert colours == []


@pytest.mark.parametrize("name", ["bots [/red]", "[bold]bots", ":smile:"])
def test_a_class_is_shown_by_the_name_it_has(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    report = Report([name])
    terminal = Terminal()
    Screen(terminal).table(report)
    assert name in terminal.getvalue()
