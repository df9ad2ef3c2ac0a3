"""The command `throttle`: one file a subcommand, loaded when it is called.

Exit codes: 0 done; 1 a stated requirement was not met, or something outside stood in the way; 2 wrong usage;
130 interrupted before the work was done. A failure is one line on stderr.
"""

import argparse
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

DONE, NOT_MET, WRONG_USAGE, INTERRUPTED = 0, 1, 2, 130


class CommandError(Exception):
    """The work cannot be done; the message says why, and what to do."""


class Command(NamedTuple):
    """`module` has `add_arguments(parser)` and `run(arguments) -> exit code`."""

    module: str
    line: str
    """what it does, for `throttle -h`"""
    extra: str = ""
    needs: tuple[str, ...] = ()
    """top-level modules that come with the extra"""


COMMANDS = {
    "demo": Command(
        "throttle.cli.demo",
        "start a site behind the throttle, send it people and crawlers, show what each of them got",
        "demo",
        (
            "app_example",
            "argon2",
            "fastapi",
            "itsdangerous",
            "jinja2",
            "platformdirs",
            "python_multipart",
            "rich",
            "uvicorn",
        ),
    ),
    "load": Command(
        "throttle.cli.load",
        "send people and crawlers at a site, show what each of them got, and decide whether that is good enough",
    ),
    "replay": Command("throttle.cli.replay", "show what the throttle would have done to yesterday's access log"),
    "check": Command("throttle.cli.check", "say in sentences what a configuration file does, or what is wrong with it"),
    "crawl": Command(
        "throttle.cli.crawl",
        "fetch many pages of many hosts: politely within each, in parallel over all, and nothing lost",
        "crawl",
        ("protego", "publicsuffixlist"),
    ),
    "ranges": Command("throttle.cli.ranges", "download the lists of addresses by which crawlers can be verified"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. Only wrong usage and -h raise SystemExit, as argparse does."""
    given = list(sys.argv[1:] if argv is None else argv)
    parser = _Parser(prog="throttle", description="Admission control for Python web sites, people first.")
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and end")
    commands = parser.add_subparsers(metavar="COMMAND", parser_class=_Parser)
    name = next((word for word in given if not word.startswith("-")), None)
    if name is not None and name not in COMMANDS:
        parser.error(f"there is no command {name!r}, only: {', '.join(COMMANDS)}")
    try:
        for each, command in COMMANDS.items():
            subparser = commands.add_parser(each, help=command.line, description=f"{command.line.capitalize()}.")
            if each == name:
                module = _loaded(command)
                module.add_arguments(subparser)
                subparser.set_defaults(run=module.run)
        arguments = parser.parse_args(given)
        if not hasattr(arguments, "run"):
            parser.print_help()
            return DONE
        code: int = arguments.run(arguments)
        sys.stdout.flush()
    except CommandError as error:
        print(f"throttle {name}: {error}", file=sys.stderr)
        return NOT_MET
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOT_MET
    return code


def need_extra(command: Command) -> None:
    """Raises CommandError where what the command needs is not installed."""
    missing = [module for module in command.needs if importlib.util.find_spec(module) is None]
    if missing:
        raise CommandError(
            f"needs {', '.join(missing)}, not installed here: pip install 'asgi-throttle[{command.extra}]'"
        )


def _loaded(command: Command) -> Any:
    need_extra(command)
    return importlib.import_module(command.module)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line. A command takes its options before, between and after what they are about."""

    _is_mixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._subparsers is not None or self._is_mixing:
            return super().parse_known_args(args, namespace)
        self._is_mixing = True  # that comes back here
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._is_mixing = False

    def error(self, message: str) -> NoReturn:
        self.exit(WRONG_USAGE, f"{self.prog}: {message} ({self.prog} -h says more)\n")


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"throttle {version('asgi-throttle')}")
        parser.exit()
