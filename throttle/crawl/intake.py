"""Lines and links on their way into the queue: each becomes a URL to fetch, or is told why it is none."""

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from itertools import islice

from throttle.crawl.links import is_within
from throttle.crawl.queue import Added, NewUrl, Queue
from throttle.crawl.result import Result
from throttle.crawl.url_list import printable
from throttle.crawl.web_url import NotFetchableError, WebUrl, web_url

CHUNK = 2000


class Intake:
    """`key` tells which host an authority belongs to; links are followed `follow` deep, on the sites given."""

    def __init__(self, key: Callable[[str], str], follow: int, *, has_external: bool) -> None:
        self._key = key
        self._follow = follow
        self._has_external = has_external
        self._sites: set[str] = set()

    def add(self, queue: Queue, lines: Sequence[str]) -> Added:
        """In the queue's thread: a million lines take a while to read."""
        return queue.add([self._new_url(line) for line in lines])

    def _new_url(self, line: str) -> NewUrl:
        if not isinstance(line, str):
            raise TypeError(f"urls must be texts, and {line!a:.80} is none")
        try:
            if not line.isascii() and any("\ud800" <= char <= "\udfff" for char in line):
                raise NotFetchableError("not UTF-8")
            url = web_url(line)
        except NotFetchableError as error:
            shown = printable(line)
            return NewUrl(shown, shown, "", problem=str(error))
        if self._follow:
            self._sites.add(url.authority.removeprefix("www."))
        return NewUrl(url.url, url.url if line == url.url else printable(line), self._key(url.authority))

    def new_links(self, result: Result, links: Sequence[WebUrl]) -> list[NewUrl]:
        """Of what a page links to, what belongs to the job."""
        new = []
        for link in links:
            is_own = is_within(link.authority, self._sites)
            if is_own or self._has_external:
                depth = result.depth + 1 if is_own else self._follow
                new.append(NewUrl(link.url, link.url, self._key(link.authority), depth, result.final_url))
        return new


async def chunks(urls: Iterable[str] | AsyncIterable[str]) -> AsyncIterator[list[str]]:
    """Some at a time, of either kind of iterable."""
    if isinstance(urls, AsyncIterable):
        chunk: list[str] = []
        async for one in urls:
            chunk.append(one)
            if len(chunk) >= CHUNK:
                yield chunk
                chunk = []
        if chunk:
            yield chunk
        return
    iterator = iter(urls)
    while some := list(islice(iterator, CHUNK)):
        yield some
