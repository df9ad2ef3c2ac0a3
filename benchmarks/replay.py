"""How many lines a second does `throttle replay` read on one core, and does its memory grow with the log?

    python benchmarks/replay.py [--lines 1000000] [--runs 3]

The log is made from the sample in tests/data: copy after copy, each four days later and with other addresses, so that
callers grow in number as they do in a real log. Times are of whole processes, start-up and report included.
"""

import argparse
import gzip
import re
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

SAMPLE = Path(__file__).parent.parent / "tests" / "data" / "access_log_sample.log.gz"
_HEAD = re.compile(rb"(\d+\.\d+\.\d+\.)(\d+)( .*?\[)(\d\d/\w{3}/\d{4})")
_RUN = """
import resource, sys, time
from throttle.cli import main
code = main(["replay", *sys.argv[1:]])
print(time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""


class Measured(NamedTuple):
    seconds: float
    cpu_seconds: float
    peak_mb: float


def grow(path: Path, lines: int, *, suffix: bytes = b"") -> None:
    """A log of so many lines."""
    with gzip.open(SAMPLE) as file:
        sample = [_HEAD.match(line) and line.rstrip(b"\n") for line in file]
    heads = [(_HEAD.match(line), line) for line in sample if line]
    with path.open("wb") as log:
        for copy in range(-(-lines // len(heads))):
            days: dict[bytes, bytes] = {}
            for match, line in heads[: lines - copy * len(heads)]:
                assert match
                day = days.get(match[4])
                if day is None:
                    later = datetime.strptime(match[4].decode(), "%d/%b/%Y") + timedelta(days=4 * copy)
                    day = days[match[4]] = later.strftime("%d/%b/%Y").encode()
                host = b"%d" % ((int(match[2]) + copy) % 256)
                log.write(b"".join((match[1], host, match[3], day, line[match.end() :], suffix, b"\n")))


def measure(path: Path, *arguments: str) -> Measured:
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _RUN, str(path), *arguments], capture_output=True, text=True, check=True
    )
    cpu, peak = done.stderr.split()
    return Measured(time.perf_counter() - began, float(cpu), int(peak) / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    print("lines      replay                          lines/s   lines/CPU s   peak memory   (medians)")
    with tempfile.TemporaryDirectory() as folder:
        for lines in (arguments.lines // 10, arguments.lines):
            log = Path(folder) / "access.log"
            grow(log, lines)
            for name, options in (
                ("pages only", ("--no-compare", "--static-extensions", "none")),
                ("pages, and files counted beside", ("--no-compare",)),
                ("half and twice each limit, too", ()),
                ("load gate, 0.2 s assumed", ("--no-compare", "--assume-duration", "0.2")),
            ):
                runs = [measure(log, *options) for _ in range(arguments.runs)]
                seconds, cpu, peak = (statistics.median(values) for values in zip(*runs, strict=True))
                speeds = f"{lines / seconds:8,.0f}   {lines / cpu:11,.0f}"
                print(f"{lines:9,}  {name:31} {speeds}   {peak:8.0f} MB", flush=True)


if __name__ == "__main__":
    main()
