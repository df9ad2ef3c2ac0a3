"""Passwords, hashed and checked with Argon2id (RFC 9106, the second recommended choice).

One hash takes 64 MiB and some 50 ms of a core: never call this on the event loop, and never often at once.
"""

from __future__ import annotations

import argon2
from argon2.exceptions import InvalidHashError, VerificationError

CHARACTERS_MIN = 10
CHARACTERS_MAX = 200
AT_ONCE = 2  # threads that hash at a time: a crowd at the log-in page takes neither all memory nor all threads

HASHER = argon2.PasswordHasher()

# Checked in place of the hash that an unknown user does not have, so that the time does not tell who exists.
NOBODYS_HASH = "$argon2id$v=19$m=65536,t=3,p=4$T3zqCx4N1eHnRg+ATVVotA$DyptoyWgy0XcxvsRao6BhbuoEIguuDo6frrbpSR4Vj8"


def hashed(password: str) -> str:
    """The text to keep; a new salt each time."""
    return HASHER.hash(password)


def is_right(password_hash: str | None, password: str) -> bool:
    """Whether this is the password. Takes as long when there is none to compare with, and says no."""
    try:
        return HASHER.verify(password_hash or NOBODYS_HASH, password) and password_hash is not None
    except (VerificationError, InvalidHashError):
        return False
