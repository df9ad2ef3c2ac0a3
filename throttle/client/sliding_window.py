"""At most so many requests in any window of so many seconds, shared by all who use one Redis. Exact.

The `can_fire` of «Per-domain rate limiting for 75K-URL jobs», as it was meant. Its code lets more than twice the
limit through: its sorted set's members are milliseconds, so two hits of one millisecond are one, and who is refused
takes back the hit that somebody else was granted. Here one script asks and counts in one move by the server's clock,
and a hit is a place in a list, so none can stand for another. A refused request leaves no trace.

A window says how much, not how evenly: all of it may go at once. For a pace, see `throttle.client.fleet`.
"""

from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import redis
    import redis.asyncio

LUA = files("throttle.client").joinpath("sliding_window.lua").read_text(encoding="utf-8")
MICRO = 1_000_000


class _Window:
    def __init__(self, server: Any, at_most: int, seconds: float, *, prefix: str = "throttle:window") -> None:
        if isinstance(at_most, bool) or not isinstance(at_most, int) or at_most < 1:
            raise ValueError(f"at_most={at_most!r}: a whole number of at least 1 is needed")
        if not 1e-6 <= seconds <= 1e7:
            raise ValueError(f"seconds={seconds!r}: seconds from 0.000001 to 10,000,000 are needed")
        self.at_most = at_most
        self.seconds = seconds
        self._prefix = prefix
        self._script = server.register_script(LUA)

    def _ask(self, key: str, now: float | None) -> Any:
        arguments = [self.at_most, round(self.seconds * MICRO), 0 if now is None else round(now * MICRO)]
        return self._script(keys=[f"{self._prefix}:{key}"], args=arguments)


class SlidingWindow(_Window):
    """`server` is a `redis.Redis`. Windows of different sizes under one `prefix` and key are one log: don't."""

    def __init__(self, server: "redis.Redis", at_most: int, seconds: float, *, prefix: str = "throttle:window") -> None:
        super().__init__(server, at_most, seconds, prefix=prefix)

    def ask(self, key: str, now: float | None = None) -> float:
        """0.0: it is counted and may leave. Else the seconds until one may, if nobody else takes that place.

        `now` in seconds stands for the server's clock, in tests. Raises what redis-py raises: who cannot ask does
        not know, and must not guess here.
        """
        return int(self._ask(key, now)) / MICRO


class AsyncSlidingWindow(_Window):
    """As `SlidingWindow`; `server` is a `redis.asyncio.Redis`."""

    def __init__(
        self, server: "redis.asyncio.Redis", at_most: int, seconds: float, *, prefix: str = "throttle:window"
    ) -> None:
        super().__init__(server, at_most, seconds, prefix=prefix)

    async def ask(self, key: str, now: float | None = None) -> float:
        """As `SlidingWindow.ask`."""
        return int(await self._ask(key, now)) / MICRO
