"""Where a job is kept that was given no place: by what it crawls, so that the same command finds it again."""

import argparse
import hashlib
import os
import sys
from dataclasses import asdict
from pathlib import Path

from throttle.cli import CommandError
from throttle.crawl import CrawlOptions
from throttle.crawl.kind import DECIDING


def default_job(arguments: argparse.Namespace, options: CrawlOptions) -> Path:
    """A list that was changed is another job. Raises CommandError where nothing can be kept."""
    parts = [f"{name}={asdict(options)[name]}" for name in DECIDING]
    for source in (*arguments.sources, *arguments.sitemap):
        path = Path(source)
        if path.exists():
            about = path.stat()
            parts.append(f"{path.resolve()} {about.st_size} {about.st_mtime_ns}")
        else:
            parts.append(source)
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    folder = _cache() / "throttle" / "crawl"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"{folder}: {error.strerror}; say with --job FILE where the job is kept") from None
    return folder / f"{digest}.sqlite"


def _cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home())
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
