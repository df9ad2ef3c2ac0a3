"""Many URLs, many hosts: fetched in parallel, politely within each, and nothing lost."""

from throttle.crawl.job import CrawlJob
from throttle.crawl.options import CrawlOptions, HostOptions
from throttle.crawl.page import Page
from throttle.crawl.queue import QueueError
from throttle.crawl.result import Problem, Redirect, Result
from throttle.crawl.robots import NoContactError

__all__ = [
    "CrawlJob",
    "CrawlOptions",
    "HostOptions",
    "NoContactError",
    "Page",
    "Problem",
    "QueueError",
    "Redirect",
    "Result",
]
