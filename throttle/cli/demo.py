"""`throttle demo`: a site behind the throttle, half a minute of traffic, a table; then the site until Ctrl-C."""

import argparse
import asyncio
import contextlib
import html
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

from throttle.cli import DONE, INTERRUPTED, CommandError
from throttle.cli.demo_site import DATA, DemoSite, running_site
from throttle.cli.screen import Screen
from throttle.load.clockwork import DRAIN_SECONDS, Clockwork
from throttle.load.crowd import (
    BROWSERS,
    FEED_READER,
    FILES,
    PEOPLE,
    POLITE_AGENT,
    POLITE_CRAWLER,
    RUDE_AGENT,
    RUDE_CRAWLER,
    Ask,
    Caller,
    Places,
    feed_reader,
    people,
    rude_crawler,
)
from throttle.load.flows import greedy_crawl, polite_crawl
from throttle.load.report import Report
from throttle.load.wire import Wire, has_loopback_network

TRAFFIC_SECONDS = 30.0
SEED = 2004
PEOPLE_COUNT, THINK_SECONDS = 20, 6.0
FEED_EVERY_SECONDS = 3.0
RUDE_RATE, RUDE_ADDRESSES, RUDE_CONNECTIONS = 25.0, 8, 16
SEARCHES = ("open+access", "citation+analysis", "peer+review", "metadata", "%22digital+library%22")

CROWD = f"""\
  {PEOPLE_COUNT} people, who read each page for {THINK_SECONDS:g} s;
  a feed reader, which asks every {FEED_EVERY_SECONDS:g} s;
  a polite crawler, which keeps to the Crawl-delay of robots.txt and to every Retry-After;
  a rude one: {RUDE_RATE:g} requests a second from {RUDE_ADDRESSES} addresses, whatever it is told, and soon from
  {RUDE_CONNECTIONS} others for the dearest pages, one after the other without a pause."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `throttle demo` takes."""
    parser.epilog = (
        "The exit code is 0 also after Ctrl-C, once the traffic is over; 130 after Ctrl-C while it runs; "
        "1 if the site cannot start or ends early; 2 for wrong usage."
    )
    parser.add_argument("--port", type=_port, default=0, help="serve on this port of 127.0.0.1; else on a free one")
    parser.add_argument(
        "--seconds",
        type=_seconds,
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
        report = Report((PEOPLE, FILES, FEED_READER, POLITE_CRAWLER, RUDE_CRAWLER))
        seconds, drain = _shared_out(arguments.seconds)
        screen.say(f"Traffic for {seconds:.3g} s:\n{CROWD}")
        if forwards:
            screen.say("  Only 127.0.0.1 is to be had here, so callers tell their addresses in X-Forwarded-For.")
        is_whole = False
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(_traffic(site, Wire(site.port, forwards=forwards), report, seconds, drain, screen))
            is_whole = True
        _show(report, seconds, screen, as_json=arguments.json, is_whole=is_whole)
        if not is_whole:
            return INTERRUPTED
        _serve_on(site, screen, None if arguments.seconds is None else began + arguments.seconds)
    return DONE


def _shared_out(total: float | None) -> tuple[float, float]:
    """Seconds of traffic, and for the last answers to come: together no more than the total, if there is one."""
    drain = DRAIN_SECONDS if total is None else min(DRAIN_SECONDS, total / 6)
    return TRAFFIC_SECONDS if total is None else min(TRAFFIC_SECONDS, total - drain), drain


async def _traffic(site: DemoSite, wire: Wire, report: Report, seconds: float, drain: float, screen: Screen) -> None:
    places = await _places(wire)
    crawler = Caller(POLITE_CRAWLER, "127.0.3.1", POLITE_AGENT)
    flows = [(0.0, crawler, polite_crawl(("/sitemap.xml", *places.pages)))]
    for number in range(RUDE_CONNECTIONS):
        caller = Caller(RUDE_CRAWLER, f"127.0.5.{1 + number}", RUDE_AGENT)
        flows.append((seconds / 5, caller, greedy_crawl(Random(number), places.expensive)))
    async with screen.progress(report, seconds):
        work = Clockwork(wire, report).run(_plan(places, seconds), flows, seconds=seconds, drain=drain)
        clockwork = asyncio.create_task(work)
        try:
            while not clockwork.done():
                await asyncio.wait([clockwork], timeout=0.5)
                _expect_alive(site)
            await clockwork
        finally:
            clockwork.cancel()
            await asyncio.gather(clockwork, return_exceptions=True)


def _plan(places: Places, seconds: float) -> Iterator[Ask]:
    random = Random(SEED)
    yield from people(random, places, seconds, count=PEOPLE_COUNT, think_seconds=THINK_SECONDS)
    yield from feed_reader(places, seconds, every=FEED_EVERY_SECONDS)
    yield from rude_crawler(random, places, seconds, rate=RUDE_RATE, addresses=RUDE_ADDRESSES)


async def _places(wire: Wire) -> Places:
    """The site's paths, from its own pages, read once before the traffic."""
    guide = Caller("guide", "127.0.0.1", BROWSERS[0], "text/html")
    bodies = {}
    for path in ("/sitemap.xml", "/users"):
        answer = await wire(guide, path)
        if not answer.is_served:
            raise CommandError(f"the site does not answer {path}: {answer.failed or answer.refused_by}")
        bodies[path] = answer.body.decode()
    paths = [html.unescape(path) for path in re.findall(r"<loc>https?://[^/<]+(/[^<]*)</loc>", bodies["/sitemap.xml"])]
    tags = [path for path in paths if path.startswith("/tag/")]
    return Places(
        pages=(*paths, *(f"/search?q={words}" for words in SEARCHES)),
        feeds=("/feed.atom", *(f"{path}/feed.atom" for path in tags[:3])),
        expensive=tuple(dict.fromkeys(re.findall(r'href="(/user/[^"/]+/related)"', bodies["/users"]))),
    )


def _show(report: Report, seconds: float, screen: Screen, *, as_json: bool, is_whole: bool) -> None:
    if not is_whole:
        screen.say("Interrupted. So far:")
    if as_json:
        print(json.dumps({"seconds": seconds, "is_whole": is_whole, "classes": report.as_json()}, indent=2), flush=True)
    else:
        screen.table(report)


def _serve_on(site: DemoSite, screen: Screen, until: float | None) -> None:
    left = None if until is None else until - time.monotonic()
    if left is not None and left <= 0:
        return
    how_long = "until Ctrl-C" if left is None else f"for {left:.0f} s more"
    with contextlib.suppress(KeyboardInterrupt, subprocess.TimeoutExpired):
        screen.say(f"The site stays at {site.address} {how_long}.")
        site.process.wait(left)
        _expect_alive(site)


def _expect_alive(site: DemoSite) -> None:
    if site.has_ended:
        raise CommandError(f"the site has ended unexpectedly: {site.last_words() or 'it did not say why'}")


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and 1 <= int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is no port; a number from 1 to 65535 is needed")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 1 <= seconds <= 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; a number of seconds, at least 1, is needed")
    return seconds
