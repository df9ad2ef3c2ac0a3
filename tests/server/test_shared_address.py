"""`Limits.modern`: people who share an address and an agent are told apart by a cookie, and nobody wins by it.

One library, one address, one frozen agent. Time is virtual.
"""

import asyncio
from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.asgi import CHROME, FEED_READER, Answer, ask
from tests.server.site import site
from tests.virtual_clock import in_virtual_time, now
from throttle import Limits, PathLimits, Settings

MODERN = Limits.modern()
DOCUMENT, IMAGE = {"sec-fetch-dest": "document"}, {"sec-fetch-dest": "image"}


class Browser:
    """A browser with its cookie jar, at the library's address if not told otherwise."""

    def __init__(self, app: Any, *, keeps_cookies: bool = True, **scope: Any) -> None:
        self.app = app
        self.keeps_cookies = keeps_cookies
        self.scope = scope
        self.cookie = ""

    async def get(self, path: str = "/", *, dest: str | None = "document", **more: Any) -> Answer:
        headers = [("sec-fetch-mode", "navigate" if dest == "document" else "no-cors")]
        headers += [] if dest is None else [("sec-fetch-dest", dest)]
        if self.cookie:
            headers.append(("cookie", f"theme=dark; {self.cookie}"))
        answer = await ask(self.app, path, headers=headers, **self.scope, **more)
        if self.keeps_cookies and (given := answer.fields.get("set-cookie")):
            self.cookie = given.partition(";")[0]
        return answer


async def statuses(browser: Browser, count: int, **more: Any) -> Counter[int | None]:
    return Counter([(await browser.get(**more)).status for _ in range(count)])


class Library:
    """Thirty people who come as people do, each with a page and what it loads every few seconds."""

    def __init__(self, app: Any, *, people: int = 30, seed: int = 5, **scope: Any) -> None:
        self.app = app
        self.scope = scope
        self.random = Random(seed)
        self.people = people
        self.refusals: list[int] = []
        """by person"""
        self.served = 0
        self.broken_promises = 0

    async def open(self, *, arrivals: float, pages: int) -> None:
        """Until all have read their pages. One comes every `arrivals` seconds on average."""
        self.refusals = [0] * self.people
        async with asyncio.TaskGroup() as group:
            for person in range(self.people):
                group.create_task(self._read(person, pages))
                await asyncio.sleep(self.random.expovariate(1 / arrivals))

    async def _read(self, person: int, pages: int) -> None:
        browser = Browser(self.app, **self.scope)
        for _ in range(pages):
            answer = await browser.get()
            if answer.status == 503:
                self.refusals[person] += 1
                await asyncio.sleep(answer.retry_after)  # the page that was sent reloads itself
                answer = await browser.get()
                self.broken_promises += answer.status != 200
            self.served += answer.status == 200
            for _ in range(8):
                assert (await browser.get(dest=self.random.choice(["image", "style", "empty"]))).status == 200
            await asyncio.sleep(2 + self.random.expovariate(1 / 4))


async def script(app: Any, served: list[float], **scope: Any) -> None:
    """Five pages a second, by one who throws his cookies away."""
    thief = Browser(app, keeps_cookies=False, **scope)
    while True:
        if (await thief.get()).status == 200:
            served.append(now())
        await asyncio.sleep(0.2)


def most_within(times: list[float], seconds: float) -> int:
    return max((sum(at <= other < at + seconds for other in times) for at in times), default=0)


@in_virtual_time
async def test_thirty_people_behind_one_address_with_one_agent_are_all_served() -> None:
    library = Library(site(limits=MODERN))
    await library.open(arrivals=5, pages=20)
    assert library.served == 30 * 20
    assert library.refusals == [0] * 30


@in_virtual_time
async def test_by_the_pages_own_rules_they_are_not() -> None:
    app = site(limits=Limits())
    people = [Browser(app) for _ in range(30)]
    answers = [await browser.get() for browser in people]
    assert Counter(answer.status for answer in answers) == {200: 10, 503: 20}


@in_virtual_time
async def test_thirty_who_come_in_the_same_instant_are_served_or_told_one_wait_that_holds() -> None:
    library = Library(site(limits=MODERN))
    await library.open(arrivals=0.001, pages=5)
    assert Counter(library.refusals) == {0: 10, 1: 20}
    assert library.broken_promises == 0
    assert library.served == 30 * 5


@pytest.mark.parametrize("scheme", ["http", "https"])
@in_virtual_time
async def test_they_are_served_while_a_script_among_them_that_throws_its_cookies_away_is_held_to_ten(
    scheme: str,
) -> None:
    app = site(limits=MODERN)
    library, served = Library(app, scheme=scheme), list[float]()
    reading = asyncio.create_task(library.open(arrivals=5, pages=40))
    await asyncio.sleep(200)  # all have come
    hammering = asyncio.create_task(script(app, served, scheme=scheme))
    await reading
    hammering.cancel()
    assert library.refusals == [0] * 30
    assert library.served == 30 * 40
    assert 1 <= most_within(served, 15) <= 10


@in_virtual_time
async def test_who_comes_while_the_script_hammers_is_told_one_wait_and_served_when_it_is_over() -> None:
    app = site(limits=MODERN)
    library, served = Library(app), list[float]()
    hammering = asyncio.create_task(script(app, served))
    await asyncio.sleep(60)
    await library.open(arrivals=2, pages=10)
    hammering.cancel()
    assert library.refusals == [1] * 30
    assert library.broken_promises == 0
    assert library.served == 30 * 10
    assert most_within(served, 15) <= 10


@pytest.mark.parametrize("cookie", ["", "throttle=", "throttle=" + "A" * 40, "__Host-throttle=" + "A" * 40])
@in_virtual_time
async def test_an_invented_cookie_is_worth_nothing(cookie: str) -> None:
    app = site(limits=MODERN)
    got = Counter()
    for _ in range(15):
        got[(await ask(app, headers={**DOCUMENT, "cookie": cookie})).status] += 1
    assert got == {200: 10, 503: 5}


@in_virtual_time
async def test_another_sites_cookie_is_worth_nothing() -> None:
    ours, theirs = (site(limits=MODERN, cookie_secret=f"{name}, a secret of it") for name in ("ours", "theirs"))
    browser = Browser(theirs, keeps_cookies=False)
    got = Counter()
    for _ in range(15):
        cookie = (await Browser(theirs, client=None).get()).fields.get("set-cookie", "").partition(";")[0]
        browser.app, browser.cookie = ours, cookie
        got[(await browser.get()).status] += 1
    assert got == {200: 10, 503: 5}


@in_virtual_time
async def test_workers_with_the_same_secret_know_each_others_cookies() -> None:
    one, other = (site(limits=MODERN, cookie_secret="the secret of all workers") for _ in range(2))
    browser = Browser(one)
    await browser.get()
    browser.app = other
    assert "set-cookie" not in (await browser.get()).fields


@in_virtual_time
async def test_a_browser_with_a_cookie_has_ten_pages_and_no_more() -> None:
    app = site(limits=MODERN)
    browser = Browser(app)
    await browser.get()
    assert await statuses(browser, 12) == {200: 10, 503: 2}
    assert "set-cookie" not in (await browser.get()).fields, "a refused browser keeps the cookie it has"


@in_virtual_time
async def test_the_cookies_of_a_burst_of_refusals_count_only_after_the_told_wait() -> None:
    app = site(limits=MODERN)
    assert await statuses(Browser(app, keeps_cookies=False), 10) == {200: 10}
    refused = Browser(app)
    first = await refused.get()
    assert (first.status, first.retry_after) == (503, 15)
    given = refused.cookie
    await asyncio.sleep(14)
    assert (await refused.get()).status == 503
    assert refused.cookie == given, "coming back early neither restarts the wait nor wins another cookie"
    await asyncio.sleep(1)
    assert (await refused.get()).status == 200


@in_virtual_time
async def test_collected_cookies_are_held_by_the_networks_ceiling() -> None:
    app = site(limits=Limits.modern(network_hits=50))
    collected = []
    for _ in range(10):
        browser = Browser(app)
        await browser.get()
        collected.append(browser)
    got = Counter[int | None]()
    for browser in collected:
        got += await statuses(browser, 10)
    assert got == {200: 40, 503: 60}


@in_virtual_time
async def test_rotating_browsers_names_is_held_by_the_networks_ceiling() -> None:
    app = site(limits=Limits.modern(network_hits=50))
    got = Counter()
    for number in range(80):
        answer = await ask(app, client=f"192.0.2.{number}", agent=CHROME.replace("143", str(number)))
        got[answer.status] += 1
        if answer.status == 503:
            assert b"your network" in answer.body
    assert got == {200: 50, 503: 30}
    assert (await ask(app, client="198.51.100.1")).status == 200, "another network"


@in_virtual_time
async def test_rotating_addresses_within_a_48_is_held_by_the_networks_ceiling() -> None:
    app = site(limits=Limits.modern(network_hits=50, network_bot_hits=20))
    people, bots = Counter(), Counter()
    for number in range(80):
        people[(await ask(app, client=f"2001:db8:7:{number:x}::1")).status] += 1
        bots[(await ask(app, client=f"2001:db8:7:{number:x}::1", agent=f"curl/8.{number}")).status] += 1
    assert people == {200: 50, 503: 30}
    assert bots == {200: 20, 503: 60}


# What pages load


@in_virtual_time
async def test_what_a_page_loads_counts_beside_pages_ten_times_as_wide() -> None:
    browser = Browser(site(limits=MODERN))
    await browser.get()
    assert await statuses(browser, 101, dest="image") == {200: 100, 503: 1}
    assert await statuses(browser, 11) == {200: 10, 503: 1}


@pytest.mark.parametrize(
    ("dest", "is_page"),
    [
        *((dest, True) for dest in (None, "document", "iframe", "frame", "object", "embed", "fencedframe")),
        *((dest, True) for dest in ("", "nonsense", "IMAGE", "image\xff")),
        *((dest, False) for dest in ("image", "empty", "script", "style", "font")),
    ],
)
@in_virtual_time
async def test_what_a_page_loads_is_what_the_browser_says_in_so_many_words(dest: str | None, is_page: bool) -> None:
    browser = Browser(site(limits=MODERN))
    await browser.get()
    assert await statuses(browser, 20, dest=dest) == ({200: 10, 503: 10} if is_page else {200: 20})


@in_virtual_time
async def test_a_bot_wins_nothing_by_saying_that_it_loads_images() -> None:
    browser = Browser(site(limits=MODERN), agent=FEED_READER)
    assert await statuses(browser, 15, dest="image") == {200: 10, 503: 5}


# Who is given a cookie


@in_virtual_time
async def test_only_pages_served_to_browsers_give_a_cookie() -> None:
    app = site(limits=MODERN, api_paths=["/api"])
    assert "set-cookie" in (await ask(app)).fields
    assert "set-cookie" not in (await ask(app, headers=IMAGE)).fields
    assert "set-cookie" not in (await ask(app, agent=FEED_READER)).fields
    assert "set-cookie" not in (await ask(app, "/api/papers")).fields
    assert "set-cookie" not in (await ask(app, "/robots.txt")).fields


@pytest.mark.parametrize(
    "settings",
    [{"limits": Limits()}, {"limits": Limits.modern(cookies=False)}, {"limits": MODERN, "enforce": False}],
    ids=["the page", "switched off", "dry run"],
)
@in_virtual_time
async def test_no_cookie_is_given(settings: dict[str, Any]) -> None:
    assert "set-cookie" not in (await ask(site(**settings))).fields


@in_virtual_time
async def test_a_user_who_is_logged_in_needs_no_cookie_and_is_given_none() -> None:
    app = site(limits=MODERN, identify=lambda scope: "ada")
    browser = Browser(app)
    browser.cookie = (await Browser(site(limits=MODERN)).get()).fields["set-cookie"].partition(";")[0]
    assert await statuses(browser, 12) == {200: 10, 503: 2}
    assert "set-cookie" not in (await ask(app)).fields


@pytest.mark.parametrize(
    ("cache_control", "is_given"),
    [("public, max-age=60", False), ("S-MaxAge=5", False), ("private", True), ("no-store", True), (None, True)],
)
@in_virtual_time
async def test_an_answer_that_a_shared_cache_keeps_gives_no_cookie(cache_control: str | None, is_given: bool) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [] if cache_control is None else [(b"cache-control", cache_control.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    throttle = site(limits=MODERN)
    throttle.app = app
    assert ("set-cookie" in (await ask(throttle)).fields) is is_given


@in_virtual_time
async def test_over_https_the_cookie_is_secure() -> None:
    given = (await ask(site(limits=MODERN), scheme="https", headers={"Sec-Fetch-Mode": "navigate"})).fields[
        "set-cookie"
    ]
    assert given.startswith("__Host-throttle=")
    assert given.endswith("; Secure")


@in_virtual_time
async def test_a_cookie_split_over_several_fields_is_found() -> None:
    app = site(limits=MODERN)
    own = (await ask(app)).fields["set-cookie"].partition(";")[0]
    for headers in ([("cookie", own), ("cookie", "a=b")], [("cookie", "a=b"), ("cookie", own)]):
        assert "set-cookie" not in (await ask(app, headers=headers)).fields


@in_virtual_time
async def test_a_path_may_have_cookies_where_the_rest_of_the_site_has_none() -> None:
    app = site(path_limits=[PathLimits("/search", MODERN)])
    assert "set-cookie" not in (await ask(app)).fields
    assert "set-cookie" in (await ask(app, "/search")).fields


def test_the_secret_is_shown_nowhere() -> None:
    settings = Settings(limits=MODERN, cookie_secret="a secret of the site")
    assert "a secret" not in repr(settings)
    with pytest.raises(ValueError, match="cookie_secret: a text of at least 16 characters is needed") as error:
        Settings(cookie_secret="too short")
    assert "too short" not in str(error.value)
