"""The site's settings, from the environment. Each has a default that serves for a look around."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import urlsplit

import platformdirs

SECRET_BYTES_MIN = 16


class SettingsError(ValueError):
    """A setting cannot be used. The message names it and says what to do."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What one running site needs to know.

    ===================  ===========================  ====================================================
    data                 APP_EXAMPLE_DATA             directory of the database and of the key that signs
                                                      sessions; by default the platform's place for a
                                                      user's data
    store                APP_EXAMPLE_STORE            where the throttle counts; by default in this process
    trusted_proxies      APP_EXAMPLE_TRUSTED_PROXIES  networks whose forwarding headers count, with commas
    public_url           APP_EXAMPLE_URL              the site's address as the world sees it, without a
                                                      slash at the end; by default each request's own
    https                APP_EXAMPLE_HTTPS            1 marks the session cookie Secure
    secret               APP_EXAMPLE_SECRET           signs sessions; by default made once, kept in ``data``
    throttled            APP_EXAMPLE_THROTTLED        0 leaves the throttle out, for comparison
    ===================  ===========================  ====================================================
    """

    data: Path = field(default_factory=lambda: platformdirs.user_data_path("throttle-app-example", False))
    store: str = "memory"
    trusted_proxies: tuple[str, ...] = ()
    public_url: str | None = None
    https: bool = False
    secret: str | None = field(default=None, repr=False)
    throttled: bool = True

    @property
    def database(self) -> Path:
        """The database's file."""
        return self.data / "library.sqlite3"

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """The settings that the environment gives. Raises SettingsError."""
        given = {name: value for name, value in environ.items() if value.strip()}
        return cls(
            store=given.get("APP_EXAMPLE_STORE", "memory"),
            trusted_proxies=_networks(given.get("APP_EXAMPLE_TRUSTED_PROXIES", "")),
            public_url=_url(given.get("APP_EXAMPLE_URL")),
            https=_switch("APP_EXAMPLE_HTTPS", given.get("APP_EXAMPLE_HTTPS", "0")),
            secret=_secret(given.get("APP_EXAMPLE_SECRET")),
            throttled=_switch("APP_EXAMPLE_THROTTLED", given.get("APP_EXAMPLE_THROTTLED", "1")),
            **({"data": Path(given["APP_EXAMPLE_DATA"]).expanduser()} if "APP_EXAMPLE_DATA" in given else {}),
        )

    def signing_key(self) -> str:
        """The key that signs sessions, one for all workers on a data directory. Raises SettingsError."""
        if self.secret is not None:
            return self.secret
        path = self.data / "session.key"
        try:
            if not path.exists():
                _write_once(path, secrets.token_urlsafe(32))
            return _secret(path.read_text("utf-8"), str(path)) or ""
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(
                f"cannot read or write {path}: {getattr(error, 'strerror', None) or error}. Set "
                "APP_EXAMPLE_DATA to a directory that you can write to, or APP_EXAMPLE_SECRET to a key."
            ) from error


def _write_once(path: Path, text: str) -> None:
    """Write a file that appears whole or not at all; one that another process wrote first stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def _networks(text: str) -> tuple[str, ...]:
    networks = tuple(part.strip() for part in text.split(",") if part.strip())
    for network in networks:
        try:
            ip_network(network)
        except ValueError as error:
            raise SettingsError(
                f"APP_EXAMPLE_TRUSTED_PROXIES: {error}. Write addresses or networks, as 10.0.0.0/8,::1"
            ) from None
    return networks


def _url(text: str | None) -> str | None:
    if text is None:
        return None
    try:
        parts = urlsplit(text)
        is_site = parts.scheme in ("http", "https") and parts.hostname and not parts.query + parts.fragment
    except ValueError:  # half an IPv6 address
        is_site = False
    if not is_site:
        raise SettingsError(f"APP_EXAMPLE_URL: {text!r} is no address of a site. Write https://papers.example")
    return text.rstrip("/")


def _switch(name: str, text: str) -> bool:
    if text.lower() in ("1", "true", "yes", "on"):
        return True
    if text.lower() in ("0", "false", "no", "off"):
        return False
    raise SettingsError(f"{name}: {text!r} is neither 1 nor 0")


def _secret(text: str | None, name: str = "APP_EXAMPLE_SECRET") -> str | None:
    if text is not None and len(text.encode()) < SECRET_BYTES_MIN:
        raise SettingsError(f"{name}: a key that signs sessions needs at least {SECRET_BYTES_MIN} bytes")
    return text
