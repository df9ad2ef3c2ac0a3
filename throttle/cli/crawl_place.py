"""Where a job is kept that was given no place: by what it crawls, so that the same command finds it again."""

import argparse
import hashlib
import os
import sys
from dataclasses import asdict
from pathlib import Path

from throttle.crawl import CrawlOptions

# What decides which URLs a job has and what is asked of them; the rest may change from run to run.
DECIDING = ("method", "follow", "external", "robots")


def default_job(arguments: argparse.Namespace, options: CrawlOptions) -> Path:
    """A list that was changed is another job."""
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
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{digest}.sqlite"


def _cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home())
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
