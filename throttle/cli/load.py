"""`throttle load`: people, feed readers, crawlers polite and rude, sent at a site; a table of who got what."""

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from throttle.cli import COMMANDS, DONE, INTERRUPTED, NOT_MET, WRONG_USAGE, CommandError, need_extra
from throttle.cli.crowd_run import send
from throttle.cli.demo_site import DATA, PAPERS_MAP, DemoSite, running_site
from throttle.cli.options import factor, seconds
from throttle.cli.requirement import Requirement, RequirementError, requirement
from throttle.cli.screen import Screen
from throttle.cli.target import DEMO, OWNED, Target, TargetError, target_of
from throttle.load.clockwork import DRAIN_SECONDS
from throttle.load.mix import PEOPLE, Mix, MixError, built_in, read_mix
from throttle.load.page import Run, page
from throttle.load.panels import panels
from throttle.load.places import SiteMap
from throttle.load.report import Report, percentile
from throttle.load.run import report_for
from throttle.load.wire import Wire, has_loopback_network
from throttle.plot.png import NoPillowError, png

SCHEMA_VERSION = 1
WITH, WITHOUT = "with the throttle", "without the throttle"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `throttle load` takes."""
    parser.epilog = (
        "Exit code: 0 done; 1 a requirement was not met, or there is no site; 2 wrong usage; 130 interrupted. "
        "A mix is a TOML file; throttle/load/mixes has examples."
    )
    add = parser.add_argument
    add("target", metavar="URL", help=f"such as http://127.0.0.1:8000; or {DEMO}: the demo site, started for this")
    add(
        "--mix", default="storm", metavar="MIX", help=f"a TOML file, or one of {', '.join(built_in())} (default: storm)"
    )
    add("--seconds", type=seconds, metavar="N", help="how long; else as long as the mix says")
    add("--scale", type=factor, default=1.0, metavar="TIMES", help="so many times the machines; people stay as many")
    add("--seed", type=int, default=1, metavar="N", help="the same seed sends the same (default: 1)")
    add(
        "--compare",
        nargs="?",
        const=DEMO,
        metavar="URL",
        help=f"the same also at a site without the throttle: at the URL, or, for {DEMO}, the demo site without it",
    )
    add("--forwarded", action="store_true", help="callers name their addresses in X-Forwarded-For; the site must trust")
    add(
        "--require",
        action="append",
        default=[],
        metavar="CONDITION",
        help="such as 'browser.p95<0.3'; if it does not hold, the exit code is 1",
    )
    add("--json", action="store_true", help="write the report as one JSON document, all else to standard error")
    add("--report", type=Path, metavar="FILE", help="also write it as a page (.html) or a picture (.png)")
    add(OWNED, action="store_true", dest="is_owned", help="load a host that is not in a private network")


class _Side(NamedTuple):
    """One of the sites that get the same traffic."""

    title: str
    target: Target | None
    """None: the demo site"""
    throttled: bool


def run(arguments: argparse.Namespace) -> int:
    """Run the load test; the exit code."""
    try:
        mix = read_mix(arguments.mix).scaled(arguments.scale)
        sides = _sides(arguments)
        required = [requirement(stated, _figures(_blank(mix, sides))) for stated in arguments.require]
        _check_report(arguments.report)
    except (MixError, TargetError, RequirementError) as error:
        print(f"throttle load: {error}", file=sys.stderr)
        return WRONG_USAGE
    if arguments.seconds is not None:
        mix = mix.lasting(arguments.seconds)
    screen = Screen(sys.stderr if arguments.json else None)
    runs: list[Run] = []
    for side in sides:
        ran = _run_side(side, mix, arguments, screen)
        runs.append(ran)
        if not arguments.json:
            screen.table(ran.report)
        if not ran.is_whole:
            break
    return _conclude(runs, mix, arguments, required)


def _conclude(runs: list[Run], mix: Mix, arguments: argparse.Namespace, required: list[Requirement]) -> int:
    if arguments.json:
        print(json.dumps(_document(runs, mix, arguments), indent=2))
    if arguments.report is not None:
        _write(arguments.report, runs, mix, arguments)
    if not all(ran.is_whole for ran in runs):
        return INTERRUPTED
    figures = _figures(runs)
    failed = [one for one in required if not one.is_met(figures)]
    for one in failed:
        print(f"throttle load: {one.why_not(figures)}", file=sys.stderr)
    return NOT_MET if failed else DONE


def _sides(arguments: argparse.Namespace) -> list[_Side]:
    """The site as it is; before it, where they are compared, the one without the throttle."""
    if arguments.target == DEMO:
        if arguments.compare not in (None, DEMO):
            raise TargetError(f"--compare takes no URL where {DEMO} is loaded")
        sides = [_Side(WITH, None, True)]
        return [_Side(WITHOUT, None, False), *sides] if arguments.compare else sides
    site = target_of(arguments.target, is_owned=arguments.is_owned)
    if arguments.compare is None:
        return [_Side(arguments.target, site, True)]
    if arguments.compare == DEMO:
        raise TargetError("--compare needs the URL of the same site without the throttle: --compare http://...")
    other = target_of(arguments.compare, is_owned=arguments.is_owned)
    return [_Side(f"{arguments.compare}, to compare", other, False), _Side(arguments.target, site, True)]


def _run_side(side: _Side, mix: Mix, arguments: argparse.Namespace, screen: Screen) -> Run:
    with _site(side, arguments) as (wire, site, site_map):
        where = side.title if site is None else f"{side.title}, {site.address}"
        screen.say(
            f"{arguments.mix}, {mix.title or 'a mix of yours'}; {mix.seconds:g} s, seed {arguments.seed}: {where}"
        )
        if note := _note(side, arguments):
            screen.say(note)
        report, is_whole = send(
            mix, site_map, wire, screen, seconds=mix.seconds, drain=DRAIN_SECONDS, seed=arguments.seed, site=site
        )
    if not is_whole:
        screen.say("Interrupted. So far:")
    return Run(side.title, report, is_whole)


@contextlib.contextmanager
def _site(side: _Side, arguments: argparse.Namespace) -> Iterator[tuple[Wire, DemoSite | None, SiteMap | None]]:
    own_map = read_mix(arguments.mix).site
    if side.target is not None:
        yield side.target.wire(forwards=arguments.forwarded), None, own_map
        return
    need_extra(COMMANDS["demo"])
    data = Path(os.environ[DATA]) if os.environ.get(DATA, "").strip() else None
    forwards = arguments.forwarded or not has_loopback_network()
    environment = {"APP_EXAMPLE_THROTTLED": str(int(side.throttled))}
    with running_site(data=data, trusts_forwarding=forwards, environment=environment) as site:
        yield Wire(site.port, forwards=forwards), site, own_map or PAPERS_MAP


def _note(side: _Side, arguments: argparse.Namespace) -> str:
    if side.target is None or arguments.forwarded:
        return ""
    if not (side.target.is_loopback and ":" not in side.target.address and has_loopback_network()):
        return "All callers come from one address here; --forwarded lets them name their own."
    return ""


def _blank(mix: Mix, sides: Sequence[_Side]) -> list[Run]:
    return [Run(side.title, report_for(mix)) for side in sides]


def _figures(runs: Sequence[Run]) -> dict[str, float | None]:
    """Of the site itself; with the prefix `without.` of the one that it is compared with."""
    figures = _with_browsers(runs[-1].report)
    if len(runs) == 2:
        figures |= {f"without.{name}": value for name, value in _with_browsers(runs[0].report).items()}
    return figures


def _with_browsers(report: Report) -> dict[str, float | None]:
    """People are also called `browser`, as in `throttle replay`."""
    figures = report.figures()
    people = [name for name in figures if name.startswith(f"{PEOPLE}.")]
    return figures | {name.replace(PEOPLE, "browser", 1): figures[name] for name in people}


def _document(runs: Sequence[Run], mix: Mix, arguments: argparse.Namespace) -> dict[str, object]:
    return {
        "schema_version": SCHEMA_VERSION,
        "mix": arguments.mix,
        "scale": arguments.scale,
        "seed": arguments.seed,
        "seconds": mix.seconds,
        "runs": [
            {
                "site": ran.title,
                "is_whole": ran.is_whole,
                "classes": ran.report.as_json(),
                "crowd_late_p99_seconds": percentile(ran.report.late, 0.99),
                "counts": [told._asdict() for told in ran.report.counts],
            }
            for ran in runs
        ],
    }


def _check_report(path: Path | None) -> None:
    """Before an hour's work is lost on it."""
    if path is None:
        return
    if path.suffix not in (".html", ".png"):
        raise RequirementError(f"--report {path}: the name must end in .html or .png")
    if path.suffix == ".png" and find_spec("PIL") is None:
        raise CommandError(str(NoPillowError()))
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise RequirementError(f"--report {path}: no file can be written there")


def _write(path: Path, runs: Sequence[Run], mix: Mix, arguments: argparse.Namespace) -> None:
    try:
        if path.suffix == ".png":
            path.write_bytes(png([panels(ran.report, mix.seconds, ran.title) for ran in runs]))
            return
        facts = [
            f"{arguments.mix}: {mix.title or 'a mix'}; {mix.seconds:g} s, seed {arguments.seed}, machines × "
            f"{arguments.scale:g}. Requests start on schedule whether or not earlier ones are answered."
        ]
        path.write_text(page(runs, mix.seconds, facts), encoding="utf-8")
    except OSError as error:
        raise CommandError(f"--report {path}: {error.strerror}") from None
