"""How many robots may say that they are browsers before people suffer?

    python benchmarks/disguised.py              some twenty-five minutes a round
    python benchmarks/disguised.py --quick      half the shares; --shares 0.05 0.1 for these
    python benchmarks/disguised.py --json       for machines

The crowd of `storm.py` at ten times what a site of mixed costs can serve, with `load_max="auto"`; a share of the
machines' requests comes with the agents of browsers, and to the rules is people. Two ways: from two thousand addresses
in two hundred networks, and from 250 in one. Told for each preset and share: people's success and their p95 by that of
the same people alone, both after the first fifteen seconds, and the smallest share at which a bar breaks.
It always does at some share: this measures where.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from decision.report import table
from storming.runs import BARE, capacity, cores, crowd, measure, ours

SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
SPREADS = {"2,000 addresses in 200 networks": (2000, 200), "250 addresses in one network": (250, 1)}
PRESETS = ("connotea", "modern")
RATIO_BAR, SUCCESS_BAR = 1.3, 0.999
WINDOW = 15.0
"""seconds of a hit stack, in which each caller and network has a burst to spend; not counted"""
SEED = 31
SITE = "mixed"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--shares", nargs="+", type=float, default=None, help="of the machines' requests, 0 to 1")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=40.0, help="of one run")
    parser.add_argument("--times", type=float, default=10.0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if cores()[1]:
        os.sched_setaffinity(0, cores()[1])
    shares = given.shares or (SHARES[::2] if given.quick else SHARES)
    with tempfile.TemporaryDirectory(prefix="disguised-") as data:
        rate = given.times * capacity(SITE, Path(data))
        rounds = [one_round(rate, shares, given.seconds, Path(data), SEED + n) for n in range(given.rounds)]
    medians = {
        cell: (median(one[cell][0] for one in rounds), median(one[cell][1] for one in rounds)) for cell in rounds[0]
    }
    if given.json:
        print(json.dumps({"rate": rate, "cells": [[*cell, *value] for cell, value in medians.items()]}, indent=1))
        return
    print(f"{rate:.0f} requests a second, {given.times:g} times what the site serves; 2 % of them by people")
    for spread in SPREADS:
        show(spread, shares, medians)


Cell = tuple[str, str, float]


def one_round(rate: float, shares: Any, seconds: float, data: Path, seed: int) -> dict[Cell, tuple[float, float]]:
    """By spread, preset and share: people's success, and p95 by that of the same people alone."""
    alone = measure(SITE, BARE, crowd(rate, seconds, machines=False, site=SITE), data, seed, onset=WINDOW)
    found = {}
    for spread, numbers in SPREADS.items():
        for share in shares:
            for preset in PRESETS:
                mix = crowd(rate, seconds, disguised=share, spread=numbers, site=SITE)
                one = measure(SITE, ours("auto", preset), mix, data, seed, onset=WINDOW)
                found[spread, preset, share] = one.late_success, one.p95 / alone.p95
                print(
                    f"{spread}, {preset}, {share:.0%} disguised: people {100 * one.late_success:.1f} %, p95 "
                    f"{one.p95 / alone.p95:.1f} times {alone.p95:.3f} s; machines {one.goodput:.1f}/s",
                    file=sys.stderr,
                )
    return found


def show(spread: str, shares: Any, found: dict[Cell, tuple[float, float]]) -> None:
    rows = []
    for preset in PRESETS:
        cells = []
        broken = "none of these"
        for share in reversed(shares):
            success, ratio = found[spread, preset, share]
            cells.insert(0, f"{100 * success:.1f} %, {ratio:.1f}")
            if success < SUCCESS_BAR or ratio > RATIO_BAR:
                broken = f"{share:.0%}"
        rows.append([preset, *cells, broken])
    head = ["people served, p95 ÷ alone", *(f"{share:.0%}" for share in shares), "a bar breaks at"]
    print(table(f"Disguised robots from {spread}, by their share of the machines' requests", head, rows))


if __name__ == "__main__":
    main()
