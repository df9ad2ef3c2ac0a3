"""The clockwork on a virtual clock: half a minute of traffic in milliseconds."""

import asyncio

import pytest

from tests import virtual_clock
from throttle.load.answer import Answer
from throttle.load.clockwork import Clockwork
from throttle.load.crowd import FILES, Ask, Caller
from throttle.load.mix import PEOPLE
from throttle.load.report import Report

PERSON = Caller(PEOPLE, "127.0.1.1", "a browser")


def run(send, plan=(), crawls=(), **options):
    """The report, and when each path was asked for, counted from the start."""
    report, started = Report(), []

    async def traffic():
        start = virtual_clock.now()

        async def noted(caller, path):
            started.append((path, round(virtual_clock.now() - start, 6)))
            return await send(caller, path)

        clockwork = Clockwork(noted, report, timeout=options.pop("timeout", 10))
        await clockwork.run(plan, crawls, **{"seconds": 30, "drain": 5, **options})
        started.append(("end", round(virtual_clock.now() - start, 6)))

    virtual_clock.run(traffic())
    return report, started


def answers_in(seconds, answer=None):
    async def send(caller, path):
        await asyncio.sleep(seconds)
        return answer or Answer()

    return send


def test_requests_start_on_schedule_whether_or_not_earlier_ones_are_answered():
    plan = [Ask(at, PERSON, f"/{at}") for at in (1, 2, 3)]
    _, started = run(answers_in(9), plan)
    assert started[:3] == [("/1", 1), ("/2", 2), ("/3", 3)]


def test_latency_counts_from_the_schedule_also_when_the_request_starts_late():
    async def blocks_the_loop(caller, path):
        if path == "/blocks":
            asyncio.get_running_loop()._virtual.skipped += 4  # four seconds pass in which nothing else can run
        return Answer()

    report, _ = run(blocks_the_loop, [Ask(1, PERSON, "/blocks"), Ask(2, PERSON, "/late")])
    assert report.tallies[PEOPLE].latencies == pytest.approx([4, 3])
    assert list(report.late) == pytest.approx([0, 3])
    assert "The crowd itself was late, by 3.00 s" in report.causes()[-1]


def test_the_run_ends_when_all_is_answered_and_not_before_the_traffic_is_over():
    assert run(answers_in(1), [Ask(1, PERSON, "/")])[1][-1] == ("end", 30)
    assert run(answers_in(1), [Ask(29.5, PERSON, "/")])[1][-1] == ("end", 30.5)


def test_what_is_unanswered_when_the_last_wait_is_over_stays_open():
    report, started = run(answers_in(9), [Ask(29, PERSON, "/")])
    assert started[-1] == ("end", 35)
    tally = report.tallies[PEOPLE]
    assert (tally.offered, tally.served, tally.open) == (1, 0, 1)


def test_a_request_without_an_answer_in_time_has_failed():
    report, _ = run(answers_in(11), [Ask(0, PERSON, "/")])
    assert report.tallies[PEOPLE].failed == {"no answer in 10 s": 1}


def test_the_static_files_of_a_first_page_follow_it_at_once():
    page = Answer(b'<link href="/static/a.css">')
    report, started = run(answers_in(1, page), [Ask(0, PERSON, "/", loads_files=True), Ask(5, PERSON, "/again")])
    assert started[:3] == [("/", 0), ("/static/a.css", 1), ("/again", 5)]
    assert report.tallies[FILES].latencies == pytest.approx([1])


def test_a_refused_first_page_brings_no_files():
    refused = Answer(b'<link href="/static/a.css">', refused_by="hit_stack")
    _, started = run(answers_in(1, refused), [Ask(0, PERSON, "/", loads_files=True)])
    assert started[1:] == [("end", 30)]


def crawl_of(*steps):
    """Asks for the paths, and waits as many seconds as the numbers say."""

    async def crawl(get):
        for step in steps:
            await (asyncio.sleep(step) if isinstance(step, int) else get(step))

    return crawl


def test_a_crawl_begins_at_its_instant_and_waits_as_it_says():
    _, started = run(answers_in(1), crawls=[(3, PERSON, crawl_of("/a", 10, "/b"))])
    assert started == [("/a", 3), ("/b", 14), ("end", 30)]


def test_a_crawl_ends_with_the_traffic_and_what_it_asked_for_last_is_still_answered():
    report, started = run(answers_in(2), crawls=[(0, PERSON, crawl_of("/a", 27, "/b", "/c"))])
    assert started == [("/a", 0), ("/b", 29), ("end", 31)]
    assert report.tallies[PEOPLE].served == 2


def test_an_unforeseen_error_is_not_swallowed():
    async def broken(caller, path):
        raise RuntimeError("a fault of ours")

    with pytest.raises(ExceptionGroup):
        run(broken, [Ask(0, PERSON, "/")])


def test_what_would_begin_while_the_run_is_cancelled_does_not():
    page = Answer(b'<link href="/static/a.css">')
    started = []

    async def cancelled():
        async def send(caller, path):
            started.append(path)
            try:
                await asyncio.sleep(9)
            except asyncio.CancelledError:
                return page  # the answer came at the same moment
            return page

        work = asyncio.create_task(Clockwork(send, Report()).run([Ask(0, PERSON, "/", loads_files=True)], seconds=30))
        await asyncio.sleep(1)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        return work.cancelled()

    assert virtual_clock.run(cancelled())
    assert started == ["/"]
