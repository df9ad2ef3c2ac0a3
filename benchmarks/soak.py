"""Does anything grow, leak or drift in an hour of storm?

    make soak                           an hour; SOAK_SECONDS=86400 for a day, SOAK_SECONDS=300 for a look
    python benchmarks/soak.py --seconds 3600 --times 5 --load-max auto --preset connotea

A site of mixed costs (nine pages of 5 ms to one of 100 ms) behind the throttle, at five times what it can serve, minute
after minute. Told of each: people's share served and p95, machines served a second, the site's memory, the limit in
force. Bars: memory grows by less than 8 MiB after the first tenth of the time; nothing runs and nobody sleeps at the
end; the limit's median over the last third is within a third of that over the middle one; nobody's request failed.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from storming.runs import TIMEOUT_SECONDS, Subject, capacity, cores, crowd, environment_of, ours, result_of
from storming.sites import PLACES

from throttle.cli.demo_site import DemoSite, running_site
from throttle.load.report import Counts
from throttle.load.run import report_for, run, run_fast
from throttle.load.wire import Wire

GROWTH_MIB_MAX = 8.0
DRIFT_MAX = 1 / 3
DRAIN_SECONDS = 3.0
SITE = "mixed"


class Minute(NamedTuple):
    """One window of traffic."""

    at: float
    success: float
    p95: float
    goodput: float
    failed: int
    mib: float
    load_max: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--times", type=float, default=5.0)
    parser.add_argument("--load-max", default="auto")
    parser.add_argument("--preset", default="connotea", choices=["connotea", "modern"])
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if cores()[1]:
        os.sched_setaffinity(0, cores()[1])
    subject = ours(given.load_max if given.load_max == "auto" else int(given.load_max), given.preset)
    with tempfile.TemporaryDirectory(prefix="soak-") as data:
        minutes, left = soak(subject, given.seconds, given.times, Path(data))
    bars = judged(minutes, left)
    if given.json:
        print(json.dumps({"minutes": [minute._asdict() for minute in minutes], "bars": bars}, indent=1))
    else:
        print("", *(f"  {'hit' if is_met else 'MISSED'}: {what}" for what, is_met in bars.items()), sep="\n")
    sys.exit(0 if all(bars.values()) else 1)


def soak(subject: Subject, seconds: float, times: float, data: Path) -> tuple[list[Minute], Counts]:
    rate = times * capacity(SITE, data)
    print(f"{subject.name}: {rate:.0f} requests a second, {times:g} times what the site serves, for {seconds:.0f} s")
    minutes: list[Minute] = []
    with running_site(app="storming.sites:app", data=data, environment=environment_of(SITE, subject)) as site:
        began = time.monotonic()
        window = min(60.0, seconds / 10)
        while (now := time.monotonic() - began) < seconds:
            told = len(site.counts)
            minutes.append(one_minute(site, rate, window, now, len(minutes)))
            limits = [counts.load_max or 0 for counts in site.counts[told:]]
            minutes[-1] = minutes[-1]._replace(load_max=median(limits) if limits else 0)
            say(minutes[-1])
        time.sleep(31)  # the longest sleep of a deferred request, and a telling
        return minutes, site.counts[-1]


def one_minute(site: DemoSite, rate: float, window: float, now: float, number: int) -> Minute:
    mix = crowd(rate, window, site=SITE)
    report = report_for(mix)
    wire = Wire(site.port)
    places = PLACES[SITE]
    work = run(mix, places, wire, report, seconds=window, seed=number, drain=DRAIN_SECONDS, timeout=TIMEOUT_SECONDS)
    run_fast(work)
    result = result_of(report, mix, 0.0, (0, 0))
    failed = report.tallies["people"].failed.total()
    return Minute(now, result.success, result.p95, result.goodput, failed, resident(site.process.pid), 0.0)


def resident(process: int) -> float:
    """MiB that a process holds; NaN where the system does not tell."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
    except OSError:
        return float("nan")


def say(minute: Minute) -> None:
    print(
        f"{minute.at:7.0f} s: people {100 * minute.success:.1f} %, p95 {minute.p95:.3f} s; machines "
        f"{minute.goodput:.1f}/s; site {minute.mib:.1f} MiB; limit {minute.load_max:g}",
        flush=True,
    )


def judged(minutes: list[Minute], left: Counts) -> dict[str, bool]:
    settled = minutes[len(minutes) // 10]
    growth = minutes[-1].mib - settled.mib
    third = max(1, len(minutes) // 3)
    middle = median(minute.load_max for minute in minutes[-2 * third : -third] or minutes[:1])
    last = median(minute.load_max for minute in minutes[-third:])
    failed = sum(minute.failed for minute in minutes)
    served: Any = median(minute.success for minute in minutes)
    return {
        f"memory grew by {growth:.1f} MiB from {settled.mib:.1f} (bar: {GROWTH_MIB_MAX:g})": not growth
        > GROWTH_MIB_MAX,
        f"running {left.load}, sleeping {left.sleeping} at the end (bar: 0)": left.load == left.sleeping == 0,
        f"limit {last:g} in the last third, {middle:g} before (bar: within a third)": abs(last - middle)
        <= max(1.0, DRIFT_MAX * middle),
        f"people's requests failed: {failed} (bar: 0); served, median: {100 * served:.2f} %": failed == 0,
    }


if __name__ == "__main__":
    main()
