"""The settings from one TOML file, keyword arguments, and environment variables for what differs per machine.

What the code says is overridden by the file, and the file by the environment. Each key is checked, and an error names
the key, its value and what is allowed. Keys are the settings' own names:

    enforce = false
    trusted_proxies = ["10.0.0.0/8"]
    [limits]
    load_max = 30
    defer_delay = {maximum = 10}
    [[path_limits]]
    path = "/search"
    methods = ["GET"]
    stack_hits = 5          # all else as in [limits]
"""

import difflib
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from throttle.server.policy import AUTO, COUNTS_OR_NONE, Delay, Limits
from throttle.server.settings import PathLimits, Settings
from throttle.server.watched_file import WatchedFile

PRESETS: dict[str, Callable[[], Limits]] = {"connotea": Limits.connotea, "modern": Limits.modern}
ENVIRONMENT = ("THROTTLE_STORE", "THROTTLE_ENFORCE", "THROTTLE_LOAD_MAX", "THROTTLE_TRUSTED_PROXIES", "THROTTLE_SECRET")
LARGEST = 1_000_000
"""bytes of a file that are read"""


class ConfigError(ValueError):
    """Settings that cannot be used. One line: where, the key, its value, what is allowed."""


class Loaded(NamedTuple):
    """What a file and the environment say."""

    settings: Settings
    store: str | None
    """the store's name, where one is given"""


class ConfigFile:
    """A TOML file that is read now, and again when it has changed. Raises ConfigError."""

    def __init__(self, path: str | os.PathLike[str], environ: Mapping[str, str] = os.environ) -> None:
        self._file = WatchedFile(path)
        self.path = self._file.path
        self._environ = environ

    def load(self, **from_code: Any) -> Loaded:
        """The settings as the file stands; `from_code` are the keyword arguments that it overrides."""
        self._file.note_read()
        return settings_from(read_table(self.path), self._environ, source=str(self.path), **from_code)

    def has_changed(self) -> bool:
        """Since it was last loaded. A file that is gone has not: what was read from it stays in force."""
        return self._file.has_changed()


def load(path: str | os.PathLike[str], environ: Mapping[str, str] = os.environ) -> Loaded:
    """The settings of one file and the environment. Raises ConfigError."""
    return ConfigFile(path, environ).load()


def read_table(path: Path) -> dict[str, Any]:
    """The file's table. Raises ConfigError where it cannot be read or is no TOML."""
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST + 1)
        if len(raw) > LARGEST:
            raise ConfigError(f"{path}: larger than {LARGEST} bytes; is it a configuration file?")
        return tomllib.loads(raw.decode())
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8, as TOML must be") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None


def settings_from(
    table: Mapping[str, Any], environ: Mapping[str, str], *, source: str = "settings", **from_code: Any
) -> Loaded:
    """The settings that a file's table and the environment give, over those from code. Raises ConfigError."""
    given = dict(table)
    store = _store(given.pop("store", None), source)
    limits = from_code.get("limits") or Limits()
    if "preset" in given:
        limits = _preset(given.pop("preset"), source)
    limits = _limits(limits, given.pop("limits", {}), f"{source}: limits")
    from_environment = _from_environment(environ)
    store = from_environment.pop("store", store)
    if "load_max" in from_environment:
        limits = _limits(limits, {"load_max": from_environment.pop("load_max")}, "environment: THROTTLE_LOAD_MAX")
    path_limits = [_path_limits(limits, one, source) for one in _tables(given.pop("path_limits", None), source)]
    allowed = [field.name for field in fields(Settings) if field.name not in ("limits", "path_limits")]
    _need_known(given, [*allowed, "limits", "path_limits", "preset", "store"], source)
    for name in allowed:
        if name in given and isinstance(given[name], list):
            given[name] = tuple(given[name])
    merged = {**from_code, **given, "limits": limits}
    if path_limits:
        merged["path_limits"] = tuple(path_limits)
    _settings(merged, source)  # an error of the file is the file's, not the environment's
    return Loaded(_settings({**merged, **from_environment}, "environment"), store)


def _settings(values: Mapping[str, Any], source: str) -> Settings:
    try:
        return Settings(**values)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{source}: {error}") from None


def _store(name: object, source: str) -> str | None:
    if name is not None and not isinstance(name, str):
        raise ConfigError(f'{source}: store={name!r}: the name of a store is needed, such as "memory"')
    return name


def _preset(name: object, source: str) -> Limits:
    if not isinstance(name, str) or name not in PRESETS:
        raise ConfigError(f"{source}: preset={name!r}: one of {', '.join(PRESETS)} is needed")
    return PRESETS[name]()


def _limits(limits: Limits, table: object, where: str) -> Limits:
    """`limits` with what the table says in its place."""
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where}: a table is needed")
    changes = dict(table)
    _need_known(changes, [field.name for field in fields(Limits)], where)
    for name, value in changes.items():
        if name in ("defer_delay", "wait_told"):
            changes[name] = _delay(getattr(limits, name), value, f"{where}.{name}")
        elif value == "off" and name in ("lone_crawler_seconds", "all_crawlers_seconds", *COUNTS_OR_NONE):
            changes[name] = None
        elif isinstance(value, list):
            changes[name] = tuple(value)
    try:
        return replace(limits, **changes)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{where}: {error}") from None


def _delay(delay: Delay, table: object, where: str) -> Delay:
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where}: a table is needed, such as {{multiplier = 1, maximum = 30}}")
    _need_known(table, [field.name for field in fields(Delay)], where)
    try:
        return replace(delay, **table)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{where}: {error}") from None


def _tables(value: object, source: str) -> list[Mapping[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
        raise ConfigError(f"{source}: path_limits: tables are needed, each begun with [[path_limits]]")
    return value


def _path_limits(limits: Limits, table: Mapping[str, Any], source: str) -> PathLimits:
    changes = dict(table)
    if "path" not in changes:
        raise ConfigError(f'{source}: path_limits: each needs a path, such as path = "/search"')
    path, methods = changes.pop("path"), changes.pop("methods", None)
    where = f"{source}: path_limits {path!r}"
    if pause := next((key for key in changes if key.startswith("pause")), None):
        raise ConfigError(f"{where}: {pause}: there is no pause of a path; pause the whole site, in [limits]")
    try:
        return PathLimits(path, _limits(replace(limits, paused=False), changes, where), methods)
    except ConfigError:
        raise
    except ValueError as error:
        raise ConfigError(f"{source}: path_limits: {error}") from None


def _need_known(given: Iterable[str], allowed: list[str], where: str) -> None:
    for key in given:
        if key not in allowed:
            near = difflib.get_close_matches(key, allowed, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(sorted(allowed))}"
            raise ConfigError(f"{where}: unknown key {key!r}; {hint}")


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """The few settings that differ per machine. Raises ConfigError."""
    given: dict[str, Any] = {}
    for name in ENVIRONMENT:
        value = environ.get(name, "").strip()
        if not value:
            continue
        key = name.removeprefix("THROTTLE_").lower()
        if key == "enforce":
            switches = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False}
            switches["off"] = False
            if value.lower() not in switches:
                raise ConfigError(f"environment: {name}={value!r}: true or false is needed")
            given[key] = switches[value.lower()]
        elif key == "load_max":
            if not value.isdecimal() and value != AUTO:
                raise ConfigError(f'environment: {name}={value!r}: a whole number, or "auto", is needed')
            given[key] = int(value) if value.isdecimal() else AUTO
        elif key == "trusted_proxies":
            given[key] = tuple(part.strip() for part in value.split(",") if part.strip())
        else:
            given["cookie_secret" if key == "secret" else key] = value
    return given
