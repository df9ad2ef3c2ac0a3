"""Is this crawler who it says it is: by its operator's published addresses, or by forward-confirmed reverse DNS.

An answer takes microseconds, always: what is not known yet is UNKNOWN now, and asked for behind the request's back.
Nothing is asked of a place that a caller names.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable

from throttle.server.address import Networks, packed_address
from throttle.server.crawler_operators import OPERATORS, Operator
from throttle.server.evidence import Finding
from throttle.server.range_files import STALE_DAYS, RangeFiles
from throttle.server.reverse_dns import Resolver, ReverseDns

logger = logging.getLogger("throttle.verify")

LOOK_SECONDS = 60.0
"""between two looks at the lists; also how long their answer for an address is remembered"""
REMEMBERED = {Finding.VERIFIED: 86_400.0, Finding.FORGED: 3_600.0, Finding.UNKNOWN: 60.0}
"""seconds, by what DNS has answered"""
VERIFIED_MAX = 8_192
OTHERS_MAX = 8_192
"""addresses that are remembered; about 250 bytes each"""

_LOST = "10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.168.0.0/16 ::/127 fc00::/7 fe80::/10"
_INSIDE = Networks(_LOST.split(), "addresses inside")
"""Addresses that are not the internet's: a crawler's address was lost on the way here, so nothing is known of it."""


class Verifier:
    """Says of a crawler's operator and a caller's address: VERIFIED, FORGED, or UNKNOWN.

    `directory` has the operators' published lists (see `range_files.py`). `resolver` asks DNS; None asks nobody.
    VERIFIED is who is in one of its operator's lists, or has a name of its operator's. FORGED is who has no such name;
    or, where the operator publishes lists alone, who is in none of them, if they are all there and fresh.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        resolver: Resolver | None = None,
        operators: Iterable[Operator] = OPERATORS,
        stale_days: float = STALE_DAYS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        operators = tuple(operators)
        self._by_agent = {agent.lower(): operator for operator in operators for agent in operator.agents}
        self._clock = clock
        self._dns = None if resolver is None else ReverseDns(resolver, self._remember)
        self._files = None if directory is None else RangeFiles(directory, operators, stale_days=stale_days)
        self._looking: threading.Thread | None = None
        # Who is verified is remembered apart: a flood of forgers must not push those out.
        self._verified: dict[tuple[str, str], tuple[Finding, float]] = {}
        self._others: dict[tuple[str, str], tuple[Finding, float]] = {}
        self._look_at = float("inf")
        if self._files is not None:
            self._files.look()
            self._look_at = clock() + LOOK_SECONDS

    def operator_of(self, crawler: str | None) -> Operator | None:
        """The operator of a crawler by that name; None where no rule tells how to check it."""
        return None if crawler is None else self._by_agent.get(crawler.lower())

    def __call__(self, operator: Operator, address: str) -> Finding:
        """What is known now of the caller at `address` (in full, not its network), which names the operator's crawler.

        To be called in the event loop.
        """
        now = self._clock()
        if now >= self._look_at:
            self._look(now)
        key = (operator.name, address)
        known = self._verified.get(key) or self._others.get(key)
        if known is not None and now < known[1]:
            return known[0]
        return self._find_out(operator, address, now)

    def _find_out(self, operator: Operator, address: str, now: float) -> Finding:
        packed = packed_address(address)
        if packed is None or packed in _INSIDE:
            return Finding.UNKNOWN
        listed = self._files and self._files.by_operator.get(operator.name)
        if listed and packed in listed.ranges:
            return self._note(operator, address, Finding.VERIFIED, now + LOOK_SECONDS)
        if operator.hosts and self._dns is not None:
            self._dns.ask(operator, address)
            return Finding.UNKNOWN
        if listed and listed.is_complete and not operator.hosts and not operator.is_elsewhere_too:
            return self._note(operator, address, Finding.FORGED, now + LOOK_SECONDS)
        return Finding.UNKNOWN

    def _remember(self, operator: Operator, address: str, finding: Finding) -> None:
        """DNS has answered."""
        if finding is Finding.FORGED and operator.is_elsewhere_too:
            finding = Finding.UNKNOWN
        self._note(operator, address, finding, self._clock() + REMEMBERED[finding])

    def _note(self, operator: Operator, address: str, finding: Finding, until: float) -> Finding:
        is_verified = finding is Finding.VERIFIED
        notes, most = (self._verified, VERIFIED_MAX) if is_verified else (self._others, OTHERS_MAX)
        key = (operator.name, address)
        for each in (self._verified, self._others):
            each.pop(key, None)
        if len(notes) >= most:
            del notes[next(iter(notes))]  # the one noted first
        notes[key] = (finding, until)
        return finding

    # The lists

    def _look(self, now: float) -> None:
        """Look at the lists in another thread, unless one does already."""
        self._look_at = now + LOOK_SECONDS
        if self._looking is None or not self._looking.is_alive():
            self._looking = threading.Thread(target=self.look, name="throttle-lists", daemon=True)
            self._looking.start()

    def look(self) -> None:
        """Read those of the lists that have changed. Takes milliseconds: not for the event loop."""
        try:
            if self._files is not None and self._files.look():
                self._others = {}  # a new dict, since the event loop may be using the old one
        except Exception:  # a thread's failure would be seen by nobody
            logger.exception("the lists of crawlers' addresses could not be looked at")

    def close(self) -> None:
        """The site is shutting down."""
        if self._dns is not None:
            self._dns.close()
