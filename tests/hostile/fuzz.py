"""Headers that atheris makes up, led by which lines of the throttle they reach; part of `make long`.

    python -m tests.hostile.fuzz --runs 200000

What must hold is the same as for Hypothesis (`requests.py`). Says so and does nothing where atheris is not installed.
A case is bytes: the first chooses the site, then each line is a header: its name, how often its value is repeated, and
the value.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

LONGEST = 4096
"""bytes of a case; a value may be repeated up to 64 KiB"""
SLOW = 0.1
"""seconds of CPU of a slow case: two requests and a line of the log, in instrumented code"""
HANGS = 60
"""seconds by the wall clock after which a case is given up; the machine may be busy"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    try:
        import atheris
    except ModuleNotFoundError:
        print("fuzzing with atheris: SKIPPED, as it is not installed here (pip install atheris; Linux and macOS)")
        return
    with atheris.instrument_imports(include=["throttle"]):
        from tests.hostile import requests

    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(seeds(requests)):
            Path(corpus, str(number)).write_bytes(seed)
        options = [f"-runs={given.runs}", f"-seed={given.seed}", f"-max_len={LONGEST}", f"-timeout={HANGS}"]
        atheris.Setup([sys.argv[0], *options, "-print_final_stats=1", "-verbosity=0", corpus], Case(requests))
        atheris.Fuzz()


class Case:
    """Asks one of the sites twice; AssertionError where an answer or the log is not as it should be, or it is slow."""

    def __init__(self, requests: Any) -> None:
        self._requests = requests
        self._sites = [make() for make in requests.SITES.values()]
        self._runner = asyncio.Runner()

    def __call__(self, raw: bytes) -> None:
        if not raw:
            return
        names, left = self._requests.READ, self._requests.LARGEST
        headers, client = [], None
        for line in raw[1:].split(b"\n"):
            if len(line) < 3:
                continue
            place, times, value = line[0], line[1], line[2:]
            if place % 16 >= len(names):
                client = value.decode("latin-1")
                continue
            # Most values stand once; from 128 on they are repeated, at 255 some 64,000 times.
            value = (value * (1 << (times - 128 >> 3) if times >= 128 else 1))[:left]
            left -= len(value)
            headers.append((names[place % 16], value))
        site, took = self._sites[raw[0] % len(self._sites)], []
        while len(took) < 3 and min(took, default=SLOW) >= SLOW:  # once may be the machine's fault
            began = time.thread_time()
            self._runner.run(self._requests.held_to_all(site, headers, client))
            took.append(time.thread_time() - began)
        assert min(took) < SLOW, f"slow: {took}"

    def close(self) -> None:
        self._runner.close()


def seeds(requests: Any) -> list[bytes]:
    """Browsers, robots and forwarded requests, at each site."""
    browser = {b"user-agent": requests.CHROME.encode(), b"sec-fetch-mode": b"navigate", b"accept": b"text/html"}
    image = {**browser, b"sec-fetch-dest": b"image", b"cookie": b"theme=dark; throttle=" + b"A" * 40}
    robot = {b"user-agent": requests.GOOGLEBOT.encode(), b"accept": b"application/json"}
    program = {b"user-agent": b"curl/8.0", b"accept": b"*/*"}
    hops = b'for="[2001:db8::1]:4711";proto=https, for=10.0.0.2'
    forwarded = {b"x-forwarded-for": b"203.0.113.7, 10.0.0.2", b"x-forwarded-proto": b"https", b"x-real-ip": b"::1"}
    cases = [browser, image, robot, program, {**browser, **forwarded}, {**program, b"forwarded": hops}]
    lines = [
        b"\n".join(bytes([requests.READ.index(name), 0]) + value for name, value in case.items()) for case in cases
    ]
    return [bytes([site]) + case for site in range(len(requests.SITES)) for case in lines]


if __name__ == "__main__":
    main()
