"""Forward-confirmed reverse DNS: which names count, what a forged zone wins, and what bounds the questions."""

import asyncio
import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.server.resolver import Zones
from tests.virtual_clock import in_virtual_time, run
from throttle.server.crawler_operators import OPERATORS, Operator
from throttle.server.evidence import Finding
from throttle.server.reverse_dns import QUEUED, THREADS, WORKERS, ReverseDns, SystemResolver, confirmed, is_host_of

GOOGLE = next(one for one in OPERATORS if one.name == "Google")
MICROSOFT = next(one for one in OPERATORS if one.name == "Microsoft")
HERE = "192.0.2.66"


@pytest.mark.parametrize(
    "name",
    [
        "crawl-192-0-2-66.googlebot.com",
        "crawl-192-0-2-66.googlebot.com.",
        "CRAWL-192-0-2-66.GoogleBot.com",
        "geo-crawl-192-0-2-66.geo.googlebot.com",
        "rate-limited-proxy-192-0-2-66.google.com",
    ],
)
def test_googles_hosts_are_googles(name: str) -> None:
    assert is_host_of(GOOGLE, name)


@pytest.mark.parametrize(
    "name",
    [
        "evilgooglebot.com",
        "crawl-192-0-2-66.evilgooglebot.com",
        "crawl-googlebot.com",
        "crawl-192-0-2-66.googlebot.com.evil.example",
        "crawl-192-0-2-66-googlebot.com",
        "googlebot.com",
        "crawl-.googlebot.com.",
        "google-proxy-192-0-2-66.google.com",  # there Google fetches for anybody
        "192-0-2-66.gae.googleusercontent.com",
        "crawl-1.googlebot.com\x00.evil.example",
        "crawl-1.googlebot.com/evil",
        "crawl-1..googlebot.com",
        "crawl-1.g\u043e\u043eglebot.com",
        "\N{FULLWIDTH LATIN SMALL LETTER C}rawl-1.googlebot.com",
        "crawl-" + "a" * 250 + ".googlebot.com",
        "",
        ".",
    ],
)
def test_no_other_name_is_googles(name: str) -> None:
    assert not is_host_of(GOOGLE, name)


@given(st.text(max_size=300), st.sampled_from(OPERATORS))
def test_no_name_makes_it_fail(name: str, operator: Operator) -> None:
    assert not is_host_of(operator, name)


def is_confirmed(zones: Zones, address: str = HERE, operator: Operator = GOOGLE) -> bool | None:
    return run(confirmed(zones, operator, address))


def test_a_host_whose_name_resolves_back_is_confirmed() -> None:
    zones = Zones()
    zones.host(HERE, "Crawl-192-0-2-66.GoogleBot.com.")
    assert is_confirmed(zones)


def test_a_forged_reverse_zone_is_not_since_the_name_does_not_resolve_back() -> None:
    zones = Zones()
    zones.reverse[HERE] = ["crawl-66-249-66-1.googlebot.com"]
    zones.forward["crawl-66-249-66-1.googlebot.com"] = ["66.249.66.1"]
    assert not is_confirmed(zones)


def test_a_host_of_somebody_else_is_not_and_its_name_is_never_looked_up() -> None:
    zones = Zones()
    zones.host(HERE, "crawl-192-0-2-66.evilgooglebot.com")
    assert not is_confirmed(zones)
    assert zones.asked == [HERE]


def test_addresses_are_compared_not_texts() -> None:
    zones = Zones()
    zones.reverse["2001:db8::1"] = ["msnbot-1.search.msn.com"]
    zones.forward["msnbot-1.search.msn.com"] = ["192.0.2.1", "2001:DB8:0:0:0:0:0:1"]
    assert is_confirmed(zones, "2001:db8::1", MICROSOFT)
    zones.host(HERE, "msnbot-2.search.msn.com")
    zones.forward["msnbot-2.search.msn.com"] = [f"::ffff:{HERE}"]
    assert is_confirmed(zones, HERE, MICROSOFT)
    zones.forward["msnbot-2.search.msn.com"] = ["no address"]
    assert not is_confirmed(zones, HERE, MICROSOFT)


def test_of_many_names_few_are_looked_up() -> None:
    zones = Zones()
    zones.reverse[HERE] = [f"crawl-{number}.googlebot.com" for number in range(1000)]
    assert not is_confirmed(zones)
    assert len(zones.asked) == 9


# The queue


class Answers:
    def __init__(self, zones: Zones) -> None:
        self.by_address: dict[str, Finding] = {}
        self.dns = ReverseDns(zones, self._note)

    def _note(self, operator: Operator, address: str, finding: Finding) -> None:
        self.by_address[address] = finding


@in_virtual_time
async def test_an_answer_is_verified_forged_or_unknown_where_there_was_none() -> None:
    zones = Zones()
    zones.host("192.0.2.1", "crawl-1.googlebot.com")
    zones.host("192.0.2.2", "host.example")
    zones.reverse["192.0.2.4"] = socket.gaierror(socket.EAI_AGAIN, "try again")
    zones.reverse["192.0.2.5"] = ValueError("a resolver's own failure")
    zones.reverse["192.0.2.6"] = ["crawl-6.googlebot.com"]
    zones.forward["crawl-6.googlebot.com"] = OSError("no answer")
    answers = Answers(zones)
    for last in (1, 2, 4, 5, 6, 3):
        assert answers.dns.ask(GOOGLE, f"192.0.2.{last}")
    await asyncio.sleep(10)
    assert answers.by_address == {
        "192.0.2.1": Finding.VERIFIED,
        "192.0.2.2": Finding.FORGED,
        "192.0.2.3": Finding.FORGED,  # has no name
        "192.0.2.4": Finding.UNKNOWN,
        "192.0.2.5": Finding.UNKNOWN,
        "192.0.2.6": Finding.UNKNOWN,
    }


@in_virtual_time
async def test_a_resolver_that_knows_no_names_at_all_calls_nobody_forged() -> None:
    zones = Zones()
    answers = Answers(zones)
    answers.dns.ask(GOOGLE, "192.0.2.1")
    await asyncio.sleep(1)
    assert answers.by_address == {"192.0.2.1": Finding.UNKNOWN}
    zones.reverse["192.0.2.2"] = ["host.example"]
    for last in (2, 1):
        answers.dns.ask(GOOGLE, f"192.0.2.{last}")
        await asyncio.sleep(1)
    assert answers.by_address == {"192.0.2.1": Finding.FORGED, "192.0.2.2": Finding.FORGED}


@in_virtual_time
async def test_a_resolver_that_hangs_is_given_up_after_two_seconds() -> None:
    zones = Zones()
    zones.delay = 1e6
    answers = Answers(zones)
    answers.dns.ask(GOOGLE, HERE)
    await asyncio.sleep(1.9)
    assert answers.by_address == {}
    await asyncio.sleep(0.2)
    assert answers.by_address == {HERE: Finding.UNKNOWN}


@in_virtual_time
async def test_a_flood_is_asked_about_by_few_at_a_time_and_the_queue_ends_somewhere() -> None:
    zones = Zones()
    answers = Answers(zones)
    taken = [answers.dns.ask(GOOGLE, f"2001:db8:{number:x}::1") for number in range(10_000)]
    assert sum(taken) == QUEUED
    assert answers.dns.ask(GOOGLE, "2001:db8:0::1")  # waits already
    await asyncio.sleep(60)
    assert len(answers.by_address) == len(zones.asked) == QUEUED
    assert zones.asking_most == WORKERS
    assert answers.dns.ask(GOOGLE, "2001:db8:ffff::1")


@in_virtual_time
async def test_who_has_a_network_and_takes_a_new_address_for_each_hit_keeps_no_others_question_out() -> None:
    zones = Zones()
    answers = Answers(zones)
    for number in range(1000):
        answers.dns.ask(GOOGLE, f"2001:db8:1:{number:x}::1")
        answers.dns.ask(GOOGLE, f"198.51.100.{number % 256}")
    assert answers.dns.ask(GOOGLE, HERE)
    await asyncio.sleep(1)
    assert HERE in answers.by_address
    assert answers.dns.ask(GOOGLE, "2001:db8:1:ffff::1")  # what was asked about makes room


@in_virtual_time
async def test_even_a_quick_resolver_is_asked_at_most_200_times_a_second() -> None:
    zones = Zones()
    zones.delay = 0
    answers = Answers(zones)
    for number in range(QUEUED):
        answers.dns.ask(GOOGLE, f"2001:db8:{number:x}::1")
    await asyncio.sleep(0.999)
    assert len(zones.asked) <= 200


def test_a_new_loop_starts_over_and_without_a_loop_nothing_is_asked() -> None:
    zones = Zones()
    answers = Answers(zones)
    assert not answers.dns.ask(GOOGLE, HERE)

    async def ask_and_leave() -> None:
        assert answers.dns.ask(GOOGLE, HERE)

    async def ask_and_stay() -> None:
        assert answers.dns.ask(GOOGLE, HERE)
        await asyncio.sleep(5)

    run(ask_and_leave())
    assert answers.by_address == {}
    run(ask_and_stay())
    assert answers.by_address == {HERE: Finding.UNKNOWN}


@in_virtual_time
async def test_after_the_end_nothing_is_asked_that_waited() -> None:
    zones = Zones()
    answers = Answers(zones)
    answers.dns.ask(GOOGLE, HERE)
    await asyncio.sleep(0)
    answers.dns.close()
    await asyncio.sleep(10)
    assert answers.by_address == {}


def test_the_systems_resolver_tells_no_name_from_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = {
        "192.0.2.1": socket.gaierror(socket.EAI_NONAME, "no name"),
        "192.0.2.2": socket.gaierror(socket.EAI_AGAIN, "try again"),
        "192.0.2.3": UnicodeDecodeError("utf-8", b"\xff", 0, 1, "made up"),
    }

    def getnameinfo(address: tuple[str, int], flags: int) -> tuple[str, str]:
        raise failures[address[0]]

    def getaddrinfo(host: str, port: None, **_: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.9", 0))]

    monkeypatch.setattr(socket, "getnameinfo", getnameinfo)

    async def story() -> None:
        resolver = SystemResolver()
        assert await resolver.names("192.0.2.1") == []
        assert await resolver.names("192.0.2.3") == []
        with pytest.raises(socket.gaierror):
            await resolver.names("192.0.2.2")
        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        assert await resolver.addresses("crawl-1.googlebot.com") == ["192.0.2.9"]

    asyncio.run(story())


def test_the_systems_resolver_answers_in_one_loop_after_another() -> None:
    resolver = SystemResolver()
    for _ in range(2):
        assert "127.0.0.1" in asyncio.run(resolver.addresses("localhost"))


def test_a_look_up_that_hangs_holds_up_neither_others_nor_the_end_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hung = threading.Event()

    def getnameinfo(address: tuple[str, int], flags: int) -> tuple[str, str]:
        if address[0] != HERE:
            hung.wait(60)
        return "crawl-1.googlebot.com", "0"

    monkeypatch.setattr(socket, "getnameinfo", getnameinfo)

    async def story() -> None:
        resolver = SystemResolver()
        hanging = [asyncio.ensure_future(resolver.names(f"192.0.2.{number}")) for number in range(THREADS - 1)]
        await asyncio.sleep(0)
        assert await resolver.names(HERE) == ["crawl-1.googlebot.com"]
        hanging.append(asyncio.ensure_future(resolver.names("192.0.2.99")))
        await asyncio.sleep(0)
        with pytest.raises(OSError, match="still wait"):
            await resolver.names(HERE)
        asking = [thread for thread in threading.enumerate() if thread.name == "throttle-dns"]
        assert len(asking) == THREADS
        assert all(thread.daemon for thread in asking)  # Python waits for no such thread as it ends
        for task in hanging:
            task.cancel()
        hung.set()
        for thread in asking:
            thread.join(10)
        assert await resolver.names(HERE) == ["crawl-1.googlebot.com"]

    asyncio.run(story())
