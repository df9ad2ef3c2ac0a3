"""`throttle check throttle.toml`: the policy that a configuration makes, as sentences."""

import argparse
import json
import os
from dataclasses import asdict

from throttle.cli import DONE, CommandError
from throttle.operate.sentences import policy_in_sentences
from throttle.server.agent_table import TableError, read_table
from throttle.server.config import ConfigError, load
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
    return DONE
