"""Requests per second, with a burst. Refilled lazily and greedily: two numbers and a subtraction."""


class TokenBucket:
    """At most `capacity` requests at once and `rate` a second on average.

    Tokens may go below zero only by `charge()`, for requests that could not be held back.
    """

    __slots__ = ("capacity", "rate", "tokens", "updated")

    def __init__(self, rate: float, capacity: float, now: float) -> None:
        self.rate = rate
        self.capacity = capacity
        self.tokens = capacity
        self.updated = now

    def refill(self, now: float) -> None:
        # A clock that went back adds nothing, and takes nothing (botocore's bucket went to −40).
        elapsed = now - self.updated
        if elapsed > 0:
            self.tokens = min(self.capacity, self.tokens + elapsed * self.rate)
        self.updated = now

    def change(self, rate: float, capacity: float, now: float) -> None:
        """The past is refilled at the old rate first."""
        self.refill(now)
        self.rate = rate
        self.capacity = capacity
        self.tokens = min(self.tokens, capacity)

    def seconds_until_token(self, now: float) -> float:
        """0 when a token is there; infinity when none will ever come."""
        elapsed = now - self.updated
        self.updated = now
        if elapsed > 0:  # as `refill`, without the call: every request comes by
            tokens = self.tokens + elapsed * self.rate
            self.tokens = tokens if tokens < self.capacity else self.capacity
        missing = 1 - self.tokens
        if missing <= 1e-9:  # after sleeping exactly long enough, floats may leave this much
            return 0.0
        return missing / self.rate if self.rate > 0 else float("inf")

    def take(self) -> None:
        """Only right after `seconds_until_token` said 0."""
        self.tokens -= 1

    def give_back(self) -> None:
        """For a request that took a token and was not sent."""
        self.tokens = min(self.capacity, self.tokens + 1)

    def drain(self, now: float) -> None:
        """After a drop nothing saved up may be spent."""
        self.refill(now)
        self.tokens = min(self.tokens, 0.0)
