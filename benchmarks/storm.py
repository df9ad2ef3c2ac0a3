"""What do people get while crawlers storm the site, behind each of the usual gates?

    python benchmarks/storm.py --quick          some five minutes: two sites, ten times what they can serve, one round
    python benchmarks/storm.py --short          some twenty-five minutes: three sites, all storms, two short rounds
    python benchmarks/storm.py                  hours: all of it, five rounds
    python benchmarks/storm.py --sites cheap --times 10 20 --rounds 3
    python benchmarks/storm.py --shared --sites mixed --times 10       a core to spare: all cores for site and crowd
    python benchmarks/storm.py --json           for machines

Sites: cheap (5 ms a page), dear (100 ms), mixed (nine cheap to one dear), demo, loop (20 ms, in the event loop), python
(20 ms in a thread, holding the interpreter's lock). The crowd: so many times what the bare site can serve, of it 2 % by
people, the rest by crawlers and bots in two thousand addresses. Each round runs the people alone at the bare site, each
subject in turning order, and the people alone again; ratios are within a round, and the medians of the rounds are told.
Site and crowd have a core each. «Nobody but people» refuses every machine: what people get then no gate can better,
since the refused must still be answered. Exit code 1 when a bar for ours is missed. Makes .venv-peers first. In the
short form the peers come at ten times only, the semaphore, the best fixed limit and «nobody» from ten times on, and
that limit is searched once a site; few people come in so short a time, so read how many.
"""

import argparse
import json
import math
import os
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from decision import peers_environment
from decision.report import table

SEED = 9
SITES = ("cheap", "dear", "mixed", "demo", "loop", "python")
SECONDS = {"cheap": 10.0, "dear": 30.0, "mixed": 15.0, "demo": 20.0, "loop": 15.0, "python": 15.0}
"""of one run: as many as it takes for two hundred people, where that is not too long"""
SHORT_SITES = ("cheap", "mixed", "dear")
SHORT_SECONDS = {"cheap": 4.0, "mixed": 5.0, "dear": 8.0, "demo": 6.0, "loop": 5.0, "python": 5.0}
FIXED = (1, 2, 3, 4, 6, 8, 12)
"""among which the best fixed limit is searched"""
MIXED_COSTS, ONE_COST = {10: 1.3, 20: 1.4}, {10: 1.5, 20: 1.6}
BARS = {site: MIXED_COSTS if site in ("mixed", "demo") else ONE_COST for site in SITES}
"""people's p95 by that of the same people alone, for auto"""
GOODPUT_BAR, SUCCESS_BAR = 0.85, 0.999
LATE = 0.1
"""seconds by which the crowd may be late at p99"""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--sites", nargs="+", choices=SITES, default=None)
    parser.add_argument("--times", nargs="+", type=float, default=None, help="of what the site can serve")
    parser.add_argument("--rounds", type=int, default=None)
    parser.add_argument("--seconds", type=float, default=None, help="of one run")
    parser.add_argument("--shared", action="store_true", help="site and crowd may use all cores")
    parser.add_argument("--no-peers", action="store_true", help="leave the peers out; runs in this environment")
    parser.add_argument("--json", action="store_true", help="results for machines")
    return parser.parse_args()


def main() -> None:
    given = options()
    if not given.no_peers and not peers_environment.is_entered():
        peers_environment.enter()
    from storming.runs import cores, share_cores

    if given.shared:
        share_cores()
    if cores()[1]:
        os.sched_setaffinity(0, cores()[1])
    sites = given.sites or (("cheap", "dear") if given.quick else SHORT_SITES if given.short else SITES[:4])
    times = given.times or ((10,) if given.quick else (1, 5, 10, 20))
    rounds = given.rounds or (1 if given.quick else 2 if given.short else 5)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="storm-") as data:
        for site in sites:
            usual = SHORT_SECONDS[site] if given.short else SECONDS[site] * (0.33 if given.quick else 1)
            best: int | None = None
            for factor in sorted(
                times, key=lambda factor: factor != 10
            ):  # in a short form, the best limit is that of ten
                question = Question(site, factor, given.seconds or usual, rounds, Path(data), given)
                question.best = best
                found[f"{site} × {factor:g}"] = question.answer()
                best = question.best if given.short else None
    if given.json:
        print(json.dumps(found, indent=1))
    missed = [line for one in found.values() for line in one["bars"] if line.startswith("MISSED")]
    if not given.json:
        for name, one in found.items():
            show(name, one)
        print(summary(found))
    sys.exit(1 if missed else 0)


class Question:
    """One site under one storm."""

    def __init__(self, site: str, factor: float, seconds: float, rounds: int, data: Path, given: Any) -> None:
        self.site, self.factor, self.seconds, self.rounds, self.data = site, factor, seconds, rounds, data
        self.given = given
        self.best: int | None = None
        """the best fixed limit, where it has been searched"""

    def answer(self) -> dict[str, Any]:
        from storming.runs import BARE, PEOPLE_ONLY, Subject, capacity, ours

        capacities = [capacity(self.site, self.data)]
        self.rate = self.factor * capacities[0]
        if self.given.short and not self.given.seconds:  # people are few in a small storm
            self.seconds *= min(2.0, max(1.0, 30 / (0.02 * self.rate * self.seconds)))
        print(f"{self.site} × {self.factor:g}: {self.rate:.0f} requests a second", file=sys.stderr)
        is_brief = self.given.short and self.factor < 10
        if self.best is None and not is_brief:
            self.best = self._best_fixed()
        has_peers = not self.given.no_peers and (self.factor == 10 or not self.given.short)
        subjects = [BARE, ours(15), ours("auto")]
        if has_peers:
            subjects[1:1] = [Subject("slowapi", "slowapi"), Subject("limits", "limits")]
        if not is_brief:
            subjects.insert(-2, Subject("semaphore, 15", "semaphore"))
            subjects += [ours(self.best)._replace(name=f"ours, best fixed ({self.best})"), PEOPLE_ONLY]
        rounds: list[dict[str, Any]] = []
        for number in range(self.rounds):
            turned = subjects[number % len(subjects) :] + subjects[: number % len(subjects)]
            alone = self._run(BARE, number, machines=False)
            runs = {subject.name: self._run(subject, number) for subject in turned}
            after = self._run(BARE, number, machines=False)
            # Before and after: the machine's own speed may change within a round.
            alone = alone._replace(p95=(alone.p95 + after.p95) / 2)
            rounds.append({"alone": alone, **{s.name: runs[s.name] for s in subjects}})
        return self._told(rounds, capacities[0], [s.name for s in subjects])

    def _run(self, subject: Any, number: int, *, machines: bool = True, seconds: float | None = None) -> Any:
        from storming.runs import crowd, measure

        mix = crowd(self.rate, seconds or self.seconds, machines=machines, site=self.site)
        result = measure(self.site, subject, mix, self.data, SEED + number)
        who = subject.name if machines else "people alone"
        print(
            f"{self.site} × {self.factor:g}, {who}: people {100 * result.success:.1f} %, p95 {result.p95:.3f} s "
            f"(onset {result.onset_p95:.3f}), machines {result.goodput:.1f}/s; crowd's CPU "
            f"{result.crowd_cpu:.0%}, late {result.late:.3f} s",
            file=sys.stderr,
        )
        return result

    def _best_fixed(self) -> int:
        """The fixed limit with most for machines among those that keep people's bar; else the kindest to people."""
        from storming.runs import ours

        seconds = self.seconds * 0.6
        alone = self._run(ours(1), 0, machines=False, seconds=seconds).p95
        bar = BARS[self.site].get(int(self.factor), 1.5)
        candidates = FIXED[:3:2] if self.given.quick else FIXED[:3] if self.given.short else FIXED
        tried = {limit: self._run(ours(limit), 0, seconds=seconds) for limit in candidates}
        good = {limit: one for limit, one in tried.items() if one.p95 <= bar * alone and one.success >= SUCCESS_BAR}
        if good:
            return max(good, key=lambda limit: good[limit].goodput)
        return min(tried, key=lambda limit: tried[limit].p95)

    def _told(self, rounds: list[dict[str, Any]], capacity: float, names: list[str]) -> dict[str, Any]:
        rows = {}
        best = next((name for name in names if "best fixed" in name), None)
        for name in names:
            with_people = [one for one in rounds if one[name].p95 and one["alone"].p95]
            ratios = [one[name].p95 / one["alone"].p95 for one in with_people]
            onsets = [one[name].onset_p95 / one["alone"].p95 for one in with_people if one[name].onset_p95]
            rows[name] = {
                "success": median(one[name].success for one in rounds),
                "ratio": median(ratios) if ratios else math.nan,
                "onset_ratio": median(onsets) if onsets else None,
                "goodput": median(one[name].goodput for one in rounds),
                "goodput_to_best": best and median(one[name].goodput / max(one[best].goodput, 1e-9) for one in rounds),
                "people": sum(one[name].people for one in rounds),
                "ratios": [round(ratio, 2) for ratio in ratios],
                "left": [one[name].counts_left for one in rounds],
            }
        return {
            "capacity": capacity,
            "offered": self.rate,
            "alone_p95": median(one["alone"].p95 for one in rounds),
            "crowd_late": max(one[name].late for one in rounds for name in names),
            "crowd_cpu": max(one[name].crowd_cpu for one in rounds for name in names),
            "rows": rows,
            "bars": self._bars(rows["ours, auto"]),
        }

    def _bars(self, auto: dict[str, Any]) -> list[str]:
        bar = BARS[self.site].get(int(self.factor))
        if bar is None:
            return []
        return [
            verdict(auto["ratio"] <= bar, f"auto, people's p95 ratio {auto['ratio']:.2f} (bar: {bar})"),
            verdict(auto["success"] >= SUCCESS_BAR, f"auto, people served {100 * auto['success']:.1f} % (bar: 99.9)"),
            verdict(
                auto["goodput_to_best"] >= GOODPUT_BAR,
                f"auto, machines {100 * auto['goodput_to_best']:.0f} % of the best fixed limit's (bar: 85)",
            ),
        ]


def summary(found: dict[str, Any]) -> str:
    """People's p95 by that of the same people alone and, where not all, how many were served; medians of the rounds."""
    names = list(dict.fromkeys(name.partition(" (")[0] for one in found.values() for name in one["rows"]))

    def cell(row: dict[str, Any] | None) -> str:
        if row is None:
            return "-"
        served = "" if row["success"] >= SUCCESS_BAR else f", {100 * row['success']:.0f} %"
        onset = "" if row["onset_ratio"] is None else f" ({row['onset_ratio']:.1f})"
        return f"{row['ratio']:.1f}{onset}{served}"

    rows = []
    for site, one in found.items():
        by_name = {name.partition(" (")[0]: row for name, row in one["rows"].items()}
        rows.append(
            [site, str(min(row["people"] for row in one["rows"].values())), *(cell(by_name.get(n)) for n in names)]
        )
    title = "People's p95 ÷ alone (in the first seconds), and people served where not all"
    return table(title, ["", "people", *names], rows)


def verdict(is_met: bool, what: str) -> str:
    return f"{'hit' if is_met else 'MISSED'}: {what}"


def show(name: str, one: dict[str, Any]) -> None:
    rows = [
        [
            subject,
            f"{100 * row['success']:.1f} %",
            f"{row['ratio']:.1f}",
            "-" if row["onset_ratio"] is None else f"{row['onset_ratio']:.1f}",
            f"{row['goodput']:.1f}",
            " ".join(map(str, row["ratios"])),
        ]
        for subject, row in one["rows"].items()
    ]
    title = (
        f"{name}: {one['offered']:.0f} requests a second at a site that serves {one['capacity']:.0f}; "
        f"people alone: p95 {1000 * one['alone_p95']:.0f} ms; the crowd used {one['crowd_cpu']:.0%} of its core, "
        f"and was late by {1000 * one['crowd_late']:.0f} ms at p99 at most"
    )
    print(table(title, ["", "people served", "p95 ÷ alone", "in the first 3 s", "machines/s", "each round"], rows))
    if one["crowd_late"] > LATE:
        print("\n  The crowd did not keep its pace: less was offered than is said.")
    print("", *(f"  {line}" for line in one["bars"]), sep="\n")


if __name__ == "__main__":
    main()
