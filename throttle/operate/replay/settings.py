"""The settings that a replay needs, from a TOML file."""

import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from throttle.server.policy import Delay, Limits


class SettingsError(ValueError):
    """A file that cannot be used; one line: the file, the key, what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What of a site's settings concerns a replay; see `ThrottleMiddleware`."""

    limits: Limits = field(default_factory=Limits)
    trusted_proxies: Sequence[str] = ()
    forwarded_header: str | None = None
    ipv6_prefix: int = 64
    exempt_paths: Sequence[str] | None = None
    exempt_prefixes: Sequence[str] | None = None
    api_paths: Sequence[str] = ()


def load(path: str | os.PathLike[str]) -> Settings:
    """The settings of a TOML file with a table `limits`. Raises SettingsError."""
    name = os.fspath(path)
    try:
        with open(path, "rb") as file:
            table = tomllib.load(file)
    except OSError as error:
        raise SettingsError(f"{name}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{name}: not TOML: {error}") from None
    given = table.pop("limits", {})
    if table:
        raise SettingsError(f"{name}: unknown key {next(iter(table))!r}; known is the table [limits]")
    if not isinstance(given, dict):
        raise SettingsError(f"{name}: limits={given!r}: a table is needed, begun with [limits]")
    known = [one.name for one in fields(Limits)]
    for key, value in given.items():
        if key not in known:
            raise SettingsError(f"{name}: limits: unknown key {key!r}; known are {', '.join(known)}")
        given[key] = _value(key, value)
    try:
        return Settings(limits=Limits(**given))
    except (TypeError, ValueError) as error:
        raise SettingsError(f"{name}: {error}") from None


def _value(key: str, value: Any) -> Any:
    if key in ("defer_delay", "wait_told") and isinstance(value, dict):
        return Delay(**value)
    return tuple(value) if isinstance(value, list) else value
