"""Accounts: signing up, and whether a password is right.

Rule: a password is kept as its hash only, and nobody can log in as an author of the shipped data.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from app_example import fields, passwords
from app_example.fields import UnfitError


@dataclass(frozen=True, slots=True)
class Account:
    """Somebody who can log in."""

    id: int
    name: str
    full_name: str


@dataclass(frozen=True, slots=True)
class NewAccount:
    """What was written at sign-up, checked; the password is not hashed yet."""

    name: str
    full_name: str
    password: str


def checked(*, name: str, full_name: str, password: str) -> NewAccount:
    """The account that the fields make. Raises UnfitError, with every field that is at fault."""
    faults: dict[str, str] = {}
    try:
        name = fields.user_name(name)
    except ValueError as error:
        faults["name"] = str(error)
    full_name = fields.one_line(full_name) or name
    if len(full_name) > fields.FULL_NAME_CHARACTERS_MAX:
        faults["full_name"] = f"A full name may have {fields.FULL_NAME_CHARACTERS_MAX} characters."
    if fault := password_fault(password, name):
        faults["password"] = fault
    if faults:
        raise UnfitError(faults)
    return NewAccount(name, full_name, password)


def password_fault(password: str, name: str) -> str:
    """What is wrong with a new password, and what to do; empty if nothing is."""
    if not passwords.CHARACTERS_MIN <= len(password) <= passwords.CHARACTERS_MAX:
        return f"A password has {passwords.CHARACTERS_MIN} to {passwords.CHARACTERS_MAX} characters."
    if len(set(password)) < 4 or password.lower() == name.lower():
        return "This password is easily guessed: take several words."
    return ""


def create(connection: sqlite3.Connection, name: str, full_name: str, password_hash: str, now: int) -> Account:
    """A new account. Raises UnfitError if the name is taken, by an author of the data or anybody else."""
    try:
        user_id = connection.execute(
            "INSERT INTO users (name, full_name, password_hash, joined) VALUES (?, ?, ?, ?)",
            (name, full_name, password_hash, now),
        ).lastrowid
    except sqlite3.IntegrityError:
        raise UnfitError({"name": f"The name {name} is taken; choose another."}) from None
    assert user_id is not None
    return Account(user_id, name, full_name)


def with_password(connection: sqlite3.Connection, name: str, password: str) -> Account | None:
    """The account of this name, if this is its password. Takes as long when there is none."""
    row = connection.execute("SELECT id, name, full_name, password_hash FROM users WHERE name = ?", (name,)).fetchone()
    if not passwords.is_right(row["password_hash"] if row else None, password):
        return None
    return Account(row["id"], row["name"], row["full_name"])


def set_password(connection: sqlite3.Connection, account: Account, password_hash: str) -> None:
    """Another password. The sessions that began with the former one are the caller's to end."""
    connection.execute("UPDATE users SET password_hash = ? WHERE id = ?", (password_hash, account.id))
