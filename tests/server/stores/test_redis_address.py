"""Where a server is, and how a store is named."""

import ssl
import sys

import pytest

from throttle import MemoryStore, ThrottleMiddleware
from throttle.server.stores.named import store_named
from throttle.server.stores.redis import RedisStore
from throttle.server.stores.redis_address import Address, address_from


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://", Address()),
        ("redis://127.0.0.1:6380/2", Address(host="127.0.0.1", port=6380, database=2)),
        ("redis://h?db=3", Address(host="h", database=3)),
        ("redis://:s%40cret@h", Address(host="h", password="s@cret")),
        ("redis://ada:s@h", Address(host="h", user="ada", password="s")),
        ("redis://[2001:db8::1]:7000", Address(host="2001:db8::1", port=7000)),
        ("unix:///run/redis.sock", Address(path="/run/redis.sock")),
        ("unix://ada:s@/run/r%20s.sock?db=1", Address(path="/run/r s.sock", user="ada", password="s", database=1)),
    ],
)
def test_a_url_names_a_server(url: str, address: Address) -> None:
    assert address_from(url) == (address, {})


def test_rediss_checks_certificates_unless_told_not_to() -> None:
    address, _ = address_from("rediss://h")
    assert address.tls is not None
    assert address.tls.verify_mode is ssl.CERT_REQUIRED
    assert address.tls.check_hostname
    address, _ = address_from("rediss://h?ssl_cert_reqs=none")
    assert address.tls is not None
    assert address.tls.verify_mode is ssl.CERT_NONE


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://h", "begins with redis://"),
        ("redis://h:99999", "port"),
        ("redis://h/zero", "database"),
        ("unix://", "path"),
        ("rediss://h?ssl_cert_reqs=perhaps", "ssl_cert_reqs"),
        ("rediss://h?ssl_ca_certs=/nowhere", "certificates"),
    ],
)
def test_a_url_that_makes_no_sense_is_refused_by_what_is_wrong_in_it(url: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        address_from(url)


def test_no_error_and_no_name_shows_a_password() -> None:
    with pytest.raises(ValueError, match="database") as caught:
        address_from("redis://ada:hunter2@h/zero")
    assert "hunter2" not in str(caught.value)
    store = RedisStore("redis://ada:hunter2@h")
    assert "hunter2" not in store.name
    assert "hunter2" not in repr(store._address)


def test_settings_may_stand_in_the_url() -> None:
    store = RedisStore("redis://h?site=papers&prefix=t&on_store_failure=refuse&time_box=0.2&lease_seconds=5")
    settings = store.settings
    assert (settings.site, settings.prefix, settings.on_store_failure) == ("papers", "t", "refuse")
    assert (settings.time_box, settings.lease_seconds) == (0.2, 5.0)
    assert store.keys.fleet == "t:{papers}:fleet"


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("sitename=papers", "sitename"),
        ("now_is_given=1", "now_is_given"),
        ("time_box=fast", "time_box"),
        ("time_box=0", "time_box"),
        ("lease_seconds=nan", "lease_seconds"),
        ("on_store_failure=panic", "local, refuse, serve"),
        ("site=a}b", "site"),
        ("prefix={a}", "prefix"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_by_name(query: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        RedisStore(f"redis://h?{query}")


def test_a_store_has_a_name() -> None:
    assert isinstance(store_named("memory"), MemoryStore)
    assert isinstance(store_named("redis://h"), RedisStore)
    store = MemoryStore()
    assert store_named(store) is store
    with pytest.raises(ValueError, match="'memory', 'local', a URL"):
        store_named("postgres://h")


def test_a_missing_package_is_named_when_the_application_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hiredis", None)
    for name in [name for name in sys.modules if name.startswith("throttle.server.stores.re")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r"pip install 'asgi-throttle\[redis\]'"):
        ThrottleMiddleware(lambda *_: None, store="redis://h")  # type: ignore[arg-type,return-value]
