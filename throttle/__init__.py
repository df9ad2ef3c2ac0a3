"""Admission control for Python web sites, people first, and the polite client that belongs to it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from throttle.server.middleware import ThrottleMiddleware
    from throttle.server.policy import Delay, Limits
    from throttle.server.refusal import Refusal
    from throttle.server.settings import PathLimits, Settings
    from throttle.server.stores.memory import MemoryStore
    from throttle.server.stores.redis import RedisStore as RedisStore

__all__ = ["Delay", "Limits", "MemoryStore", "PathLimits", "Refusal", "Settings", "ThrottleMiddleware"]

_MODULES = {
    "Delay": "policy",
    "Limits": "policy",
    "MemoryStore": "stores.memory",
    "PathLimits": "settings",
    "RedisStore": "stores.redis",  # not in __all__: only for those who have its packages
    "Refusal": "refusal",
    "Settings": "settings",
    "ThrottleMiddleware": "middleware",
}


def __getattr__(name: str) -> Any:
    """Each name when it is first asked for: the client's half needs no web framework, which takes 130 ms to load."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"throttle.server.{_MODULES[name]}"), name)
    return value
