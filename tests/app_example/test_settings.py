from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

import app_example
from app_example.settings import Settings, SettingsError

if TYPE_CHECKING:
    from pathlib import Path


def test_without_any_setting_everything_has_a_default() -> None:
    settings = Settings.from_environment({"APP_EXAMPLE_STORE": "  "})
    assert settings.store == "memory"
    assert settings.trusted_proxies == ()
    assert settings.database.name == "library.sqlite3"


def test_each_setting_is_read_from_the_environment(tmp_path: Path) -> None:
    settings = Settings.from_environment(
        {
            "APP_EXAMPLE_DATA": str(tmp_path),
            "APP_EXAMPLE_STORE": "redis://127.0.0.1:6379/0",
            "APP_EXAMPLE_TRUSTED_PROXIES": "10.0.0.0/8, ::1",
            "APP_EXAMPLE_URL": "https://papers.example/",
            "APP_EXAMPLE_HTTPS": "1",
            "APP_EXAMPLE_SECRET": "x" * 32,
            "APP_EXAMPLE_THROTTLED": "0",
        }
    )
    stated = (tmp_path, "redis://127.0.0.1:6379/0", ("10.0.0.0/8", "::1"), "https://papers.example", True, "x" * 32)
    assert settings == Settings(*stated, throttled=False)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("APP_EXAMPLE_TRUSTED_PROXIES", "10.0.0.0/8, everybody"),
        ("APP_EXAMPLE_URL", "papers.example"),
        ("APP_EXAMPLE_URL", "ftp://papers.example"),
        ("APP_EXAMPLE_URL", "https://[::1"),
        ("APP_EXAMPLE_HTTPS", "perhaps"),
        ("APP_EXAMPLE_SECRET", "short"),
    ],
)
def test_a_setting_that_cannot_be_used_is_one_error_that_names_it(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name):
        Settings.from_environment({name: value})


def test_the_signing_key_is_made_once_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    key = Settings(data=tmp_path / "new").signing_key()
    assert len(key) >= 32
    assert Settings(data=tmp_path / "new").signing_key() == key
    assert stat.S_IMODE((tmp_path / "new" / "session.key").stat().st_mode) == 0o600
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["session.key"]


def test_a_broken_signing_key_is_one_error_that_names_its_file(tmp_path: Path) -> None:
    (tmp_path / "session.key").write_bytes(b"\xff" * 40)
    with pytest.raises(SettingsError, match=r"session\.key"):
        Settings(data=tmp_path).signing_key()
    (tmp_path / "session.key").write_bytes(b"")
    with pytest.raises(SettingsError, match=r"session\.key"):
        Settings(data=tmp_path).signing_key()


def test_a_data_directory_that_cannot_be_made_is_one_error_that_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="Set APP_EXAMPLE_DATA"):
        Settings(data=tmp_path / "file").signing_key()


def test_the_secret_does_not_show_in_the_settings_text() -> None:
    assert "hidden" not in repr(Settings(secret="hidden-hidden-hidden"))


@pytest.mark.parametrize(
    ("name", "value"),
    [("APP_EXAMPLE_STORE", "mongodb://"), ("THROTTLE_LOAD_MAX", "many"), ("APP_EXAMPLE_HTTPS", "maybe")],
)
def test_a_site_that_cannot_run_says_so_when_a_server_asks_for_it_and_not_at_each_request(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, value: str
) -> None:
    monkeypatch.setenv("APP_EXAMPLE_DATA", str(tmp_path))
    monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit, match=value) as caught:
        app_example.__getattr__("app")
    assert "\n" not in str(caught.value)
