from random import Random

import pytest

from throttle.client.host import Place
from throttle.client.host_key import HostKey
from throttle.client.hosts import Hosts
from throttle.client.in_flight import Waiter
from throttle.client.pace.aimd import AimdPace


@pytest.mark.parametrize(
    ("authority", "key"),
    [
        ("www.example.org", "example.org"),
        ("cdn.example.org:8443", "example.org"),
        ("WWW.Example.CO.UK.", "example.co.uk"),
        ("alice.github.io", "alice.github.io"),  # the list's private part
        ("www.alice.github.io", "alice.github.io"),
        ("user:secret@www.example.org", "example.org"),
        ("localhost:8000", "localhost:8000"),
        ("127.0.0.1:8001", "127.0.0.1:8001"),
        ("[::1]:8000", "[::1]:8000"),
        ("github.io", "github.io"),
        ("x" * 300 + ".org", "x" * 300 + ".org"),
        ("", ""),
    ],
)
def test_a_host_is_the_registrable_domain(authority: str, key: str) -> None:
    assert HostKey()(authority) == key


def test_an_exception_is_a_host_of_its_own_with_what_is_below_it() -> None:
    key = HostKey(frozenset({"API.example.org"}))
    assert key("api.example.org") == key("v2.api.example.org:443") == "api.example.org"
    assert key("www.example.org") == "example.org"


def hosts(**settings: object) -> Hosts:
    return Hosts(AimdPace, random=Random(1), **settings)  # type: ignore[arg-type]


def test_one_host_for_all_its_names() -> None:
    table = hosts()
    assert table.host("www.example.org", 0.0) is table.host("cdn.example.org", 1.0)
    assert len(table) == 1


def test_the_caller_may_say_what_a_host_is() -> None:
    table = hosts(key=lambda authority: authority.split(".")[-1])
    assert table.host("a.example", 0.0) is table.host("b.example", 0.0)


def test_the_table_is_bounded_and_the_longest_unused_idle_host_goes_first() -> None:
    table = hosts(hosts_max=3)
    first = [table.host(f"site{number}.org", float(number)) for number in range(3)]
    table.host("site0.org", 3.0)
    for number in range(3, 50):
        table.host(f"site{number}.org", float(number))
        assert len(table) == 3
    assert table.host("site0.org", 60.0) is not first[0]


def test_a_host_at_rest_or_in_use_is_not_forgotten() -> None:
    table = hosts(hosts_max=2)
    busy, resting = table.host("busy.org", 0.0), table.host("resting.org", 0.0)
    assert isinstance(busy.ask(Waiter(lambda: None), 0.0), Place)
    resting.breaker.rest(1000.0)
    for number in range(5):
        table.host(f"site{number}.org", 1.0)
    assert table.host("busy.org", 2.0) is busy
    assert table.host("resting.org", 2.0) is resting


def test_hosts_at_rest_or_stopped_cannot_fill_the_table_for_ever() -> None:
    table = hosts(hosts_max=3)
    for number in range(50):
        resting = table.host(f"site{number}.org", float(number))
        resting.breaker.rest(1e6 + (number if number % 2 else -number))
    assert len(table) == 6
    assert table.host("site49.org", 60.0) is resting  # its rest is the longest
    table = hosts(hosts_max=3)
    for number in range(50):
        table.host(f"site{number}.org", float(number)).stopped = "a wall"
    assert len(table) == 3
