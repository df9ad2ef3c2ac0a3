"""How one site uses a server: the settings of a store in Redis, in code or in its URL."""

from dataclasses import dataclass, fields, replace
from typing import Any

MEANWHILE = {
    "local": "each worker decides by its own counts, so the limits multiply by the number of workers",
    "refuse": "everybody is refused but the exempt",
    "serve": "everybody is served",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisSettings:
    """How one site uses a server. Raises ValueError, naming the setting."""

    site: str = "site"
    """sites of different names on one server count apart"""
    prefix: str = "throttle"
    """all keys begin with it"""
    secret: str = ""
    """makes the hashes of addresses and agents such that who reads the server cannot guess them"""
    on_store_failure: str = "local"
    """«local»: decide by the counts of this process; «refuse»; «serve»"""
    time_box: float = 0.05
    """seconds that an ask may take"""
    lease_seconds: float = 10.0
    """after which what ran in a killed worker no longer counts"""
    now_is_given: bool = False
    """count by the times that are given with each ask, not by the server's clock: for tests"""

    def __post_init__(self) -> None:
        if self.on_store_failure not in MEANWHILE:
            raise ValueError(f"on_store_failure={self.on_store_failure!r}: one of {', '.join(MEANWHILE)} is needed")
        if not self.site or "}" in self.site:
            raise ValueError(f"site={self.site!r}: a name without «}}» is needed")
        if "{" in self.prefix or "}" in self.prefix:
            raise ValueError(f"prefix={self.prefix!r}: a text without braces is needed")
        for name, least, most in (("time_box", 0.001, 60), ("lease_seconds", 0.1, 3600)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
                raise ValueError(f"{name}={value!r}: seconds from {least} to {most} are needed")


def settings_of(given: dict[str, Any], query: dict[str, str]) -> RedisSettings:
    """Those of the URL, over those that the code gives."""
    known = {field.name: field.default for field in fields(RedisSettings)}
    read: dict[str, Any] = {}
    for name, text in query.items():
        if name not in known or isinstance(known[name], bool):
            raise ValueError(f"the store's URL: {name!r} is no setting; known are {', '.join(known)}")
        try:
            read[name] = float(text) if isinstance(known[name], float) else text
        except ValueError:
            raise ValueError(f"the store's URL: {name}={text!r}: a number is needed") from None
    return replace(RedisSettings(**given), **read)
