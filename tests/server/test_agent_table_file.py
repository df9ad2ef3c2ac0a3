"""A site's own table of agents: a setting, read again when it changes, off the request path."""

import logging
import os
import threading
from pathlib import Path

import pytest
from starlette.applications import Starlette

from tests.asgi import ask
from tests.server.site import site
from tests.virtual_clock import in_virtual_time
from throttle import ThrottleMiddleware
from throttle.cli import main
from throttle.server.agent_table import TableError
from throttle.server.agent_table_file import AgentTableFile
from throttle.server.agents import CallerClass, classify

BOT, CRAWLER = CallerClass.ASSUMED_BOT, CallerClass.KNOWN_CRAWLER


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def written(path: Path, text: str) -> Path:
    """Replaced as a whole, as `mv` does."""
    new = path.with_suffix(".new")
    new.write_text(text)
    os.replace(new, path)
    return path


def read() -> None:
    """Whatever is being read has been."""
    for thread in threading.enumerate():
        if thread.name == "throttle-agents":
            thread.join()


def served(app: ThrottleMiddleware) -> dict[str, int]:
    return {name: tally["served"] for name, tally in app.counts().items()}


@in_virtual_time
async def test_a_table_that_changes_counts_within_two_looks_and_is_read_off_the_request_path(tmp_path: Path) -> None:
    clock, table = Clock(), written(tmp_path / "agents.txt", "crawler\tAbc\n")
    app = site(agent_table=str(table), clock=clock)
    await ask(app, agent="Xqz/1.0")
    assert served(app)["assumed bot"] == 1
    written(table, "crawler\tXqz\n")
    await ask(app, agent="Xqz/1.0")
    assert served(app)["assumed bot"] == 2, "not looked at more than once a second"
    clock.now += 1
    await ask(app, agent="Xqz/1.0")
    assert served(app)["assumed bot"] == 3, "read by another thread meanwhile"
    read()
    clock.now += 1
    await ask(app, agent="Xqz/1.0")
    assert served(app) == {"browser": 0, "known crawler": 1, "assumed bot": 3}


@in_virtual_time
async def test_a_broken_table_keeps_the_old_one_and_is_one_clear_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock, table = Clock(), written(tmp_path / "agents.txt", "crawler\tXqz\n")
    app = site(agent_table=str(table), clock=clock)
    await ask(app)
    for text in ("robot\tXqz\n", None):
        table.unlink() if text is None else written(table, text)
        for _ in range(3):
            clock.now += 100
            await ask(app, agent="Xqz/1.0", client="192.0.2.7")
            read()
    assert served(app)["known crawler"] == 6
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(lines) == 1
    assert f"the old one stays in force: {table}, line 1" in lines[0]
    assert "\n" not in lines[0]


@in_virtual_time
async def test_a_site_that_watches_no_file_never_looks_again() -> None:
    app = site()
    await ask(app)
    assert app._look_at == float("inf")


def test_a_table_that_cannot_be_used_is_an_error_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="No such file"):
        ThrottleMiddleware(Starlette(), agent_table=str(tmp_path / "none.txt"))
    table = written(tmp_path / "agents.txt", "crawler\tXqz\n")
    with pytest.raises(ValueError, match="leave out classify="):
        ThrottleMiddleware(Starlette(), agent_table=str(table), classify=lambda agent: classify(agent))
    with pytest.raises(ValueError, match="agent_table=3: the path of a file"):
        ThrottleMiddleware(Starlette(), agent_table=3)  # type: ignore[arg-type]


@in_virtual_time
async def test_the_configuration_may_name_another_table(tmp_path: Path) -> None:
    clock, config = Clock(), tmp_path / "throttle.toml"
    for name in ("Abc", "Xqz"):
        written(tmp_path / f"{name}.txt", f"crawler\t{name}\n")
    written(config, f"agent_table = '{tmp_path / 'Abc.txt'}'\n")
    app = site(config=config, clock=clock)
    await ask(app, agent="Xqz/1.0")
    written(config, f"agent_table = '{tmp_path / 'Xqz.txt'}'\n[limits]\nload_max = 3\n")
    clock.now += 1
    await ask(app, agent="Xqz/1.0")
    assert served(app) == {"browser": 0, "known crawler": 1, "assumed bot": 1}


def test_check_says_what_the_table_is_or_what_is_wrong_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, config = written(tmp_path / "agents.txt", "crawler\tXqz\n"), tmp_path / "throttle.toml"
    config.write_text(f"agent_table = '{table}'\n")
    assert main(["check", str(config)]) == 0
    assert f"Robots' names are those in {table}" in capsys.readouterr().out
    written(table, "nonsense\n")
    assert main(["check", str(config)]) == 1
    assert f"{table}, line 1" in capsys.readouterr().err


def test_a_table_that_is_still_being_read_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = AgentTableFile(str(written(tmp_path / "agents.txt", "crawler\tAbc\n")))
    may_go_on, real = threading.Event(), AgentTableFile._read_again
    monkeypatch.setattr(AgentTableFile, "_read_again", lambda self: may_go_on.wait(30) and real(self))
    written(tmp_path / "agents.txt", "crawler\tXqz\n")
    file.look()
    file.look()
    assert file.classifier.classify(b"Xqz/1.0").caller_class is BOT
    may_go_on.set()
    read()
    file.look()
    assert file.classifier.classify(b"Xqz/1.0").caller_class is CRAWLER
