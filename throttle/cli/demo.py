"""`throttle demo`: a site behind the throttle, half a minute of traffic, a table; then the site until Ctrl-C."""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from throttle.cli import DONE, INTERRUPTED
from throttle.cli.crowd_run import expect_alive, send
from throttle.cli.demo_site import DATA, PAPERS_MAP, DemoSite, running_site
from throttle.cli.options import port, seconds
from throttle.cli.screen import Screen
from throttle.load.clockwork import DRAIN_SECONDS
from throttle.load.mix import Mix, read_mix
from throttle.load.report import Report
from throttle.load.wire import Wire, has_loopback_network

SEED = 2004
TRAFFIC_SECONDS = 30.0
YEAR = 31_557_600.0

CROWD = """\
  20 people, who read each page for 6 s;
  a feed reader, which asks every 3 s;
  a polite crawler, which keeps to the Crawl-delay of robots.txt and to every Retry-After, and a polite client of the
  Web API: both on the client half of this package, which finds their pace;
  a rude crawler: 20 requests a second from 4 addresses, whatever it is told;
  a greedy one: soon 14 connections that ask for the dearest pages, one after the other without a pause."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `throttle demo` takes."""
    parser.epilog = (
        "The exit code is 0 also after Ctrl-C, once the traffic is over; 130 after Ctrl-C while it runs; "
        "1 if the site cannot start or ends early; 2 for wrong usage."
    )
    parser.add_argument("--port", type=port, default=0, help="serve on this port of 127.0.0.1; else on a free one")
    parser.add_argument(
        "--seconds",
        type=seconds,
        help="stop by itself after so many seconds, traffic included; else serve until Ctrl-C",
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIRECTORY",
        help=f"keep the site's data there; else ${DATA}, else a temporary directory, removed at the end",
    )
    parser.add_argument("--json", action="store_true", help="write the table as JSON, all else to standard error")


def run(arguments: argparse.Namespace) -> int:
    """Run the demo; the exit code."""
    screen = Screen(sys.stderr if arguments.json else None)
    data = arguments.data or (Path(os.environ[DATA]) if os.environ.get(DATA, "").strip() else None)
    forwards = not has_loopback_network()
    with running_site(port=arguments.port, data=data, trusts_forwarding=forwards) as site:
        began = time.monotonic()
        screen.say(f"A library of papers, behind the throttle: {site.address}")
        length, drain = _shared_out(arguments.seconds)
        screen.say(f"Traffic for {length:.3g} s:\n{CROWD}")
        if forwards:
            screen.say("  Only 127.0.0.1 is to be had here, so callers tell their addresses in X-Forwarded-For.")
        wire = Wire(site.port, forwards=forwards)
        report, is_whole = send(
            _mix(length), PAPERS_MAP, wire, screen, seconds=length, drain=drain, seed=SEED, site=site
        )
        _show(report, length, screen, as_json=arguments.json, is_whole=is_whole)
        if not is_whole:
            return INTERRUPTED
        _serve_on(site, screen, None if arguments.seconds is None else began + arguments.seconds)
    return DONE


def _mix(length: float) -> Mix:
    return read_mix("demo").lasting(length)


def _shared_out(total: float | None) -> tuple[float, float]:
    """Seconds of traffic, and for the last answers to come: together no more than the total, if there is one."""
    drain = DRAIN_SECONDS if total is None else min(DRAIN_SECONDS, total / 6)
    return TRAFFIC_SECONDS if total is None else min(TRAFFIC_SECONDS, total - drain), drain


def _show(report: Report, length: float, screen: Screen, *, as_json: bool, is_whole: bool) -> None:
    if not is_whole:
        screen.say("Interrupted. So far:")
    if as_json:
        print(json.dumps({"seconds": length, "is_whole": is_whole, "classes": report.as_json()}, indent=2), flush=True)
    else:
        screen.table(report)


def _serve_on(site: DemoSite, screen: Screen, until: float | None) -> None:
    left = None if until is None else until - time.monotonic()
    if left is not None and left <= 0:
        return
    how_long = "until Ctrl-C" if left is None else f"for {left:.0f} s more"
    with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
        screen.say(f"The site stays at {site.address} {how_long}.")
        # Without an end it would wait in the kernel, and a Ctrl-C that comes just before would be heard never.
        site.process.wait(left or YEAR)
        expect_alive(site)
