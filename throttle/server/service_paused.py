"""The page's first rule: a paused site answers nobody but the exempt."""

from starlette.types import Scope

from throttle.retry_after import whole_seconds
from throttle.server.refusal import PAUSED, Refusal
from throttle.server.rule import MICROSECONDS
from throttle.server.rulebook import Rulebook
from throttle.server.stores import Store


def service_paused(book: Rulebook, store: Store, scope: Scope, now: int) -> Refusal | None:
    """None when the pause is over or does not concern this caller."""
    pause = store.paused
    if pause is None:
        return None
    if pause.until is not None and now >= pause.until:
        store.paused = None
        return None
    is_person = True
    if not pause.early:
        rules, _, address, _ = book.caller(scope)
        is_person = rules.caller_class.is_browser
        if book.is_pause_exempt(address):
            return None
        rules.tally.refused[PAUSED] += 1
    seconds = book.settings.limits.pause_seconds
    left = round(seconds * MICROSECONDS) if pause.until is None else pause.until - now
    return Refusal(book.status_of(PAUSED), whole_seconds(left), PAUSED, is_person)
