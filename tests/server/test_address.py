"""Promise 9, a caller cannot choose who it is: which address a request counts under."""

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.asgi import http_scope
from throttle.server.address import AddressReader, Networks, packed_address

PROXY = "10.0.0.1"


def counted(client: str | None, *headers: tuple[str, str], **settings: Any) -> str:
    settings.setdefault("trusted_proxies", ["10.0.0.0/8", "fd00::/8"])
    scope = http_scope(client=client, headers=headers)
    return AddressReader(**settings)(scope["client"], scope["headers"])


XFF = "X-Forwarded-For"


def test_without_trusted_proxies_no_header_is_believed() -> None:
    for name in (XFF, "Forwarded", "X-Real-IP"):
        assert counted("192.0.2.1", (name, "203.0.113.7"), trusted_proxies=()) == "192.0.2.1"


def test_a_peer_that_is_no_trusted_proxy_is_not_believed() -> None:
    assert counted("192.0.2.1", (XFF, "203.0.113.7")) == "192.0.2.1"
    assert counted("2001:db8::1", (XFF, "203.0.113.7")) == "2001:db8::/64"


@pytest.mark.parametrize(
    ("value", "address"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("6.6.6.6, 203.0.113.7", "203.0.113.7"),  # forged from the left
        ("203.0.113.7, 10.9.9.9", "203.0.113.7"),  # two proxies
        ("6.6.6.6, 203.0.113.7, 10.9.9.9, 10.8.8.8", "203.0.113.7"),
        ("10.1.1.1", "10.1.1.1"),  # a caller inside the trusted network
        ("203.0.113.7:4711", "203.0.113.7"),
        ("[2001:db8:1:2::7]:4711", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::7", "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("fe80::1%eth0", "fe80::/64"),
        (" 203.0.113.7 , ", PROXY),  # the nearest proxy wrote nothing: what is known is the proxy
        ("203.0.113.7, unknown", PROXY),
        ("", PROXY),
        ("203.0.113.7, <script>", PROXY),
        ("203.0.113.7\x00", PROXY),
        ("999.1.1.1", PROXY),
        ("0x7f.1", PROXY),
    ],
)
def test_x_forwarded_for_is_read_from_the_right(value: str, address: str) -> None:
    assert counted(PROXY, (XFF, value)) == address


@pytest.mark.parametrize(
    ("value", "address"),
    [
        ("for=203.0.113.7", "203.0.113.7"),
        ('For="203.0.113.7:80";proto=https;by=10.0.0.1', "203.0.113.7"),
        ('proto=https;for="[2001:db8:1:2::7]:4711"', "2001:db8:1:2::/64"),
        ("for=6.6.6.6, for=203.0.113.7, for=10.2.2.2", "203.0.113.7"),
        ("for=203.0.113.7, for=unknown", PROXY),
        ("for=_hidden", PROXY),
        ("proto=https", PROXY),
        ('for="6.6.6.6, for=203.0.113.7', "203.0.113.7"),  # a quote left open swallows nothing of the proxy's
    ],
)
def test_forwarded_is_read_as_rfc_7239_writes_it(value: str, address: str) -> None:
    assert counted(PROXY, ("Forwarded", value)) == address


def test_a_header_given_twice_is_one_list_in_order() -> None:
    assert counted(PROXY, (XFF, "6.6.6.6"), (XFF, "203.0.113.7")) == "203.0.113.7"
    assert counted(PROXY, (XFF, "6.6.6.6, 203.0.113.7"), (XFF, "10.3.3.3")) == "203.0.113.7"


def test_x_real_ip_is_one_address() -> None:
    assert counted(PROXY, ("X-Real-IP", "203.0.113.7")) == "203.0.113.7"


def test_the_header_that_is_named_is_the_only_one_believed() -> None:
    headers = [(XFF, "6.6.6.6"), ("X-Real-IP", "203.0.113.7")]
    assert counted(PROXY, *headers, forwarded_header="X-Real-IP") == "203.0.113.7"
    assert counted(PROXY, (XFF, "6.6.6.6"), forwarded_header="forwarded") == PROXY


def test_a_unix_socket_is_trusted_by_name() -> None:
    assert counted(None, (XFF, "203.0.113.7"), trusted_proxies=["unix"]) == "203.0.113.7"
    assert counted(None, (XFF, "203.0.113.7"), trusted_proxies=["10.0.0.0/8"]) == "unknown"
    assert counted("", (XFF, "203.0.113.7"), trusted_proxies=["unix"]) == "203.0.113.7"


def test_ipv6_counts_by_network_and_mapped_ipv4_as_ipv4() -> None:
    assert counted("2001:db8:1:2:3:4:5:6") == "2001:db8:1:2::/64"
    assert counted("2001:db8:1:2:3:4:5:6", ipv6_prefix=48) == "2001:db8:1::/48"
    assert counted("2001:db8::6", ipv6_prefix=128) == "2001:db8::6/128"
    assert counted("::ffff:192.0.2.1", trusted_proxies=()) == "192.0.2.1"


def test_a_long_header_costs_no_more_than_its_right_end() -> None:
    forged = ", ".join(["6.6.6.6"] * 100_000)
    assert counted(PROXY, (XFF, f"{forged}, 203.0.113.7")) == "203.0.113.7"
    assert counted(PROXY, (XFF, ", ".join(["10.1.1.1"] * 100_000))) == "10.1.1.1"


@given(st.text(st.characters(max_codepoint=255), max_size=200), st.sampled_from([XFF, "Forwarded", "X-Real-IP"]))
@example("for=" * 40, "Forwarded")
def test_no_header_is_too_strange_and_none_hides_what_the_proxy_wrote(forged: str, header: str) -> None:
    written = "for=203.0.113.7" if header == "Forwarded" else "203.0.113.7"
    assert counted(PROXY, (header, f"{forged},{written}")) == "203.0.113.7"
    assert counted(PROXY, (header, forged))  # some address, and no exception


@given(st.ip_addresses())
def test_every_address_that_ipaddress_reads_is_read_alike(address: Any) -> None:
    packed = packed_address(str(address))
    mapped = getattr(address, "ipv4_mapped", None)
    assert packed == (mapped or address).packed


def test_networks_hold_what_they_say() -> None:
    networks = Networks(["10.0.0.0/8", "2001:db8::/32", "192.0.2.1"], "networks")
    for text, is_in in [("10.255.0.1", True), ("11.0.0.1", False), ("2001:db8:9::1", True), ("192.0.2.1", True)]:
        packed = packed_address(text)
        assert packed is not None
        assert (packed in networks) == is_in
    everybody = Networks(["*"], "networks")
    assert packed_address("2001:db8::1") in everybody  # type: ignore[operator]
