"""One URL under way, and what its answer leads to: another hop, another try, or a result. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from throttle.crawl.options import CrawlOptions
from throttle.crawl.queue import Pending
from throttle.crawl.result import Problem, Redirect, Result
from throttle.crawl.robots import REDIRECTS_MAX
from throttle.crawl.url_list import printable
from throttle.crawl.web_url import NotFetchableError, WebUrl, web_url

REDIRECTS = frozenset({301, 302, 303, 307, 308})
REFUSALS = frozenset({429, 503})
FAILURES = frozenset({500, 502, 504})
ROBOTS_ID = 0


@dataclass(slots=True)
class Errand:
    """`target` is where it is now: the URL itself, or where redirects have led."""

    url_id: int
    """ROBOTS_ID: it fetches a robots.txt, for `for_origin`"""
    url: str
    target: WebUrl
    method: str = "GET"
    depth: int = 0
    found_on: str = ""
    host_id: int = 0
    """of whose URLs it is one"""
    host: str = ""
    for_origin: str = ""
    redirects: tuple[Redirect, ...] = ()
    tries: int = 0
    attempt: int = 0  # at this hop
    spent: float = 0.0  # seconds its requests have taken, since the last retry

    @property
    def is_robots(self) -> bool:
        return self.url_id == ROBOTS_ID


def errand_of(pending: Pending, host_id: int, host: str, method: str) -> Errand:
    url = pending.url
    return Errand(
        pending.url_id, url, web_url(url), method, pending.depth, pending.found_on, host_id=host_id, host=host
    )


@dataclass(slots=True)
class Fetched:
    """What came back. `status` and `problem` may both be set: a body may break off."""

    status: int | None = None
    problem: Problem | None = None
    detail: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    bytes_read: int = 0
    is_truncated: bool = False
    seconds: float = 0.0


@dataclass(slots=True)
class Hop:
    """It goes on elsewhere, under the host of that place: the errand itself says where."""


@dataclass(slots=True)
class TryAgain:
    """If the host's retry budget has one left; else `result` stands. `is_refused`: the host itself rests."""

    result: Result
    is_refused: bool


def outcome(errand: Errand, fetched: Fetched, options: CrawlOptions) -> Result | Hop | TryAgain:
    """Moves the errand on, and says how."""
    errand.tries += 1
    errand.spent += fetched.seconds
    status = fetched.status
    if fetched.problem is None and status in REDIRECTS:
        return _redirected(errand, fetched, options)
    if status in (405, 501) and errand.method == "HEAD":
        errand.method = "GET"
        return Hop()
    result = result_of(errand, fetched)
    is_refused = status in REFUSALS
    if is_refused or status in FAILURES or (status is None and fetched.problem is not None):
        tries_max = options.tries_max if is_refused else (options.tries_max + 1) // 2
        if errand.attempt + 1 < tries_max:
            return TryAgain(result, is_refused or status is None)
    return result


def _redirected(errand: Errand, fetched: Fetched, options: CrawlOptions) -> Result | Hop:
    assert fetched.status is not None
    location = fetched.headers.get("location")
    if not location:
        result = result_of(errand, fetched)
        result.problem, result.detail = Problem.MALFORMED, "redirects, and does not say where to (no Location)"
        return result
    try:
        target = web_url(location, errand.target.url)
    except NotFetchableError as error:
        result = result_of(errand, fetched)
        result.problem, result.detail = Problem.MALFORMED, f"redirects to {location[:200]!a}: {error}"
        return result
    seen = {errand.url, errand.target.url, *(hop.url for hop in errand.redirects)}
    errand.redirects += (Redirect(fetched.status, target.url),)
    hops_max = REDIRECTS_MAX if errand.is_robots else options.redirects_max
    if target.url in seen or len(errand.redirects) > hops_max:
        result = result_of(errand, fetched)
        is_loop = target.url in seen
        result.problem = Problem.LOOP if is_loop else Problem.REDIRECTS
        result.detail = f"redirects back to {target.url}" if is_loop else f"more than {hops_max} redirects"
        return result
    errand.target = target
    errand.attempt = 0
    return Hop()


def result_of(errand: Errand, fetched: Fetched) -> Result:
    """As things stand."""
    return Result(
        url=errand.url,
        status=fetched.status,
        problem=fetched.problem,
        detail=printable(fetched.detail),
        final_url=errand.target.url if fetched.status is not None else "",
        redirects=errand.redirects,
        content_type=printable(fetched.headers.get("content-type", ""), 200),
        bytes_read=fetched.bytes_read,
        is_truncated=fetched.is_truncated,
        seconds=fetched.seconds,
        tries=errand.tries,
        depth=errand.depth,
        found_on=errand.found_on,
        url_id=errand.url_id,
        host_id=errand.host_id,
        host=errand.host,
    )


def no_answer(errand: Errand, problem: Problem, detail: str) -> Result:
    """It was not sent, or nothing more is to be expected."""
    return result_of(errand, Fetched(problem=problem, detail=detail))
