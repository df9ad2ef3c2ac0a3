"""Requests per second, with a burst. Refilled lazily and greedily: two numbers and a subtraction."""


class TokenBucket:
    """At most `capacity` requests at once and `rate` a second on average.

    Whoever waits for a token is told when to come, and comes later: each turn of an event loop takes its time. While
    `is_awaited` up to `catch_up` tokens are kept above the capacity, so that what lateness took is made good; time in
    which nobody waits earns none of them. With waits that end in time they never come to be.

    Tokens may go below zero only by `charge()`, for requests that could not be held back.
    """

    __slots__ = ("capacity", "catch_up", "is_awaited", "rate", "tokens", "updated")

    def __init__(self, rate: float, capacity: float, now: float, catch_up: float = 0.0) -> None:
        self.rate = rate
        self.capacity = capacity
        self.catch_up = catch_up
        self.is_awaited = False
        self.tokens = capacity
        self.updated = now

    def refill(self, now: float) -> None:
        # A clock that went back adds nothing, and takes nothing (botocore's bucket went to −40).
        elapsed = now - self.updated
        self.updated = now
        most = self.capacity + self.catch_up if self.is_awaited else self.capacity
        if elapsed > 0 and self.tokens < most:  # what was made good before stays
            tokens = self.tokens + elapsed * self.rate
            self.tokens = tokens if tokens < most else most

    def change(self, rate: float, capacity: float, now: float, catch_up: float = 0.0) -> None:
        """The past is refilled at the old rate first."""
        self.refill(now)
        self.rate = rate
        self.capacity = capacity
        self.catch_up = catch_up
        self.tokens = min(self.tokens, capacity + catch_up)

    def seconds_until_token(self, now: float) -> float:
        """0 when a token is there; infinity when none will ever come."""
        elapsed = now - self.updated
        self.updated = now
        if elapsed > 0:  # as `refill`, without the call: every request comes by
            most = self.capacity + self.catch_up if self.is_awaited else self.capacity
            if self.tokens < most:
                tokens = self.tokens + elapsed * self.rate
                self.tokens = tokens if tokens < most else most
        missing = 1 - self.tokens
        if missing <= 1e-9:  # after sleeping exactly long enough, floats may leave this much
            return 0.0
        return missing / self.rate if self.rate > 0 else float("inf")

    def take(self) -> None:
        """Only right after `seconds_until_token` said 0."""
        self.tokens -= 1

    def give_back(self) -> None:
        """For a request that took a token and was not sent."""
        self.tokens = min(max(self.capacity, self.tokens), self.tokens + 1)

    def drain(self, now: float) -> None:
        """After a drop nothing saved up may be spent."""
        self.refill(now)
        self.tokens = min(self.tokens, 0.0)
