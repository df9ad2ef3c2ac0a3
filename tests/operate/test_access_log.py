"""What a line of an access log says, in every form in which servers write it."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from throttle.operate.access_log.files import read_any
from throttle.operate.access_log.line import UNKNOWN, Hit, Unread
from throttle.operate.access_log.named_fields import FormatError, reader_for

AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:146.0) Gecko/20100101 Firefox/146.0"
TIME = "17/May/2015:12:05:03 +0200"
START = int(datetime(2015, 5, 17, 10, 5, 3, tzinfo=UTC).timestamp()) * 1_000_000
COMBINED = f'192.0.2.7 - - [{TIME}] "GET /a%20b?c=d HTTP/1.1" 200 512 "-" "{AGENT}"'
HIT: Hit = (START, UNKNOWN, "192.0.2.7", "GET", "/a b", AGENT.encode(), b"")


def hit_of(line: str | bytes) -> Hit:
    hit = read_any(line if isinstance(line, bytes) else line.encode() + b"\n")
    assert isinstance(hit, tuple), line
    return hit


def test_a_line_in_combined_tells_start_address_method_path_and_agent() -> None:
    assert hit_of(COMBINED) == HIT


@pytest.mark.parametrize("ending", ["", " ", " \r", "\t", ' "-"'])
def test_what_hosts_append_to_combined_changes_nothing(ending: str) -> None:
    assert hit_of(COMBINED + ending) == HIT


@pytest.mark.parametrize("before", ["www.library.example:80 ", "www.library.example ", "Nov 20 10:00:00 web1 nginx: "])
def test_a_virtual_host_or_a_syslog_head_before_the_line_is_not_the_client(before: str) -> None:
    assert hit_of(before + COMBINED) == HIT


def test_common_has_no_agent() -> None:
    assert hit_of(COMBINED.partition(' "-"')[0])[5] == b""


def test_a_user_name_may_hold_blanks() -> None:
    assert hit_of(COMBINED.replace("- - [", "- Ada Lovelace ["))[2] == "192.0.2.7"


@pytest.mark.parametrize("address", ["2001:db8::17", "::ffff:192.0.2.7", "crawl-1.bot.example"])
def test_ipv6_and_host_names_are_addresses_too(address: str) -> None:
    assert hit_of(COMBINED.replace("192.0.2.7", address))[2] == address


def test_a_missing_closing_quote_after_the_agent_is_forgiven() -> None:
    assert hit_of(COMBINED[:-1]) == HIT


def test_escapes_in_the_agent_become_the_bytes_that_were_sent() -> None:
    line = COMBINED.replace(AGENT, r"B\xe4r \"2\" \\ \x22\t")
    assert hit_of(line)[5] == b'B\xe4r "2" \\ "\t'


def test_raw_bytes_beyond_utf8_are_kept() -> None:
    assert hit_of(COMBINED.encode().replace(AGENT.encode(), b"B\xe4r"))[5] == b"B\xe4r"


def test_an_agent_of_a_dash_is_no_agent() -> None:
    assert hit_of(COMBINED.replace(AGENT, "-"))[5] == b""


def test_a_last_field_with_three_decimals_is_nginx_request_time_and_the_line_tells_the_end() -> None:
    hit = hit_of(COMBINED + " 0.250")
    assert hit[:2] == (START - 250_000, 250_000)


@pytest.mark.parametrize("behind", [' "-" 0.250 0.249', " rt=0.250 uct=0.001", ' "198.51.100.4" 0.250'])
def test_the_first_time_behind_the_agent_is_the_duration(behind: str) -> None:
    assert hit_of(COMBINED + behind)[1] == 250_000


def test_a_single_whole_number_is_apaches_microseconds_and_the_line_tells_the_start() -> None:
    assert hit_of(COMBINED + " 250000")[:2] == (START, 250_000)


def test_two_whole_numbers_are_bytes_in_and_out() -> None:
    assert hit_of(COMBINED + " 612 1024")[:2] == (START, UNKNOWN)


def test_a_quoted_ninth_field_of_addresses_is_what_proxies_forwarded() -> None:
    assert hit_of(COMBINED + ' "198.51.100.4, 203.0.113.9"')[6] == b"198.51.100.4, 203.0.113.9"
    assert hit_of(COMBINED + ' "something else"')[6] == b""


@pytest.mark.parametrize("request_line", ["-", "", r"\x16\x03\x01\x02", "GET", "CONNECT host:443 HTTP/1.1"])
def test_a_line_without_a_request_that_an_application_could_see_is_no_hit(request_line: str) -> None:
    line = COMBINED.replace("GET /a%20b?c=d HTTP/1.1", request_line)
    assert read_any(line.encode()) is Unread.NO_REQUEST
    assert read_any(b" \n") is Unread.NO_REQUEST


def test_an_absolute_target_is_asked_by_its_path() -> None:
    assert hit_of(COMBINED.replace("/a%20b", "http://library.example/a%20b"))[4] == "/a b"


@pytest.mark.parametrize(
    "line",
    [
        b"hello",
        b"\x00" * 60_000,
        b'"' * 60_000,
        b"[" * 60_000,
        b"\\" * 60_000,
        b"{" * 60_000,
        b"[]",
        COMBINED.replace("17/May", "37/May").encode(),
        COMBINED.replace("May", "Mai").encode(),
        COMBINED.encode("utf-16"),
        b'{"ts": "soon", "request": {"method": "GET", "uri": "/", "remote_ip": "192.0.2.1", "headers": {}}}',
        b'{"ts": 1e400, "remote_addr": "192.0.2.1", "request": "GET / HTTP/1.1"}',
        b'{"ts": 1, "request": {"headers": 5}}',
        b'{"ts": [], "remote_addr": {}, "request": "GET / HTTP/1.1"}',
    ],
)
def test_what_is_no_line_is_unparsed_and_fails_nothing(line: bytes) -> None:
    assert read_any(line) is Unread.UNPARSED


_OF_NGINX = reader_for('$remote_addr [$time_local] "$request" $request_time')
_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.just("GET / HTTP/1.1"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["ts", "request", "headers", "uri", "method", "client_ip", "msec"]), inner)
    ),
    max_leaves=12,
)


@given(st.binary(max_size=80) | _JSON.map(lambda value: json.dumps(value).encode()))
@example(b'{"ts": 1, "request": {"headers": {"a": {"b": 1}}}}')
def test_no_line_whatsoever_raises(line: bytes) -> None:
    read_any(line)
    read_any(COMBINED.encode() + line)
    _OF_NGINX(line)


# JSON lines


def caddy(**changed: object) -> bytes:
    request = {
        "remote_ip": "203.0.113.1",
        "client_ip": "192.0.2.7",
        "method": "GET",
        "uri": "/a%20b?c=d",
        "headers": {"User-Agent": [AGENT], "X-Forwarded-For": ["198.51.100.4"]},
    }
    entry = {"level": "info", "ts": START / 1e6 + 0.25, "request": request, "duration": 0.25, "status": 200}
    return json.dumps({**entry, **changed}).encode()


def test_caddys_json_tells_the_end_and_the_duration() -> None:
    assert read_any(caddy()) == (START, 250_000, "192.0.2.7", "GET", "/a b", AGENT.encode(), b"198.51.100.4")


@pytest.mark.parametrize("ts", ["2015-05-17T10:05:03.25Z", "2015-05-17T12:05:03.250+02:00", START // 1000 + 250])
def test_caddys_time_may_be_written_in_other_ways(ts: object) -> None:
    assert hit_of(caddy(ts=ts))[0] == START


def test_a_servers_own_message_among_json_lines_is_no_hit() -> None:
    assert read_any(b'{"level":"info","ts":1431857103.1,"msg":"server running"}') is Unread.NO_REQUEST


def test_nginx_json_is_read_by_its_variables_names() -> None:
    line = {
        "time_iso8601": "2015-05-17T12:05:03+02:00",
        "remote_addr": "192.0.2.7",
        "request": "GET /a%20b?c=d HTTP/1.1",
        "http_user_agent": AGENT,
        "request_time": "0.000",
    }
    assert read_any(json.dumps(line).encode()) == (START, 0, *HIT[2:])
    del line["request"], line["request_time"]
    line |= {"request_method": "GET", "request_uri": "/a%20b"}
    assert read_any(json.dumps(line).encode()) == HIT


def test_bytes_beyond_utf8_in_nginx_json_are_kept() -> None:
    line = b'{"msec":"1431857103.000","remote_addr":"192.0.2.7","request":"GET / HTTP/1.1","http_user_agent":"B\xe4r"}'
    assert hit_of(line)[5] == b"B\xe4r"


# Format strings


def test_a_format_string_of_nginx_is_read() -> None:
    read = reader_for('$http_x_forwarded_for|$remote_addr|[$time_local]|$request|$request_time|"$http_user_agent"')
    line = f'198.51.100.4|192.0.2.7|[{TIME}]|GET /a%20b HTTP/1.1|0.250|"{AGENT}"\n'
    assert read(line.encode()) == (START - 250_000, 250_000, *HIT[2:6], b"198.51.100.4")
    assert read(b"something else\n") is Unread.UNPARSED


def test_a_hostile_line_takes_no_longer_for_its_separators() -> None:
    read = reader_for('$remote_addr - $remote_user [$time_local] "$request" "$http_user_agent" "$http_referer"')
    for piece in (b" - ", b"[] ", b'"" ', b"\\", b'\\"'):
        read(piece * 20_000)  # quadratic, it would take minutes


@pytest.mark.parametrize(("directive", "logged"), [("%D", "3000000"), ("%T", "3"), ("%{ms}T", "3000")])
def test_a_format_string_of_apache_is_read_with_its_own_unit_of_duration(directive: str, logged: str) -> None:
    combined = '%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i"'
    read = reader_for(f"%v %{{X-Forwarded-For}}i {directive} {combined}")
    line = f"www.library.example 198.51.100.4 {logged} {COMBINED} \n"
    assert read(line.encode()) == (START, 3_000_000, *HIT[2:6], b"198.51.100.4")
    assert read(b"something else\n") is Unread.UNPARSED


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("combined", "format string is needed"),
        ("%h %t %Q", "%Q"),
        ("%h %r", "%t"),
        ("$remote_addr $request", "a time"),
        ("$time_local $request", "remote_addr"),
    ],
)
def test_a_format_that_cannot_be_used_is_told_in_one_line(given: str, said: str) -> None:
    with pytest.raises(FormatError, match=said.replace("$", r"\$")) as error:
        reader_for(given)
    assert "\n" not in str(error.value)
