"""What kind of crawl a job is: the options that decide which URLs it has and what is asked of them."""

from throttle.crawl.options import CrawlOptions
from throttle.crawl.queue import Queue, QueueError

DECIDING = ("method", "follow", "external", "robots")
"""the rest may change from run to run"""


def keep_kind(queue: Queue, options: CrawlOptions) -> None:
    """What was done under other options would be missing, and nobody would be told. Raises QueueError."""
    kind = {name: getattr(options, name) for name in DECIDING}
    before = queue.noted("kind")
    if before is None:
        queue.note("kind", kind)
    elif before != kind:
        was = ", ".join(
            f"{name} was {before.get(name)}, now {own}" for name, own in kind.items() if before.get(name) != own
        )
        raise QueueError(f"the job was begun otherwise ({was}): go on with that, name another file, or use --fresh")
