"""What does a flood of invented callers do: a million a minute, each with an address and an agent of its own?

    python benchmarks/flood.py                  about half an hour; makes .venv-peers for the peers first
    python benchmarks/flood.py --quick          a few minutes, rougher
    python benchmarks/flood.py --minutes 1      so long a flood in each question
    python benchmarks/flood.py --as-browsers    the flood claims to be Chrome
    python benchmarks/flood.py --json           for machines

Two questions, each subject in a process of its own. Cost: CPU and memory, on an injected clock, at a site that answers
at once. Verdicts: what becomes of people, a feed reader and a crawler meanwhile, at a site that can do 200 pages a
second, in virtual time. Exit code 1 when a bar is missed.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from typing import Any

from decision import peers_environment
from decision.report import Bar, table

SEED = 20
MINUTES, SECONDS = 2.0, 60.0


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the time")
    parser.add_argument("--json", action="store_true", help="results for machines")
    parser.add_argument("--no-peers", action="store_true", help="leave the peers out; runs in this environment")
    parser.add_argument("--minutes", type=float, help=f"of each flood, in place of {MINUTES:g} (cost) and 1 (verdicts)")
    parser.add_argument("--as-browsers", action="store_true", help="the flood claims to be Chrome")
    parser.add_argument("--only", choices=["cost", "verdicts"])
    parser.add_argument("--child", nargs=2, metavar=("QUESTION", "SUBJECT"), help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    given = options()
    if not given.no_peers and not given.child and not peers_environment.is_entered():
        peers_environment.enter()
    if given.child:
        child(given)
    from flooding.subjects import ALL, BARE, MODERN, MODERN_SMALL, PAGE

    subjects = [each for each in ALL if not (each.is_peer and given.no_peers)]
    found: dict[str, dict[str, Any]] = {}
    for question in ("cost", "verdicts") if given.only is None else (given.only,):
        left_out = (MODERN_SMALL,) if question == "verdicts" else ()
        found[question] = {s.name: in_a_child(question, s.name, given) for s in subjects if s not in left_out}
    bars = []
    if "cost" in found:
        for name, most in ((MODERN.name, 512), (MODERN_SMALL.name, 64)):
            growth = max(found["cost"][name]["growth"])
            bars.append(Bar(f"growth with {most} MiB, and 50 for acquaintances and caches", most + 50, growth, "MiB"))
        refusals = ((subject.name, found["cost"][subject.name]["refusals"]) for subject in (PAGE, MODERN))
        bars += [Bar(f"refusals of a person: {name}", 0, count, "") for name, count in refusals]
    if "verdicts" in found and not given.as_browsers:
        modern = found["verdicts"][MODERN.name]["callers"]
        for who in ("people", "people who come later", "feed reader", "verified crawler"):
            missed = modern[who]["came"] - modern[who]["served"]
            bars.append(Bar(f"{MODERN.name}, not served: {who}", 0, missed, f"of {modern[who]['came']}"))
    if given.json:
        print(json.dumps({**found, "bars": [{"what": b.what, "is_met": b.is_met} for b in bars]}, indent=1))
    else:
        print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, seeded")
        show(found, BARE.name)
        print("", *(f"  {bar}" for bar in bars), sep="\n")
    sys.exit(0 if all(bar.is_met for bar in bars) else 1)


def in_a_child(question: str, name: str, given: argparse.Namespace) -> Any:
    command = [sys.executable, sys.argv[0], "--child", question, name]
    command += ["--quick"] if given.quick else []
    command += ["--as-browsers"] if given.as_browsers else []
    command += ["--minutes", str(given.minutes)] if given.minutes else []
    print(f"{question}: {name}", file=sys.stderr)
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def child(given: argparse.Namespace) -> None:
    from flooding.subjects import LISTS

    question, name = given.child
    part = 0.1 if given.quick else 1.0
    if question == "cost":
        from flooding import cost

        result = cost.flood(name, given.minutes or MINUTES * part, SEED)
    else:
        from flooding import verdicts

        seconds = given.minutes * 60 if given.minutes else max(20.0, SECONDS * part)
        result = verdicts.flood(name, seconds, SEED, as_browsers=given.as_browsers)
    print(json.dumps(result), flush=True)
    LISTS.cleanup()
    os._exit(0)  # some peers' threads would sweep on


def show(found: dict[str, dict[str, Any]], bare: str) -> None:
    if "cost" in found:
        rows = [
            [
                name,
                f"{one['cost']:.1f}",
                f"+{one['cost'] - found['cost'][bare]['cost']:.1f}",
                f"{one['worst']:.1f}",
                *(f"{mib:.0f}" for mib in one["growth"]),
                str(one["refusals"]),
            ]
            for name, one in found["cost"].items()
        ]
        head = ["", "µs CPU a request", "added", "worst, ms", "MiB after a third", "two", "all", "person refused"]
        print(table("Cost: each caller comes once, a million a minute", head, rows))
    if "verdicts" in found:
        names = list(next(iter(found["verdicts"].values()))["callers"])
        rows = []
        for subject, one in found["verdicts"].items():
            cells = [f"{one['callers'][n]['served']}/{one['callers'][n]['came']}" for n in names]
            people = one["callers"]["people"]
            flood = one["flood"]
            rows.append([subject, *cells, f"{people['slowest']:.2f}", f"{flood['served']:,}/{flood['offered']:,}"])
        head = ["served/came", *names, "people: slowest, s", "flood"]
        print(table("Verdicts: who is served while a million a minute ask for 200 pages a second", head, rows))


if __name__ == "__main__":
    main()
