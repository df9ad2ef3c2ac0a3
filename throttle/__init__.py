"""Admission control for Python web sites, people first, and the polite client that belongs to it."""

from typing import TYPE_CHECKING, Any

from throttle.server.middleware import ThrottleMiddleware
from throttle.server.policy import Delay, Limits
from throttle.server.refusal import Refusal
from throttle.server.settings import PathLimits, Settings
from throttle.server.stores.memory import MemoryStore

if TYPE_CHECKING:
    from throttle.server.stores.redis import RedisStore as RedisStore

__all__ = ["Delay", "Limits", "MemoryStore", "PathLimits", "Refusal", "Settings", "ThrottleMiddleware"]


def __getattr__(name: str) -> Any:
    """RedisStore, only for those who have its packages."""
    if name == "RedisStore":
        from throttle.server.stores.redis import RedisStore

        return RedisStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
