"""`throttle ranges DIR`: download the lists of addresses that crawlers' operators publish. For cron, once a day.

It asks the addresses in `crawler_operators.LISTS` and no others. A list that can't be had, or makes no sense, changes
nothing: the file of the last time stays.
"""

import argparse
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException, HTTPMessage
from importlib.metadata import version
from pathlib import Path
from typing import IO

from throttle.cli import DONE, NOT_MET, CommandError
from throttle.server.address_ranges import LARGEST, RangesError, ranges_in
from throttle.server.crawler_operators import LISTS

SECONDS = 30
Fetch = Callable[[str], bytes]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What `throttle ranges` takes."""
    parser.add_argument("directory", type=Path, help="where the lists go, and where the site's crawler_ranges points")
    parser.add_argument(
        "lists", nargs="*", metavar="LIST", type=known, help=f"only these; default: all of {', '.join(LISTS)}"
    )
    parser.add_argument("--json", action="store_true", help="what became of each list, for machines")
    parser.epilog = "The exit code is 1 if a list could not be had; its file of the last time, if any, stays."


def run(arguments: argparse.Namespace) -> int:
    """Download the lists. Raises CommandError for a directory that can't be written."""
    names = arguments.lists or list(LISTS)
    try:
        arguments.directory.mkdir(parents=True, exist_ok=True)
        results = [download(name, arguments.directory, fetched) for name in names]
    except OSError as error:
        raise CommandError(f"{arguments.directory}: {error.strerror or error}") from None
    if arguments.json:
        print(json.dumps({"schema_version": 1, "lists": results}, indent=2))
    else:
        for result in results:
            said = result["error"] or f"{result['networks']} networks"
            print(f"{result['list']}: {said}", file=sys.stderr if result["error"] else sys.stdout)
    return NOT_MET if any(result["error"] for result in results) else DONE


def known(name: str) -> str:
    """The name of a list. Raises ArgumentTypeError for any other."""
    if name not in LISTS:
        raise argparse.ArgumentTypeError(f"there is no list {name!r}, only: {', '.join(LISTS)}")
    return name


def download(name: str, directory: Path, fetch: Fetch) -> dict[str, str | int | None]:
    """Fetch a list, look whether it is one, and put it in the place of the last, in one step.

    Its file is new even if the list is not: so it tells when somebody last looked. Raises OSError where the directory
    can't be written.
    """
    result: dict[str, str | int | None] = {"list": name, "url": LISTS[name], "networks": None, "error": None}
    try:
        raw = fetch(LISTS[name])
        result["networks"] = len(ranges_in(raw))
    except (OSError, HTTPException, RangesError) as error:
        result["error"] = " ".join(str(error).split())[:200] or type(error).__name__
        return result
    draft = directory / f".{name}.{os.getpid()}.new"
    try:
        draft.write_bytes(raw)
        draft.replace(directory / f"{name}.{ending(raw)}")
        for other in {"json", "csv"} - {ending(raw)}:  # the operator has changed the form
            (directory / f"{name}.{other}").unlink(missing_ok=True)
    finally:
        draft.unlink(missing_ok=True)
    return result


def ending(raw: bytes) -> str:
    """Of a list's file."""
    return "json" if raw.lstrip()[:1] in (b"{", b"[") else "csv"


class _HttpsOnly(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        if not newurl.startswith("https://"):
            raise urllib.error.URLError(f"leads away from https, to {newurl[:100]!r}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def fetched(url: str) -> bytes:
    """What is published there. Raises OSError or HTTPException."""
    agent = f"asgi-throttle/{version('asgi-throttle')} (throttle ranges)"
    request = urllib.request.Request(url, headers={"User-Agent": agent})
    with urllib.request.build_opener(_HttpsOnly).open(request, timeout=SECONDS) as answer:
        raw: bytes = answer.read(LARGEST + 1)
    return raw
