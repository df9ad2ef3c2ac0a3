"""The questions, each with its table and its bars."""

import argparse
import json
import os
import platform
from dataclasses import asdict
from typing import Any

from decision import held, many_callers
from decision.added_cost import Cost, Traffic, costs
from decision.report import Bar, table
from decision.subjects import AUTO, BARE, FLOORS, OFF, ON, PEERS
from decision.traffic import BOTS, BROWSERS, CRAWLERS

PERSON = 2.0
"""seconds between two pages of one person: seven hits in fifteen seconds, so nobody is refused"""


class Report:
    """What is printed, and the same for machines."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.found: dict[str, Any] = {}
        self.bars: list[Bar] = []

    def show(self, text: object) -> None:
        if not self.options.json:
            print(text, flush=True)

    def judge(self, *bars: Bar) -> None:
        self.bars += bars
        self.show("")
        for bar in bars:
            self.show(f"  {bar}")


async def added(report: Report) -> None:
    """CPU that a served request costs above the bare site; CPU of a refusal in all."""
    quick = report.options.quick
    subjects = [*FLOORS, OFF, ON, AUTO, *([] if report.options.no_peers else PEERS)]
    many = 1_000 if quick else 10_000
    kinds = [
        *(Traffic(_callers(n), BROWSERS, n, PERSON) for n in (1, 20, many)),
        *(Traffic(f"refused: {_callers(n)}", BROWSERS, n, n * 1e-7, is_refused=True) for n in (1, 20, many)),
    ]
    found = {
        kind.name: await costs(subjects, kind, rounds=5 if quick else 15, requests=500 if quick else 1500)
        for kind in kinds
    }
    report.found["added"] = {name: [asdict(cost) for cost in row] for name, row in found.items()}
    report.show(
        _cost_table(
            "Served: µs of CPU added to a request (whole request for the bare site; ×: of bare)", found, kinds[:3]
        )
    )
    report.show(_total_table("Refused: µs of CPU in all (×: of the bare site's own answer)", found, kinds[3:]))
    served = {cost.subject: cost for cost in found[kinds[1].name]}
    refused = {cost.subject: cost for cost in found[kinds[4].name]}
    report.judge(
        Bar("added with 20 browsers, RateLimit fields off", 4, served[OFF.name].added, "µs"),
        Bar("added with 20 browsers, RateLimit fields on", 5, served[ON.name].added, "µs"),
        Bar("a refusal in all, fields off", 6, refused[OFF.name].total, "µs"),
        Bar("a refusal in all, fields on", 6, refused[ON.name].total, "µs"),
    )


async def classes(report: Report) -> None:
    """What each class of caller costs when it is served, load gate included for bots."""
    quick = report.options.quick
    kinds = [
        Traffic("20 browsers", BROWSERS, 20, PERSON),
        Traffic("20 assumed bots", BOTS, 20, PERSON),
        Traffic("20 known crawlers", CRAWLERS, 20, 40.0),
    ]
    found = {
        kind.name: await costs([OFF, ON], kind, rounds=5 if quick else 15, requests=500 if quick else 1500)
        for kind in kinds
    }
    report.found["classes"] = {name: [asdict(cost) for cost in row] for name, row in found.items()}
    report.show(_cost_table("Served, by class: µs of CPU added", found, kinds))


async def flat(report: Report) -> None:
    """The whole request with one caller and with a million, all of them held."""
    quick = report.options.quick
    counts = [1, 1_000, 100_000] if quick else [1, 1_000, 10_000, 100_000, 1_000_000]
    found = await many_callers.cost_by_callers(counts, rounds=7 if quick else 15, requests=2000)
    report.found["flat"] = found
    rows = [[_callers(n), f"{taken:.2f}", f"{taken / found[1]:.2f}"] for n, taken in found.items()]
    report.show(table("Many callers: µs of CPU for a whole request", ["callers", "µs", "× of one caller"], rows))
    most = counts[-1]
    report.judge(Bar(f"a whole request with {_callers(most)}, of that with one", 1.1, found[most] / found[1], "×"))


async def stalls(report: Report) -> None:
    """The worst single request of a long run, housekeeping and collections of garbage included."""
    requests = 100_000 if report.options.quick else 600_000
    found = {}
    for name, make, who in many_callers.STALLS:
        found[name] = await many_callers.worst_requests(make, who, runs=3, requests=requests, step=2e-6)
    report.found["stalls"] = found
    rows = [[name, *(f"{worst:.2f}" for worst in sorted(row))] for name, row in found.items()]
    report.show(table(f"Worst of {requests:,} requests, ms of CPU, three runs", ["", "least", "", "most"], rows))
    ours = max(min(row) for name, row in found.items() if name != many_callers.STALLS[0][0])
    report.judge(Bar("worst request that comes back in every run", 2, ours, "ms"))


async def memory(report: Report) -> None:
    """Resident memory a caller, each subject in a process of its own."""
    callers = 50_000 if report.options.quick else 200_000
    subjects = [OFF] if report.options.no_peers else held.measured_for_memory()
    found = {each.name: held.bytes_a_caller_in_a_child(each.name, callers) for each in subjects}
    report.found["memory"] = {"callers": callers, "bytes": found}
    rows = [[name, f"{size:.0f}"] for name, size in found.items()]
    report.show(table(f"Memory: bytes of RSS a caller, {callers:,} callers, one hit each", ["", "bytes"], rows))
    report.judge(Bar("bytes a caller", 250, found[OFF.name], "bytes"))


async def cap(report: Report) -> None:
    """How many refused callers stay refused, whoever else comes."""
    quick = report.options.quick
    subjects = [OFF] if report.options.no_peers else held.ESCAPES
    escapes = {each.name: await held.is_still_refused(each, 2000 if quick else held.OTHERS) for each in subjects}
    most = 65_536 if quick else 1_048_576
    shares = {}
    for refused, others in (
        (most // 10, most),
        (most * 3 // 10, most),
        (most // 3, 2 * most),
        (most // 2, 0),
        (most, 0),
    ):
        shares[f"{refused:,} refused, then {others:,} others"] = held.still_refused(refused, others, max_callers=most)
    report.found["cap"] = {"still_refused_after_others": escapes, "max_callers": most, "still_refused": shares}
    rows = [[name, "still refused" if still else "served again"] for name, still in escapes.items()]
    report.show(table(f"A refused caller after {2000 if quick else held.OTHERS:,} others came", ["", ""], rows))
    rows = [[name, f"{share:.1%}"] for name, share in shares.items()]
    report.show(table(f"Who is still refused at a cap of {most:,} callers", ["", "still refused"], rows))
    kept = held.still_refused(most * 3 // 10, most, max_callers=most)
    report.judge(
        Bar("refused callers (three tenths of the cap) set free by as many others as the cap", 0, 1 - kept, "")
    )


def _cost_table(title: str, found: dict[str, list[Cost]], kinds: list[Traffic]) -> str:
    rows = []
    for number, first in enumerate(found[kinds[0].name]):
        row = [first.subject]
        for kind in kinds:
            cost = found[kind.name][number]
            row.append(f"{cost.total:.2f}" if cost.subject == BARE.name else f"+{cost.added:.2f} ±{cost.spread:.2f}")
            row.append(f"{cost.ratio:.2f}")
        rows.append(row)
    return table(title, ["", *(cell for kind in kinds for cell in (kind.name, "×"))], rows)


def _total_table(title: str, found: dict[str, list[Cost]], kinds: list[Traffic]) -> str:
    rows = []
    for number, first in enumerate(found[kinds[0].name]):
        each = [found[kind.name][number] for kind in kinds]
        rows.append([first.subject, *(cell for cost in each for cell in (f"{cost.total:.2f}", f"{cost.ratio:.2f}"))])
    return table(title, ["", *(cell for kind in kinds for cell in (kind.name, "×"))], rows)


def _callers(count: int) -> str:
    return f"{count:,} caller{'' if count == 1 else 's'}"


QUESTIONS = {"added": added, "classes": classes, "flat": flat, "stalls": stalls, "memory": memory, "cap": cap}


async def answer(options: argparse.Namespace) -> bool:
    """Ask, print, and say whether every bar was met."""
    report = Report(options)
    report.show(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, uvloop, seeded")
    for name in options.only or QUESTIONS:
        await QUESTIONS[name](report)
    if options.json:
        bars = [{**asdict(bar), "is_met": bar.is_met} for bar in report.bars]
        print(json.dumps({**report.found, "bars": bars}, indent=1))
    return all(bar.is_met for bar in report.bars)
