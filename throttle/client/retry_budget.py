"""How many retries the last minutes have earned (Brooker, «What is backoff for?»; Finagle's RetryBudget)."""

from math import exp


class RetryBudget:
    """Retries never exceed `reserve` plus `share` of the requests made, and what was earned long ago is forgotten.

    A host that fails now and then is always retried; one whose every request fails soon is not, so that an outage
    is not amplified. The reserve grows back over `seconds`.
    """

    __slots__ = ("_balance", "_updated", "reserve", "seconds", "share")

    def __init__(self, now: float, *, share: float = 0.2, reserve: float = 10.0, seconds: float = 60.0) -> None:
        self.share = share
        self.reserve = reserve
        self.seconds = seconds
        self._balance = reserve
        self._updated = now

    def earn(self) -> None:
        """A request was made that is no retry."""
        self._balance += self.share

    def spend(self, now: float) -> bool:
        """True, and one less in the budget, if a retry is earned."""
        if self.balance(now) < 1:
            return False
        self._balance -= 1
        return True

    def balance(self, now: float) -> float:
        # Both directions towards the reserve: earnings fade, debts are forgiven.
        elapsed = now - self._updated
        if elapsed > 0:
            self._balance = self.reserve + (self._balance - self.reserve) * exp(-elapsed / self.seconds)
            self._updated = now
        return self._balance
