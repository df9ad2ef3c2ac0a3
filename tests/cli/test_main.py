import re
import subprocess
import sys
from importlib.metadata import packages_distributions, requires

import pytest

from throttle import cli
from throttle.cli import main


def test_no_command_shows_what_there_is(capsys):
    assert main([]) == 0
    assert "demo" in capsys.readouterr().out


def test_help_shows_what_there_is(capsys):
    with pytest.raises(SystemExit) as end:
        main(["-h"])
    assert end.value.code == 0
    assert "demo" in capsys.readouterr().out


def test_version_is_told(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("throttle 0.")


@pytest.mark.parametrize(
    "argv",
    [
        ["dmeo"],
        ["--wrong"],
        ["demo", "--wrong"],
        ["demo", "--port", "0"],
        ["demo", "--port", "65536"],
        ["demo", "--port", "http"],
        ["demo", "--seconds", "0"],
        ["demo", "--seconds", "nan"],
        ["demo", "--seconds", "inf"],
        ["demo", "more"],
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(argv, capsys):
    with pytest.raises(SystemExit) as end:
        main(argv)
    told = capsys.readouterr()
    assert end.value.code == 2
    assert told.out == ""
    assert len(told.err.splitlines()) == 1
    assert argv[-1] in told.err


def test_a_missing_extra_is_one_line_that_says_what_to_install(monkeypatch, capsys):
    without = cli.COMMANDS["demo"]._replace(needs=("no_such_module",))
    monkeypatch.setitem(cli.COMMANDS, "demo", without)
    assert main(["demo"]) == 1
    assert capsys.readouterr().err == (
        "throttle demo: needs no_such_module, not installed here: pip install 'asgi-throttle[demo]'\n"
    )


def test_the_demo_looks_for_everything_that_its_extra_brings():
    lines = [line for line in requires("asgi-throttle") if "extra == 'demo'" in line.replace('"', "'")]
    brought = {re.match(r"[\w-]+", line)[0].lower() for line in lines}
    origins = packages_distributions()
    looked_for = {name.lower() for module in cli.COMMANDS["demo"].needs for name in origins.get(module, ())}
    assert brought
    assert brought <= looked_for


@pytest.mark.parametrize("words", ["a --loud b", "--loud a b", "a b --loud"])
def test_options_stand_before_between_and_after_what_they_are_about(words, monkeypatch):
    class Takes:
        @staticmethod
        def add_arguments(parser):
            parser.add_argument("what", nargs="*")
            parser.add_argument("--loud", action="store_true")

        @staticmethod
        def run(arguments):
            return 7 if arguments.loud and arguments.what == ["a", "b"] else 1

    monkeypatch.setattr(cli, "_loaded", lambda command: Takes)
    assert main(["demo", *words.split()]) == 7


def test_an_interrupt_ends_without_a_traceback(monkeypatch, capsys):
    class Interrupted:
        add_arguments = staticmethod(lambda parser: None)

        @staticmethod
        def run(arguments):
            raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_loaded", lambda command: Interrupted)
    assert main(["demo"]) == 130
    assert capsys.readouterr().err == ""


def test_help_loads_no_command_and_nothing_of_an_extra():
    probe = (
        "import sys; from throttle.cli import main; main([]);"
        "print(sorted({'httpx', 'rich', 'uvicorn', 'fastapi', 'throttle.cli.demo'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
