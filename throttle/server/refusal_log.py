"""Refusals, told to people in a line every ten seconds: how many, by which rule, and who was refused most.

A refusal costs a counter here, whatever the caller sends. Naming an agent may take a millisecond, so that is done when
the line is written, for few, in another thread. Nothing is counted unless the logger listens.
"""

import asyncio
import logging
import re
from collections import Counter

from throttle.server.agents import describe
from throttle.server.evidence import Finding

logger = logging.getLogger("throttle.refused")

SECONDS = 10.0
NAMED = 3
CALLERS = 1000
"""callers told apart between two lines; the rest count as others"""

_NOT_OF_AN_ADDRESS = re.compile(r"[^A-Za-z0-9.:/]")

Who = tuple[str, bytes, Finding]
"""address, agent, and what is known beside it"""


class RefusalLog:
    """Counts refusals and writes a line at most every ten seconds, at level INFO."""

    def __init__(self) -> None:
        self._reasons: Counter[str] = Counter()
        self._callers: Counter[Who] = Counter()
        self._timer: asyncio.TimerHandle | None = None

    def note(
        self,
        reason: str,
        address: str,
        agent: bytes,
        finding: Finding = Finding.UNKNOWN,
        *,
        is_enforced: bool = True,
    ) -> None:
        if not logger.isEnabledFor(logging.INFO):
            return
        self._reasons[reason if is_enforced else f"{reason} (dry run)"] += 1
        who = (address[:64], agent, finding)  # a server behind a careless proxy hands over any text as an address
        if who in self._callers or len(self._callers) < CALLERS:
            self._callers[who] += 1
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SECONDS, self._hand_over)

    def close(self) -> None:
        """Write what is left: the site is shutting down."""
        if self._timer is not None:
            self._timer.cancel()
            write(*self._taken())

    def _hand_over(self) -> None:
        asyncio.get_running_loop().run_in_executor(None, write, *self._taken())

    def _taken(self) -> tuple[Counter[str], Counter[Who]]:
        taken = self._reasons, self._callers
        self._reasons, self._callers, self._timer = Counter(), Counter(), None
        return taken


def write(reasons: Counter[str], callers: Counter[Who]) -> None:
    """One line, such as «refused 412: 400 by hit_stack, 12 by load_defer; most often Bytespider at 192.0.2.1 (398)»."""
    by_rule = ", ".join(f"{count} by {reason}" for reason, count in reasons.most_common())
    most = ", ".join(f"{_named(*who)} ({count})" for who, count in callers.most_common(NAMED))
    logger.info("refused %d: %s; most often %s", reasons.total(), by_rule, most)


def _named(address: str, agent: bytes, finding: Finding) -> str:
    found = "" if finding is Finding.UNKNOWN else f" ({finding.value})"
    return f"{describe(agent)}{found} at {_NOT_OF_AN_ADDRESS.sub('', address)}"
