"""`throttle check throttle.toml`: the policy that a configuration makes, as sentences."""

import argparse
import json
import os
from dataclasses import asdict

from throttle.cli import DONE, CommandError
from throttle.operate.sentences import policy_in_sentences
from throttle.server.agent_table import TableError, read_table
from throttle.server.config import ConfigError, load
from throttle.server.crawler_operators import OPERATORS
from throttle.server.range_files import RangeFiles
from throttle.server.stores.named import store_named


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `throttle check` takes."""
    parser.add_argument("file", help="a TOML file, such as throttle.toml")
    parser.add_argument("--json", action="store_true", help="every setting with its value, for machines")
    parser.epilog = "The exit code is 0 if a site can run with the file (and THROTTLE_* here), else 1."


def run(arguments: argparse.Namespace) -> int:
    """Print the policy. Raises CommandError for a file with which no site could run."""
    try:
        settings, store = load(arguments.file, os.environ)
        if store is not None:
            store_named(store)
        if settings.agent_table is not None:
            read_table(settings.agent_table)
    except (ConfigError, TableError) as error:
        raise CommandError(str(error)) from None
    except ValueError as error:
        where = "environment" if os.environ.get("THROTTLE_STORE") else arguments.file
        raise CommandError(f"{where}: {error}") from None
    if arguments.json:
        table = {"schema_version": 1, "store": store, **asdict(settings)}
        table["cookie_secret"] = None if settings.cookie_secret is None else "(not shown)"
        print(json.dumps(table, indent=2))
    else:
        for sentence in policy_in_sentences(settings, store):
            print(sentence)
        if settings.verifies and settings.crawler_ranges is not None:
            print(lists_in_a_sentence(settings.crawler_ranges))
    return DONE


def lists_in_a_sentence(directory: str) -> str:
    """Of which operators the lists of addresses are there now. (A site runs without them, too, so none is an error.)"""
    files = RangeFiles(directory, OPERATORS)
    files.look()
    if not files.by_operator:
        return f"There is no list in {directory} now; `throttle ranges {directory}` downloads them."
    whole = [name for name, listed in files.by_operator.items() if listed.is_complete]
    parts = [name for name, listed in files.by_operator.items() if not listed.is_complete]
    some = f" Not all, or old ones: {'; '.join(parts)}." if parts else ""
    return f"Their lists are there now, whole and fresh: {'; '.join(whole) or 'of nobody'}.{some}"
