"""Admission control for Python web sites, people first, and the polite client that belongs to it."""

from throttle.server.middleware import ThrottleMiddleware
from throttle.server.policy import Delay, Limits
from throttle.server.refusal import Refusal
from throttle.server.settings import PathLimits, Settings
from throttle.server.stores.memory import MemoryStore

__all__ = ["Delay", "Limits", "MemoryStore", "PathLimits", "Refusal", "Settings", "ThrottleMiddleware"]
