"""What becomes of a refusal by a rule: it is counted and logged, and the caller is told how long to wait."""

from collections.abc import Callable

from starlette.types import Scope

from throttle.retry_after import whole_seconds
from throttle.server.caller import Rules
from throttle.server.policy import LOAD_DEFER
from throttle.server.refusal import Refusal, refusal_of
from throttle.server.refusal_log import RefusalLog
from throttle.server.rule import MICROSECONDS, Refused
from throttle.server.rulebook import Rulebook
from throttle.server.unbelieved_proxy import UnbelievedProxy


class Refusals:
    """Those of one site. `random`: 0 to 1, spreads the waits told for load."""

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._log = RefusalLog()
        self._proxy = UnbelievedProxy()

    def note(self, book: Rulebook, rules: Rules, verdict: Refused, scope: Scope, address: str, agent: bytes) -> Refusal:
        """What there is to tell of a refusal; counted, and logged."""
        reason, left = verdict.rule, verdict.retry_after
        if reason == LOAD_DEFER:
            # An estimate; spread upwards by half, so that those refused now don't all return at once.
            told = rules.limits.wait_told.seconds(verdict.load) * (1 + self._random() / 2)
            left = max(left, round(told * MICROSECONDS))
        is_person = rules.caller_class.is_browser
        rules.tally.refused[reason] += 1
        self._log.note(reason, address, agent, rules.finding, is_enforced=book.enforces)
        if is_person and self._proxy.left:
            self._proxy.look(book, scope)
        return refusal_of(book.status_of(reason), whole_seconds(left), reason, is_person)

    def close(self) -> None:
        """The site is shutting down."""
        self._log.close()
