"""The options of a crawl, from the command line and a TOML file for single hosts."""

import argparse
import tomllib
from pathlib import Path
from typing import Any

from throttle.client.settings import Rates
from throttle.crawl import CrawlOptions, HostOptions

NUMBERS = ("rate", "start", "in_flight", "min_delay")


class UsageError(Exception):
    """The message says what is wrong with what was given."""


def options_from(arguments: argparse.Namespace) -> CrawlOptions:
    """Raises UsageError."""
    try:
        return CrawlOptions(
            method="HEAD" if arguments.head else "GET",
            follow=arguments.follow,
            external=arguments.external,
            concurrency=arguments.concurrency,
            timeout=arguments.timeout,
            body_max=arguments.body_max,
            min_delay=arguments.min_delay,
            max_rate=arguments.max_rate,
            deadline=arguments.deadline,
            durable=arguments.durable,
            per_host={} if arguments.hosts is None else per_host(arguments.hosts),
        )
    except ValueError as error:
        raise UsageError(str(error)) from None


def per_host(path: Path) -> dict[str, HostOptions]:
    """Raises UsageError, naming the host and the setting."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}") from None
    return {name.lower(): _one(f'{path}: ["{name}"]', table) for name, table in tables.items()}


def _one(where: str, table: Any) -> HostOptions:
    if not isinstance(table, dict):
        raise UsageError(f'{where}: a host is a table, such as ["example.org"]')
    unknown = table.keys() - {*NUMBERS, "robots"}
    if unknown:
        raise UsageError(f"{where}: unknown: {', '.join(sorted(unknown))}; known are {', '.join(NUMBERS)}, robots")
    for name in NUMBERS:
        value = table.get(name, 1)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
            raise UsageError(f"{where}: {name} must be a number above 0")
    if not isinstance(table.get("robots", True), bool):
        raise UsageError(f"{where}: robots is true or false")
    start = min(float(table.get("start", 2.0)), 1000.0)
    in_flight = max(1, int(table.get("in_flight", 100)))
    return HostOptions(
        rate=table.get("rate"),
        rates=Rates(start=start, in_flight=in_flight) if table.keys() & {"start", "in_flight"} else None,
        min_delay=table.get("min_delay"),
        robots=table.get("robots"),
    )
