"""What does one decision cost? Time, stalls and memory, beside the bare site and the peers in the same run.

    python benchmarks/decision_cost.py             about ten minutes; makes .venv-peers for the peers first
    python benchmarks/decision_cost.py --quick     about a minute, rougher
    python benchmarks/decision_cost.py --json      for machines
    python benchmarks/decision_cost.py --only added stalls --no-peers

In process, without a socket: each app is driven with `await app(scope, receive, send)` on uvloop.
Exit code 1 when a bar is missed.
"""

import argparse
import os
import sys

from decision import peers_environment

QUESTIONS = ("added", "classes", "flat", "stalls", "memory", "cap")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and callers")
    parser.add_argument("--json", action="store_true", help="results for machines")
    parser.add_argument("--no-peers", action="store_true", help="leave the peers out; runs in this environment")
    parser.add_argument("--only", nargs="+", choices=QUESTIONS, metavar="QUESTION", help=", ".join(QUESTIONS))
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)  # the child process of «memory»
    parser.add_argument("--callers", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    given = options()
    if not given.no_peers and not given.memory_of and not peers_environment.is_entered():
        peers_environment.enter()
    try:  # only now: all of these need what the environment holds
        import uvloop
        from decision import held, questions
    except ModuleNotFoundError as missing:
        sys.exit(f"{missing.name} is missing here: leave out --no-peers, or use the project's environment (.venv)")

    if given.memory_of:
        held.child(given.memory_of, given.callers)
    is_met = uvloop.run(questions.answer(given))
    sys.stdout.flush()
    os._exit(0 if is_met else 1)  # the peers' threads would sweep on


if __name__ == "__main__":
    main()
