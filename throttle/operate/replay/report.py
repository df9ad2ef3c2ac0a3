"""What a replay found, as one document: the source of the text, the page and the JSON.

No address stands in it, unless it is asked for: callers carry a name that only this run can make.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from throttle.operate.access_log.files import Coverage
from throttle.operate.access_log.line import Unread
from throttle.operate.replay.replay import Replay
from throttle.operate.replay.tally import RefusedCaller, Tally
from throttle.server.agents import CallerClass, describe

SCHEMA_VERSION = 1
SAMPLE = 160
"""letters of a line that a sample shows"""

Document = dict[str, Any]
Name = Callable[[str], str]
"""the name under which an address is reported"""

_ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b|(?<![\w:])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:])")
_QUERY = re.compile(r"\?[^\s\"]+")


def pseudonyms() -> Name:
    """Names for addresses by a keyed hash: the same address the same name, until the process ends."""
    key = os.urandom(16)
    return lambda address: "caller-" + hashlib.blake2b(address.encode(), key=key, digest_size=4).hexdigest()


def document(
    replay: Replay,
    coverage: Coverage,
    files: Sequence[str],
    *,
    is_whole: bool = True,
    name_of: Name | None = None,
    worst: int = 20,
) -> Document:
    """All figures. `name_of` None shows addresses as they are."""
    return {
        "schema_version": SCHEMA_VERSION,
        "interrupted": not is_whole,
        "coverage": _coverage(replay, coverage, files, shows_addresses=name_of is None),
        "span": _span(replay),
        "limits": asdict(replay.settings.limits),
        "load": {
            "replayed": replay.has_load,
            "hits_with_duration": replay.timed,
            "mean_duration": round(replay.duration / replay.timed / 1e6, 6) if replay.timed else None,
            "assumed_duration": replay.assume_duration,
        },
        "classes": {key(one): _class(replay, one) for one in CallerClass},
        "files": {
            "extensions": list(replay.static_extensions),
            "left_out": replay.files,
            "with_files": {key(one): _figures(tally) for one, tally in replay.with_files.items()},
        },
        "what_if": [
            {
                "limit": one.variant.name,
                "times": one.variant.times,
                "value": one.variant.value,
                "classes": {key(c): _figures(_compared(replay, one.tallies, c)) for c in CallerClass},
            }
            for one in replay.compared
        ],
        "worst_callers": [_caller(one, name_of) for one in replay.worst.most(worst)],
        "notes": [*coverage.notes, *_notes(replay, coverage)],
    }


def key(caller_class: CallerClass) -> str:
    """A class's name in the document, such as `known_crawler`."""
    return caller_class.value.replace(" ", "_")


def _coverage(replay: Replay, coverage: Coverage, files: Sequence[str], *, shows_addresses: bool) -> Document:
    return {
        "files": list(files),
        "lines": coverage.lines,
        "parsed": coverage.parsed,
        "unparsed": coverage.unread[Unread.UNPARSED],
        "unparsed_samples": [
            {"file": name, "line": number, "text": _sample(line, shows_addresses=shows_addresses)}
            for name, number, line in coverage.samples
        ],
        "no_request": coverage.unread[Unread.NO_REQUEST],
        "hits": replay.hits,
        "exempt": replay.exempt,
        "late": coverage.late,
    }


def _sample(line: bytes, *, shows_addresses: bool) -> str:
    text = line[: 4 * SAMPLE].decode("utf-8", "replace").strip()
    text = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
    if not shows_addresses:
        text = _QUERY.sub("?…", _ADDRESS.sub("[address]", text))
    return text if len(text) <= SAMPLE else text[:SAMPLE] + "…"


def _span(replay: Replay) -> Document:
    if replay.first is None:
        return {"first": None, "last": None, "seconds": 0}
    return {
        "first": moment(replay.first),
        "last": moment(replay.last),
        "seconds": (replay.last - replay.first) // 1_000_000,
    }


def moment(microseconds: int) -> str:
    """The time in UTC as ISO 8601, whole seconds."""
    try:
        return datetime.fromtimestamp(microseconds // 1_000_000, UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return "unknown"


def _figures(tally: Tally) -> Document:
    return {
        "requests": tally.requests,
        "callers": len(tally.callers),
        "served": tally.served,
        "slept": tally.slept,
        "refused": tally.refused,
        "refused_share": round(tally.refused / tally.requests, 6) if tally.requests else 0.0,
        "refused_by": dict(tally.refused_by.most_common()),
        "callers_refused": len(tally.callers_refused),
    }


def _class(replay: Replay, caller_class: CallerClass) -> Document:
    bursts = replay.bursts[caller_class]
    return {
        **_figures(replay.tallies[caller_class]),
        "honest_burst": bursts.honest,
        "longest_burst": bursts.longest,
    }


def _compared(replay: Replay, tallies: dict[CallerClass, Tally], caller_class: CallerClass) -> Tally:
    """The variant's figures; requests and callers are those of the log."""
    original = replay.tallies[caller_class]
    tally = tallies.get(caller_class, original)
    tally.requests, tally.callers = original.requests, original.callers
    return tally


def _caller(caller: RefusedCaller, name_of: Name | None) -> Document:
    return {
        "caller": caller.address if name_of is None else name_of(caller.address),
        "class": key(caller.caller_class),
        "agent": describe(caller.agent),
        "refused": caller.by.total(),
        "refused_by": dict(caller.by.most_common()),
        "first_refused": moment(caller.first),
    }


def _notes(replay: Replay, coverage: Coverage) -> list[str]:
    """What the figures cannot say, or what may mislead."""
    notes = []
    if not replay.has_load:
        notes.append(
            "The load gate was not replayed, since the log tells no durations: nobody slept or was refused for load. "
            "Log them (Apache %D, nginx $request_time), or say --assume-duration SECONDS."
        )
    elif replay.assume_duration is not None and replay.timed < replay.hits:
        notes.append(
            f"The load gate was replayed as if each request without a duration took {replay.assume_duration:g} s "
            f"({replay.hits - replay.timed:,} of {replay.hits:,}): its figures are as good as that guess."
        )
    elif replay.timed < replay.hits:
        notes.append(
            f"{replay.hits - replay.timed:,} of {replay.hits:,} requests have no duration and count as taking no time."
        )
    if coverage.late:
        notes.append(
            f"{coverage.late:,} lines came over 5 minutes or 100,000 lines out of order and count as of the line "
            "before them; --unsorted sorts the whole log."
        )
    if replay.forwarded and not replay.settings.trusted_proxies:
        notes.append(
            f"{replay.forwarded:,} lines name a forwarded address that is not believed; --trusted-proxy names the "
            "proxies that wrote it."
        )
    if replay.files:
        notes.append(
            "Requests for static files were told by their extension, since a log does not know what the application "
            "mounts; live, what `StaticFiles` serves and `exempt_prefixes` name is exempt."
        )
    notes.append(
        "Logs tell whole seconds mostly, so hits within one count as made at once. Who is refused comes back later "
        "or not at all; a log cannot tell which."
    )
    return notes


def figures(report: Document) -> dict[str, float | None]:
    """All single numbers of a report by their path: what a requirement can name."""
    with_files = {f"with_files.{name}": one for name, one in report["files"]["with_files"].items()}
    parts = {**report["classes"], "coverage": report["coverage"], "load": report["load"], **with_files}
    return dict(_numbers(parts, ""))


def _numbers(part: dict[str, Any], path: str) -> Iterator[tuple[str, float]]:
    for name, value in part.items():
        if isinstance(value, dict) and name != "refused_by":
            yield from _numbers(value, f"{path}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{path}{name}", value
