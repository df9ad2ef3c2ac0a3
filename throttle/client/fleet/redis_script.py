"""The ledger's script and keys, for a client of redis-py."""

from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from throttle.client.fleet.call import Call

if TYPE_CHECKING:
    import redis

LUA = files(__package__).joinpath("ledger.lua").read_text(encoding="utf-8")


def channel(prefix: str) -> str:
    return f"{prefix}:news"


def keys(prefix: str, host: str) -> list[str]:
    """Of one host, together in a cluster."""
    tag = f"{prefix}:{{{host}}}"
    return [f"{tag}:pace", f"{tag}:workers", f"{tag}:seen"]


def ledger_script(server: "redis.Redis", prefix: str) -> Callable[[Call, int], Any]:
    """Call it with a `Call` and the time in microseconds; 0: the server's clock."""
    script = server.register_script(LUA)
    news = channel(prefix)
    return lambda call, now: script(keys=keys(prefix, call.host), args=call.arguments(now, news))
