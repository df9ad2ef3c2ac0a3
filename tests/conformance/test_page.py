"""«Load Control in Connotea», sentence by sentence, asked of a whole site; then its pseudo-code, line by line.

A page below /slow is a query that runs until the site is told to end it.
"""

import asyncio
from typing import Any

from tests.asgi import CHROME, FEED_READER, GOOGLEBOT, Answer, Request, http_scope
from tests.virtual_clock import in_virtual_time, now
from throttle import Limits, MemoryStore, ThrottleMiddleware

SLURP = "Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)"


class Site:
    """Queries behind the throttle."""

    def __init__(self, **settings: Any) -> None:
        self.ran = 0
        self.running: list[asyncio.Event] = []
        self.store = MemoryStore()
        self.app = ThrottleMiddleware(
            self._really_handle_request, store=self.store, clock=now, random=lambda: 0.0, **settings
        )

    async def _really_handle_request(self, scope: Any, receive: Any, send: Any) -> None:
        self.ran += 1
        if scope["path"] == "/slow":
            end = asyncio.Event()
            self.running.append(end)
            await end.wait()
            self.running.remove(end)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a page of bookmarks"})

    async def begins(self, path: str = "/slow", **scope: Any) -> Request:
        """A request under way, as far as it gets at once."""
        request = Request(self.app, http_scope(path, **scope))
        await asyncio.sleep(0.001)
        return request

    async def asked(self, path: str = "/", **scope: Any) -> Answer:
        """The answer to a request that need not wait."""
        request = await self.begins(path, **scope)
        assert request.task.done(), "it waits"
        return await request.finished()

    async def runs_other_queries(self, count: int) -> None:
        """People's, each at an address of its own."""
        for number in range(count):
            await self.begins(client=f"198.51.100.{number}")
        assert len(self.running) == count

    async def runs_one_more_query(self) -> None:
        await self.begins(client="198.51.100.200")

    async def refused_for_load(self) -> Answer:
        await self.runs_other_queries(15)
        return await self.asked(agent=FEED_READER)

    async def ends_one(self) -> None:
        self.running[0].set()
        await asyncio.sleep(0.001)

    async def ends_all(self, *requests: Request) -> None:
        while not all(request.task.done() for request in requests):
            for end in self.running:
                end.set()
            await asyncio.sleep(0.001)


async def at(second: float) -> None:
    """So many seconds after the clock began."""
    await asyncio.sleep(1000 + second - now())


@in_virtual_time
async def test_connotea_is_stopped_from_being_overburdened_with_simultaneous_queries() -> None:
    """«… internal load controls that are designed to stop it from being overburdened with simultaneous queries.»"""
    site = Site()
    requests = [await site.begins(agent=FEED_READER, client=f"203.0.113.{number}") for number in range(60)]
    assert len(site.running) == 15
    assert site.store.sleeping == 10
    assert sum(request.answer.status == 503 for request in requests) == 35
    await site.ends_all(*requests)


@in_virtual_time
async def test_user_requests_take_priority_followed_by_web_api_and_non_browsers_followed_by_crawlers() -> None:
    """«The intention is that user requests take priority, followed by Web API and other non-browser requests, …»"""
    site = Site(api_paths=["/data"])
    await site.runs_other_queries(15)
    crawler = await site.begins("/", agent=GOOGLEBOT, client="203.0.113.1")
    feed_reader = await site.begins("/", agent=FEED_READER, client="203.0.113.2")
    via_web_api = await site.begins("/data", agent=CHROME, client="203.0.113.3")
    person = await site.begins("/", agent=CHROME, client="203.0.113.4")
    order = [person.task.done(), feed_reader.task.done(), via_web_api.task.done(), crawler.task.done()]
    assert order == [True, False, False, False], "people are served at once"
    ended: list[str] = []
    for name, request in (("crawler", crawler), ("reader", feed_reader), ("Web API", via_web_api)):
        request.task.add_done_callback(lambda _, name=name: ended.append(name))
    await site.ends_one()
    assert ended == ["reader", "Web API", "crawler"]
    await site.ends_all()


@in_virtual_time
async def test_a_users_browser_is_always_served_immediately_no_matter_what_the_load() -> None:
    """«If the request comes from a user's browser, always try to serve it immediately, no matter what the load.»"""
    site = Site()
    await site.runs_other_queries(100)
    assert (await site.asked(agent=CHROME)).status == 200


@in_virtual_time
async def test_unless_this_user_has_requested_more_than_10_pages_in_the_previous_15_seconds() -> None:
    site = Site()
    for _ in range(10):
        assert (await site.asked(agent=CHROME)).status == 200
    assert (await site.asked(agent=CHROME)).status == 503
    assert (await site.asked(agent=CHROME, client="203.0.113.9")).status == 200, "another user"
    await at(30)
    assert (await site.asked(agent=CHROME)).status == 200


@in_virtual_time
async def test_a_known_crawler_is_served_only_if_it_has_not_come_in_the_previous_30_seconds() -> None:
    """«… only serve the request if this crawler hasn't acccessed Connotea in the previous 30 seconds, and»"""
    site = Site()
    assert (await site.asked(agent=GOOGLEBOT)).status == 200
    await at(29.9)
    assert (await site.asked(agent=GOOGLEBOT)).status == 503
    await at(30)
    assert (await site.asked(agent=GOOGLEBOT)).status == 200


@in_virtual_time
async def test_and_no_web_crawler_has_come_in_the_previous_2_seconds() -> None:
    """«no web crawler has accessed Connotea in the previous 2 seconds, and»"""
    site = Site()
    assert (await site.asked(agent=GOOGLEBOT)).status == 200
    await at(1.9)
    assert (await site.asked(agent=SLURP, client="203.0.113.9")).status == 503
    await at(2)
    assert (await site.asked(agent=SLURP, client="203.0.113.9")).status == 200


@in_virtual_time
async def test_and_fewer_than_15_other_queries_are_running() -> None:
    """«Connotea is running fewer than 15 other queries at the same time.»"""
    site = Site()
    await site.runs_other_queries(14)
    assert (await site.asked(agent=GOOGLEBOT)).status == 200
    await site.runs_one_more_query()
    await asyncio.sleep(2)
    refused = await site.begins("/", agent=SLURP, client="203.0.113.9")
    assert not refused.task.done(), "it sleeps"
    await asyncio.sleep(30)
    assert refused.answer.status == 503


@in_virtual_time
async def test_an_rss_reader_or_web_api_client_is_served_unless_15_or_more_others_are_running() -> None:
    """«… serve the request unless Connotea is running 15 or more other queries at the same time, or»"""
    site = Site(api_paths=["/data"], limits=Limits(sleeping_max=0))
    await site.runs_other_queries(14)
    assert (await site.asked(agent=FEED_READER)).status == 200
    assert (await site.asked("/data", agent=CHROME)).status == 200
    await site.runs_one_more_query()
    assert (await site.asked(agent=FEED_READER)).status == 503
    assert (await site.asked("/data", agent=CHROME)).status == 503


@in_virtual_time
async def test_or_this_user_has_issued_more_than_10_requests_in_the_previous_15_seconds() -> None:
    site = Site(api_paths=["/data"])
    for path, agent in (("/", FEED_READER), ("/data", CHROME)):
        for _ in range(10):
            assert (await site.asked(path, agent=agent)).status == 200
        assert (await site.asked(path, agent=agent)).status == 503


@in_virtual_time
async def test_a_request_that_should_not_be_served_runs_no_query_and_gets_a_503() -> None:
    """«… for any reason, it refuses to run the query and returns a HTTP 503 reponse code.»"""
    site = Site()
    for _ in range(12):
        await site.asked(agent=CHROME)
    await site.asked(agent=GOOGLEBOT)
    assert (await site.asked(agent=GOOGLEBOT)).status == 503
    site.store.pause(60)
    assert (await site.asked(agent=CHROME, client="203.0.113.9")).status == 503
    assert site.ran == 10 + 1


@in_virtual_time
async def test_in_a_browser_you_would_see_a_message() -> None:
    """«In a browser you would see a message telling you that Connotea is under a high load.»

    Ours tells what happened, and when to return: a load never refuses a browser, as the page says itself.
    """
    site = Site()
    for _ in range(10):
        await site.asked(agent=CHROME)
    refused = await site.asked(agent=CHROME, headers={"accept": "text/html"})
    assert refused.fields["content-type"].startswith("text/html")
    assert b"Many pages were requested" in refused.body
    assert f"<strong>{refused.retry_after} seconds</strong>".encode() in refused.body
    for_load = await Site(limits=Limits(sleeping_max=0)).refused_for_load()
    assert b"under a high load" in for_load.body


# handle_request


@in_virtual_time
async def test_return_503_if_service_paused() -> None:
    site = Site(limits=Limits(paused=True))
    for agent in (CHROME, GOOGLEBOT, FEED_READER):
        assert (await site.asked(agent=agent)).status == 503
    assert site.ran == 0


@in_virtual_time
async def test_bot_throttle_comes_before_dynamic_throttle_and_what_it_refuses_is_no_hit_of_the_other() -> None:
    """«return 503 if bot_throttle; return 503 if dynamic_throttle; return really_handle_request»"""
    site = Site(limits=Limits(stack_hits=2, stack_seconds=60))
    statuses = []
    for second in (0, 1, 10, 30, 60):
        await at(second)
        statuses.append((await site.asked(agent=GOOGLEBOT)).status)
    assert statuses == [200, 503, 503, 200, 200]


# rapid_fire_by_last_hit, rapid_fire_by_hit_stack


@in_virtual_time
async def test_a_last_hit_check_is_for_a_time_interval_and_a_list_of_agents() -> None:
    """«check there have been no hits in given time interval from given list of agents»: by `ip+agent`, and for all."""
    site = Site(limits=Limits(lone_crawler_seconds=5, all_crawlers_seconds=1))
    assert (await site.asked(agent=GOOGLEBOT)).status == 200
    await at(1)
    assert (await site.asked(agent=GOOGLEBOT, client="203.0.113.9")).status == 200, "its other address"
    await at(2)
    assert (await site.asked(agent=SLURP)).status == 200, "another agent at its address"
    await at(4)
    assert (await site.asked(agent=GOOGLEBOT)).status == 503
    assert (await site.asked(agent=CHROME)).status == 200, "no crawler"
    await at(5)
    assert (await site.asked(agent=GOOGLEBOT)).status == 200


@in_virtual_time
async def test_a_hit_stack_is_for_a_number_of_hits_a_time_interval_a_user_agent_and_an_ip_address() -> None:
    """«check for given number of hits in given time interval for given user agent and IP address»"""
    site = Site(limits=Limits(stack_hits=3, stack_seconds=5))
    others: list[dict[str, str]] = [{"agent": FEED_READER}, {"agent": CHROME, "client": "203.0.113.9"}]
    for who in ({"agent": CHROME}, *others):
        for _ in range(3):
            assert (await site.asked(**who)).status == 200
        assert (await site.asked(**who)).status == 503
    await at(10)
    assert (await site.asked(agent=CHROME)).status == 200


# load_defer


@in_virtual_time
async def test_return_0_if_the_load_is_at_most_load_max() -> None:
    site = Site(limits=Limits(load_max=3))
    await site.runs_other_queries(2)
    assert (await site.asked(agent=FEED_READER)).status == 200, "it is the third"


@in_virtual_time
async def test_return_503_if_sleeping_count_is_above_sleeping_max() -> None:
    site = Site(limits=Limits(load_max=3, sleeping_max=2))
    await site.runs_other_queries(3)
    for number in range(2):
        assert not (await site.begins("/", agent=FEED_READER, client=f"203.0.113.{number}")).task.done()
    assert (await site.asked(agent=FEED_READER, client="203.0.113.3")).status == 503
    await asyncio.sleep(30)


@in_virtual_time
async def test_sleep_then_return_0_if_the_load_is_at_most_load_max() -> None:
    site = Site(limits=Limits(load_max=3))
    await site.runs_other_queries(3)
    request = await site.begins("/", agent=FEED_READER)
    assert not request.task.done()
    await site.ends_one()
    assert request.answer.status == 200


@in_virtual_time
async def test_sleep_then_return_503() -> None:
    """The delay is the load × multiplier + adjustment: here 4 s."""
    site = Site(limits=Limits(load_max=3))
    await site.runs_other_queries(3)
    began = now()
    request = await site.begins("/", agent=FEED_READER)
    assert (await request.finished()).status == 503
    assert round(now() - began, 6) == 4


# is_user_agent_a_known_crawler, is_user_agent_an_assumed_bot


@in_virtual_time
async def test_the_agent_is_checked_against_the_known_list_of_web_crawlers() -> None:
    """«check current user agent against know list of web crawlers»; a blank agent is on it."""
    for agent in (GOOGLEBOT, SLURP, "msnbot/1.0", "", None):
        site = Site()
        assert (await site.asked(agent=agent)).status == 200
        assert (await site.asked(agent=agent)).status == 503


@in_virtual_time
async def test_an_agent_that_is_on_no_list_of_browsers_is_an_assumed_bot() -> None:
    """«check current user agent does not appear in know list of browsers»"""
    site = Site(limits=Limits(sleeping_max=0))
    await site.runs_other_queries(15)
    for agent in ("Feedfetcher/1.0", "Python-urllib/1.17", "curl/8.5.0", "anything"):
        assert (await site.asked(agent=agent)).status == 503
    for agent in (CHROME, "Lynx/2.8.5rel.1", "Opera/9.20 (Windows NT 5.1; U; en)"):
        assert (await site.asked(agent=agent)).status == 200
