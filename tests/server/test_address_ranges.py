"""Published lists of addresses: every shape that operators use, and nothing that could hurt. All values are made up."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from throttle.server.address import packed_address
from throttle.server.address_ranges import LARGEST, MOST, AddressRanges, RangesError, ranges_in
from throttle.server.crawler_operators import Operator
from throttle.server.range_files import DAY, RangeFiles

GOOGLES = {
    "creationTime": "2026-08-20T14:46:03.000000",
    "prefixes": [{"ipv4Prefix": "192.0.2.0/27"}, {"ipv6Prefix": "2001:db8:10::/64"}],
}


def is_in(address: str, raw: bytes) -> bool:
    packed = packed_address(address)
    assert packed is not None
    return packed in AddressRanges(ranges_in(raw))


@pytest.mark.parametrize(
    "raw",
    [
        json.dumps(GOOGLES),
        "\ufeff" + json.dumps(GOOGLES),
        json.dumps({"ips": ["192.0.2.1", "2001:db8:10::1"]}),
        json.dumps({"ips": [{"ip_address": "192.0.2.1"}, {"ip_address": "2001:db8:10::1/128"}]}),
        json.dumps({"prefixes": [{"ip_prefix": "192.0.2.0/24"}], "ipv6_prefixes": [{"p": "2001:db8::/32"}]}),
        json.dumps(["192.0.2.0/30", "2001:db8:10::/126"]),
        "192.0.2.0/24\n2001:db8:10::/48\n",
        "# the crawler's\r\n192.0.2.1\r\n\r\n2001:db8:10::1 # since May\r\n",
        "192.0.2.0/24,US,US-CA,Menlo Park,\n2001:db8:10::/48,IE,,Dublin,\n",
        '"192.0.2.0/24",US\n"2001:db8:10::/48",IE\n',
        "192.0.2.9/29\n2001:db8:10::9/64\n192.0.2.1",  # bits beyond the prefix
    ],
)
def test_every_shape_that_operators_publish_is_read(raw: str) -> None:
    assert is_in("192.0.2.1", raw.encode())
    assert is_in("::ffff:192.0.2.1", raw.encode())
    assert is_in("2001:db8:10::1", raw.encode())
    assert not is_in("198.51.100.1", raw.encode())
    assert not is_in("2001:db9::1", raw.encode())


def test_a_range_ends_where_it_ends() -> None:
    raw = json.dumps(GOOGLES).encode()
    assert is_in("192.0.2.0", raw)
    assert is_in("192.0.2.31", raw)
    assert not is_in("192.0.2.32", raw)
    assert not is_in("192.0.1.255", raw)
    assert is_in("2001:db8:10:0:ffff:ffff:ffff:ffff", raw)
    assert not is_in("2001:db8:10:1::", raw)
    assert not is_in("192.0.2.1", b"192.0.2.0\n192.0.2.2\n")
    assert is_in("192.0.2.1", b"192.0.2.0/32\n192.0.2.2/32\n192.0.2.1/32\n")


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "no network"),
        (b"<html>moved</html>", "no network"),
        (b"{}", "no network"),
        (b'{"prefixes": [{"ipv4Prefix": "not found"}]}', "no network"),
        (b'{"prefixes": [', "not JSON"),
        (b"[" * 200_000, "nested too deep"),
        (b"[" + b"9" * 5000 + b"]", "not JSON"),
        (b"192.0.2.0/24\n0.0.0.0/0\n", "0.0.0.0/0 is wider"),
        (b"192.0.0.0/7", "wider"),
        (b'["2001::/15"]', "wider"),
        (b'["::/0"]', "wider"),
        (b" " * (LARGEST + 1), "larger than 5,000,000 bytes"),
        (b"192.0.2.1\n" * (MOST + 1), "more than 100,000 networks"),
        (b"\xff\xfe\x00", "no network"),
        (b"192.0.2.0/33\n2001:db8::/129\n999.1.1.1\n0x7f.1\n1\n12:30\n", "no network"),
    ],
)
def test_what_is_no_list_is_refused_as_a_whole(raw: bytes, said: str) -> None:
    with pytest.raises(RangesError, match=said):
        ranges_in(raw)


@given(st.binary(max_size=300) | st.text(alphabet='0123456789./:,[]{}"\n#abf ', max_size=300).map(str.encode))
def test_no_text_makes_it_fail_otherwise(raw: bytes) -> None:
    try:
        ranges = AddressRanges(ranges_in(raw))
    except RangesError:
        return
    assert len(ranges) > 0


NETWORKS = st.tuples(st.integers(0, 2**32 - 1), st.integers(8, 32))


@given(st.lists(NETWORKS, min_size=1, max_size=30), st.lists(st.integers(0, 2**32 - 1), max_size=20))
def test_halving_finds_what_counting_finds(networks: list[tuple[int, int]], others: list[int]) -> None:
    spans = [(value >> (32 - bits) << (32 - bits), 1 << (32 - bits)) for value, bits in networks]
    lines = [f"{'.'.join(str(b) for b in value.to_bytes(4, 'big'))}/{bits}" for value, bits in networks]
    ranges = AddressRanges(ranges_in("\n".join(lines).encode()))
    edges = [edge for first, size in spans for edge in (first - 1, first, first + size - 1, first + size)]
    for value in [*others, *(edge for edge in edges if 0 <= edge < 2**32)]:
        expected = any(first <= value < first + size for first, size in spans)
        assert (value.to_bytes(4, "big") in ranges) == expected


# The files

ACME = Operator("Acme", ("acmebot",), lists=("bingbot", "applebot"))


class Directory:
    """A directory of lists, and the time of day."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.now = 1_800_000_000.0
        self.files = RangeFiles(path, [ACME], stale_days=14, wall_clock=lambda: self.now)

    def write(self, name: str, text: str) -> None:
        draft = self.path / "draft"
        draft.write_text(text)
        os.utime(draft, (self.now, self.now))
        draft.replace(self.path / name)

    def has(self, address: str) -> bool:
        packed = packed_address(address)
        listed = self.files.by_operator.get("Acme")
        return listed is not None and packed is not None and packed in listed.ranges

    def is_complete(self) -> bool:
        return self.files.by_operator["Acme"].is_complete


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    return Directory(tmp_path)


def test_an_operators_lists_count_together_and_only_all_of_them_are_complete(directory: Directory) -> None:
    directory.write("bingbot.json", '["192.0.2.0/24"]')
    assert directory.files.look()
    assert directory.has("192.0.2.1")
    assert not directory.is_complete()
    directory.write("applebot.csv", "198.51.100.0/24,US")
    directory.write("unknown.json", '["203.0.113.0/24"]')
    assert directory.files.look()
    assert directory.has("192.0.2.1")
    assert directory.has("198.51.100.1")
    assert not directory.has("203.0.113.1")
    assert directory.is_complete()
    assert not directory.files.look()  # nothing has changed


def test_a_list_is_read_again_when_its_file_changes_and_dropped_when_it_is_gone(directory: Directory) -> None:
    directory.write("bingbot.json", '["192.0.2.0/24"]')
    directory.files.look()
    directory.write("bingbot.json", '["198.51.100.0/24"]')
    assert directory.files.look()
    assert directory.has("198.51.100.1")
    assert not directory.has("192.0.2.1")
    (directory.path / "bingbot.json").unlink()
    assert directory.files.look()
    assert not directory.has("198.51.100.1")


@pytest.mark.parametrize("broken", ["", "{", '["0.0.0.0/0"]', "<html>"])
def test_a_broken_list_changes_nothing_and_the_log_is_told_once(
    directory: Directory, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    directory.write("bingbot.json", '["192.0.2.0/24"]')
    directory.files.look()
    directory.write("bingbot.json", broken)
    for _ in range(3):
        assert not directory.files.look()
    assert directory.has("192.0.2.1")
    assert caplog.text.count("what was read before stays in force") == 1


def test_a_stale_list_is_kept_with_one_alarm_and_says_no_more_who_is_forged(
    directory: Directory, caplog: pytest.LogCaptureFixture
) -> None:
    directory.write("bingbot.json", '["192.0.2.0/24"]')
    directory.write("applebot.json", '["198.51.100.0/24"]')
    directory.files.look()
    directory.now += 14 * DAY
    assert not directory.files.look()
    directory.now += 1
    directory.write("applebot.json", '["198.51.100.0/24"]')
    for _ in range(3):
        directory.files.look()
    assert directory.has("192.0.2.1")
    assert not directory.is_complete()
    assert caplog.text.count("is 14 days old") == 1
    directory.write("bingbot.json", '["192.0.2.0/24"]')  # downloaded again, and the same
    directory.files.look()
    assert directory.is_complete()


def test_a_directory_that_is_gone_leaves_what_was_read_and_the_log_is_told_once(
    directory: Directory, caplog: pytest.LogCaptureFixture
) -> None:
    directory.write("bingbot.json", '["192.0.2.0/24"]')
    directory.files.look()
    directory.path.rename(directory.path.with_name("elsewhere"))
    for _ in range(3):
        directory.files.look()
    assert directory.has("192.0.2.1")
    assert caplog.text.count("no list of crawlers' addresses can be read") == 1


def test_a_list_that_can_not_be_looked_at_takes_no_other_away_and_the_log_is_told_once(
    directory: Directory, caplog: pytest.LogCaptureFixture
) -> None:
    for name, network in (("bingbot", "192.0.2.0/24"), ("applebot", "198.51.100.0/24")):
        directory.write(f"{name}.json", network)
    directory.files.look()
    (directory.path / "applebot.json").unlink()
    (directory.path / "applebot.json").symlink_to("applebot.json")  # a link in a circle
    directory.write("bingbot.json", '["203.0.113.0/24"]')
    for _ in range(3):
        directory.files.look()
    assert directory.has("203.0.113.1")
    assert directory.has("198.51.100.1")  # as it was read before
    assert caplog.text.count("what was read before stays in force") == 1


def test_a_list_from_a_time_to_come_grows_old_from_when_it_was_read(directory: Directory) -> None:
    directory.now += 365 * DAY
    directory.write("bingbot.json", '["192.0.2.0/24"]')
    directory.write("applebot.json", '["198.51.100.0/24"]')
    directory.now -= 365 * DAY
    directory.files.look()
    assert directory.is_complete()
    directory.now += 14 * DAY + 1
    directory.files.look()
    assert not directory.is_complete()
