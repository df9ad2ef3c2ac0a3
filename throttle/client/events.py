"""What a host's throttle did, for a listener and for the log. Each event reads as a line a person understands."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Waited:
    host: str
    at: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.host}: a request waited {self.seconds:.2f} s for its turn"


@dataclass(frozen=True, slots=True)
class Answered:
    """Each request that came back, or failed; made only where somebody listens, and not logged."""

    host: str
    at: float
    status: str
    ending: str  # served, dropped, or neutral
    seconds: float  # from its leaving until its answer's fields were read; waiting for its turn is no part of it

    def __str__(self) -> str:
        return f"{self.host}: {self.ending} ({self.status}) after {self.seconds:.2f} s"


@dataclass(frozen=True, slots=True)
class Retried:
    host: str
    at: float

    def __str__(self) -> str:
        return f"{self.host}: the request will be sent again"


@dataclass(frozen=True, slots=True)
class GaveUp:
    host: str
    at: float
    reason: str
    waited: float  # seconds

    def __str__(self) -> str:
        return f"{self.host}: a request was given up after {self.waited:.2f} s ({self.reason})"


@dataclass(frozen=True, slots=True)
class Dropped:
    host: str
    at: float
    status: str
    told: float | None

    def __str__(self) -> str:
        told = "no wait told" if self.told is None else f"told to wait {self.told:.0f} s"
        return f"{self.host}: refused ({self.status}), {told}"


@dataclass(frozen=True, slots=True)
class Rested:
    host: str
    at: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.host}: nothing is sent for {self.seconds:.1f} s"


@dataclass(frozen=True, slots=True)
class RateChanged:
    host: str
    at: float
    before: float
    after: float

    def __str__(self) -> str:
        return f"{self.host}: pace {self.before:.3g} → {self.after:.3g} requests a second"


@dataclass(frozen=True, slots=True)
class Stopped:
    host: str
    at: float
    reason: str

    def __str__(self) -> str:
        return f"{self.host}: stopped, this is a block and not a limit ({self.reason})"


Event = Waited | GaveUp | Answered | Retried | Dropped | Rested | RateChanged | Stopped
