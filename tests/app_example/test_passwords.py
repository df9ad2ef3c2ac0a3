from __future__ import annotations

import argon2
import pytest

from app_example import passwords


@pytest.fixture(autouse=True)
def _real_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "HASHER", argon2.PasswordHasher())


def test_a_password_is_right_for_its_own_hash_only() -> None:
    kept = passwords.hashed("several words are good")
    assert kept.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert passwords.is_right(kept, "several words are good")
    assert not passwords.is_right(kept, "several words are Good")
    assert kept != passwords.hashed("several words are good")


def test_who_has_no_hash_or_a_broken_one_has_no_right_password() -> None:
    assert not passwords.is_right(None, "")
    assert not passwords.is_right("", "")
    assert not passwords.is_right("$argon2id$broken", "x")


def test_the_hash_of_nobody_costs_what_a_users_does() -> None:
    assert not passwords.HASHER.check_needs_rehash(passwords.NOBODYS_HASH)
