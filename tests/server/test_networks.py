"""Which addresses are of one network."""

import pytest

from throttle.server.address import UNKNOWN
from throttle.server.networks import NetworkKeys

KEYS = NetworkKeys((24, 48), (16, 32))


@pytest.mark.parametrize(
    ("one", "other", "is_same", "is_same_wide"),
    [
        ("192.0.2.1", "192.0.2.255", True, True),
        ("192.0.2.1", "192.0.3.1", False, True),
        ("192.0.2.1", "192.1.2.1", False, False),
        ("2001:db8:1:2::/64", "2001:db8:1:ffff::/64", True, True),
        ("2001:db8:1:2::/64", "2001:db8:2:2::/64", False, True),
        ("2001:db8:1:2::/64", "2001:db9:1:2::/64", False, False),
        ("192.0.2.1", "c000:200::/64", False, False),
        (UNKNOWN, "0.0.0.0", False, False),
    ],
)
def test_addresses_of_one_network_have_one_key(one: str, other: str, is_same: bool, is_same_wide: bool) -> None:
    (network, wide), (other_network, other_wide) = KEYS.of(one), KEYS.of(other)
    assert (network == other_network) is is_same
    assert (wide == other_wide) is is_same_wide


def test_a_network_is_as_wide_as_it_is_set() -> None:
    single = NetworkKeys((32, 64), (30, 56))
    assert single.of("192.0.2.1")[0] != single.of("192.0.2.2")[0]
    assert single.of("192.0.2.1")[1] == single.of("192.0.2.2")[1]
    assert single.of("2001:db8:0:1::/64")[0] != single.of("2001:db8:0:2::/64")[0]
    assert single.of("2001:db8:0:1::/64")[1] == single.of("2001:db8:0:2::/64")[1]


def test_a_narrow_and_a_wide_network_never_share_a_key() -> None:
    assert KEYS.of("10.0.0.1")[0] != KEYS.of("10.0.0.1")[1]
