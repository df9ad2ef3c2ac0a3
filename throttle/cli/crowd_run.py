"""Sends a mix at a site while the screen shows it; what `throttle demo` and `throttle load` have in common."""

import asyncio
import contextlib
import time
from collections.abc import Sequence

from throttle.cli import CommandError
from throttle.cli.demo_site import DemoSite
from throttle.cli.screen import Screen
from throttle.load.agents import ACCEPT_OF_PEOPLE, BROWSERS
from throttle.load.crowd import Caller
from throttle.load.mix import Mix
from throttle.load.places import Places, SiteError, SiteMap, find_places
from throttle.load.report import Counts, Report
from throttle.load.run import report_for, run, run_fast
from throttle.load.wire import LOOPBACK, Wire

GUIDE_SECONDS = 20.0
"""in which a site must have told where its pages are"""


def send(
    mix: Mix,
    site_map: SiteMap | None,
    wire: Wire,
    screen: Screen,
    *,
    seconds: float,
    drain: float,
    seed: int,
    site: DemoSite | None = None,
) -> tuple[Report, bool]:
    """The report, and whether the traffic ran to its end. `site`: the one that was started for it.

    Raises CommandError where there is no site, or it ends meanwhile. Ctrl-C leaves what was measured so far.
    """
    report = report_for(mix)
    started = [0.0]

    async def traffic() -> None:
        places = await _places(site_map, wire)
        started[0] = time.monotonic()
        work = run(mix, places, wire, report, seconds=seconds, seed=seed, drain=drain)
        async with screen.progress(report, seconds):
            await _watched(asyncio.create_task(work), site)

    is_whole = False
    with contextlib.suppress(KeyboardInterrupt):
        run_fast(traffic())
        is_whole = True
    if site is not None and started[0]:
        report.counts = since(site.counts, started[0])
    return report, is_whole


def since(counts: Sequence[Counts], start: float) -> list[Counts]:
    """What was told from an instant on, counted from it."""
    return [told._replace(at=told.at - start) for told in counts if told.at >= start]


async def _places(site_map: SiteMap | None, wire: Wire) -> Places:
    guide = Caller("guide", LOOPBACK, BROWSERS[0], ACCEPT_OF_PEOPLE)
    try:
        async with asyncio.timeout(GUIDE_SECONDS):
            return await find_places(site_map, lambda path: wire(guide, path))
    except SiteError as error:
        raise CommandError(str(error)) from None
    except TimeoutError:
        raise CommandError(f"the site has not told where its pages are in {GUIDE_SECONDS:g} s") from None


async def _watched(work: "asyncio.Task[None]", site: DemoSite | None) -> None:
    try:
        while not work.done():
            await asyncio.wait([work], timeout=0.5)
            if site is not None:
                expect_alive(site)
        await work
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


def expect_alive(site: DemoSite) -> None:
    """Raises CommandError where the site has ended by itself."""
    if site.has_ended:
        raise CommandError(f"the site has ended unexpectedly: {site.last_words() or 'it did not say why'}")
