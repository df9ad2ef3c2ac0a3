"""What the operator is told when a store's server is lost, and when it is back: a line each, none for a hiccup."""

import asyncio
import logging
from collections.abc import Callable

from throttle.server.stores.redis_settings import MEANWHILE

logger = logging.getLogger("throttle")

WORTH_A_LINE = 0.25
"""seconds without the server before the operator is told"""


class Outage:
    """The times without the server called `name`; `on_store_failure` says what is done meanwhile."""

    def __init__(self, name: str, on_store_failure: str, clock: Callable[[], float]) -> None:
        self._name = name
        self._meanwhile = MEANWHILE[on_store_failure]
        self._clock = clock
        self._since: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    def begins(self, reason: str) -> None:
        self._since = self._clock()
        self._timer = asyncio.get_running_loop().call_later(WORTH_A_LINE, self._tell, reason)

    def _tell(self, reason: str) -> None:
        self._timer = None
        logger.warning("the store at %s is lost (%s). Until it returns, %s.", self._name, reason, self._meanwhile)

    def ends(self) -> None:
        """Does nothing where none began."""
        if self._timer is not None:
            self.forget()
        elif self._since is not None:
            logger.warning("the store at %s is back after %.1f s.", self._name, self._clock() - self._since)
        self._since = None

    def forget(self) -> None:
        """Say nothing more: it is over, or the site is shutting down."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
