"""Who comes, in a TOML file: each `[who."NAME"]` is a class of callers, and a row of the report.

    seconds = 60                     # how long, unless the command says

    [who.people]
    kind = "people"                  # sessions: a page, its parts, a while of reading, the next
    count = 20

    [who."AI crawlers"]
    kind = "robots"                  # on a schedule, whatever is answered
    rate = 30                        # requests a second, all together, at random instants
    addresses = 2000
    agents = "crawlers"

`KEYS` has what each kind takes. `[site]` says where the site's pages are, see `places.py`.
"""

import math
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from throttle.load.agents import AGENTS, agents_named
from throttle.load.places import PATHS, SiteError, SiteMap, read_site

PEOPLE, ROBOTS, GREEDY, POLITE = "people", "robots", "greedy", "polite"
SECONDS = 30.0
CLASSES_MAX = 15
"""each has addresses in a sixteenth of 127.0.0.0/8, the first being left to the site"""
PER_NETWORK, NETWORKS_MAX = 250, 4096


USUAL_AGENTS = {PEOPLE: ("browsers",), ROBOTS: ("bots",), GREEDY: ("bots",), POLITE: ("crawlers",)}


class MixError(ValueError):
    """What a mix says cannot be done; one line that names the key."""


@dataclass(frozen=True, slots=True)
class Group:
    """One class of callers. Which fields count depends on the kind."""

    name: str
    kind: str
    count: int = 1
    """people at a time; polite crawlers"""
    think_seconds: float = 6.0
    """between two pages of a person, on average; never less than 2"""
    visit_pages: int = 8
    """after which the next visit begins, with an empty cache"""
    rate: float = 1.0
    """robots: requests a second, all together"""
    connections: int = 1
    """open at once: of the greedy, all together; of a polite crawler, at most"""
    addresses: int = 0
    """from which they ask; 0: as many as fit the kind"""
    networks: int = 0
    """of 250 addresses at most, over which these are spread; 0: ten of a robot's are in one, 200 people"""
    agents: tuple[str, ...] = ()
    """of `AGENTS`, or agents in full; each address has one of them. None: those usual for the kind"""
    paths: tuple[str, ...] = ("pages",)
    """of `PATHS`; one of them is drawn, then a path of it"""
    begins_at: float = 0.0
    """seconds after the start"""

    @property
    def seats(self) -> int:
        """Addresses in all."""
        own = {PEOPLE: self.count, POLITE: self.count, GREEDY: self.connections}
        return self.addresses or own.get(self.kind, 1)

    @property
    def spoken(self) -> tuple[str, ...]:
        """Agents in full."""
        return agents_named(self.agents or USUAL_AGENTS[self.kind])

    @property
    def spread(self) -> int:
        """Networks in all."""
        usual = math.ceil(self.seats / (200 if self.kind == PEOPLE else 10))
        return min(self.networks or usual, self.seats)


@dataclass(frozen=True, slots=True)
class Mix:
    """A crowd."""

    title: str
    groups: tuple[Group, ...]
    seconds: float = SECONDS
    site: SiteMap | None = None

    def lasting(self, seconds: float) -> "Mix":
        """The same for another time; what begins later begins at the same part of it."""
        groups = (replace(group, begins_at=group.begins_at * seconds / self.seconds) for group in self.groups)
        return replace(self, groups=tuple(groups), seconds=seconds)

    def scaled(self, factor: float) -> "Mix":
        """So many times the machines; people stay as many as they are."""
        return replace(
            self,
            groups=tuple(
                group
                if group.kind in (PEOPLE, POLITE)
                else replace(group, rate=group.rate * factor, connections=max(1, round(group.connections * factor)))
                for group in self.groups
            ),
        )


# What a mix may say

Check = Callable[[Any], Any]


def _whole(least: int, most: int) -> Check:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise MixError(f"a whole number from {least:,} to {most:,} is needed")
        return value

    return check


def _number(least: float, most: float) -> Check:
    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise MixError(f"a number from {least:g} to {most:,g} is needed")
        return float(value)

    return check


def _names(known: tuple[str, ...], *, others: bool = False) -> Check:
    def check(value: Any) -> tuple[str, ...]:
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise MixError("a name is needed, or a list of names")
        for name in names:
            if name not in known and not (others and "/" in name and name.isprintable() and name.isascii()):
                hint = ", or an agent with its version such as thing/1.0" if others else ""
                raise MixError(f"{name!r} is none of {', '.join(known)}{hint}")
        return tuple(names)

    return check


_COUNT = _whole(1, 100_000)
_SOME = {
    "addresses": _whole(1, 1_000_000),
    "networks": _whole(1, NETWORKS_MAX),
    "agents": _names(tuple(AGENTS), others=True),
    "begins_at": _number(0, 1e6),
}
_WHERE = {"paths": _names(PATHS)}
KEYS: dict[str, dict[str, Check]] = {
    PEOPLE: {**_SOME, "count": _COUNT, "think_seconds": _number(2.1, 3600), "visit_pages": _whole(1, 10_000)},
    ROBOTS: {**_SOME, **_WHERE, "rate": _number(0.001, 100_000)},
    GREEDY: {**_SOME, **_WHERE, "connections": _whole(1, 10_000)},
    POLITE: {**_SOME, **_WHERE, "count": _whole(1, 100), "connections": _whole(1, 100)},
}
NEEDED = {PEOPLE: "count", ROBOTS: "rate", GREEDY: "connections", POLITE: "count"}
_TOP = {"title", "seconds", "who", "site"}


def mix_from(told: Mapping[str, Any]) -> Mix:
    """The mix that a TOML document tells. Raises MixError."""
    _known(told, _TOP, "")
    who = told.get("who")
    if not isinstance(who, Mapping) or not who:
        raise MixError('a mix needs a class of callers, such as [who.people] with kind = "people"')
    if len(who) > CLASSES_MAX:
        raise MixError(f"who: {len(who)} classes; there may be {CLASSES_MAX}")
    groups = tuple(_group(name, keys) for name, keys in who.items())
    title = told.get("title", "")
    if not isinstance(title, str):
        raise MixError("title: a text is needed")
    seconds = _checked("seconds", _number(1, 1e6), told.get("seconds", SECONDS))
    try:
        site = read_site(told["site"]) if "site" in told else None
    except SiteError as error:
        raise MixError(str(error)) from None
    return Mix(title, groups, seconds, site)


def read_mix(named: str) -> Mix:
    """A built-in mix by its name, or the one in a TOML file. Raises MixError."""
    if named in built_in():
        return mix_from(tomllib.loads((files("throttle.load") / "mixes" / f"{named}.toml").read_text("utf-8")))
    path = Path(named)
    try:
        return mix_from(tomllib.loads(path.read_text("utf-8")))
    except MixError as error:
        raise MixError(f"{named}: {error}") from None
    except FileNotFoundError:
        raise MixError(f"{named!r} is neither a file nor a mix that is built in: {', '.join(built_in())}") from None
    except OSError as error:
        raise MixError(f"{named}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MixError(f"{named}: no TOML: {error}") from None


def built_in() -> list[str]:
    """The names of the mixes that come along."""
    folder = files("throttle.load") / "mixes"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def _group(name: str, keys: Any) -> Group:
    where = f"who.{name}" if name.isidentifier() else f'who."{name}"'
    if not isinstance(keys, Mapping):
        raise MixError(f"{where}: a table is needed, with a kind")
    if not name.strip() or not name.isprintable() or len(name) > 40 or "." in name:
        raise MixError(f"{where}: a name of 1 to 40 printable characters is needed, without a point")
    kind = keys.get("kind")
    if kind not in KEYS:
        raise MixError(f"{where}.kind: {kind!r} is none of {', '.join(KEYS)}")
    if NEEDED[kind] not in keys:
        raise MixError(f"{where}.{NEEDED[kind]} is needed where kind is {kind!r}")
    _known(keys, {"kind", *KEYS[kind]}, f"{where}.")
    read = {key: _checked(f"{where}.{key}", KEYS[kind][key], value) for key, value in keys.items() if key != "kind"}
    group = Group(name, kind, **read)
    if group.seats > group.spread * PER_NETWORK:
        raise MixError(f"{where}.networks: {group.seats:,} addresses need {math.ceil(group.seats / PER_NETWORK)}")
    return group


def _checked(where: str, check: Check, value: Any) -> Any:
    try:
        return check(value)
    except MixError as error:
        raise MixError(f"{where} = {value!r}: {error}") from None


def _known(told: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in told:
        if key not in known:
            raise MixError(f"{where}{key}: there is no such key, only {', '.join(sorted(known))}")
