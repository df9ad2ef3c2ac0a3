"""Tokens that stand for an account at the Web API: «papers_», a half to find the row by, a point, a secret half.

Rule: the secret half is kept as its SHA-256 only (it is random and long, so a slow hash would add nothing), and
is compared in constant time.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import sqlite3

from app_example import fields
from app_example.accounts import Account
from app_example.fields import UnfitError

TOKENS_MAX = 10  # of one account
TOKEN_BEGINS = "papers_"


def make(connection: sqlite3.Connection, account: Account, purpose: str, now: int) -> str:
    """A new token; it cannot be shown again. To be called in a transaction. Raises UnfitError."""
    purpose = fields.one_line(purpose)
    if not 1 <= len(purpose) <= fields.PURPOSE_CHARACTERS_MAX:
        raise UnfitError({"purpose": f"Say in 1 to {fields.PURPOSE_CHARACTERS_MAX} characters what the token is for."})
    if len(of(connection, account)) >= TOKENS_MAX:
        raise UnfitError({"purpose": f"An account may have {TOKENS_MAX} tokens: revoke one first."})
    token_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    connection.execute(
        "INSERT INTO tokens (id, user_id, digest, purpose, made) VALUES (?, ?, ?, ?, ?)",
        (token_id, account.id, _digest(secret), purpose, now),
    )
    return f"{TOKEN_BEGINS}{token_id}.{secret}"


def account_of(connection: sqlite3.Connection, token: str) -> Account | None:
    """Whose token this is."""
    token_id, _, secret = token.removeprefix(TOKEN_BEGINS).partition(".")
    row = connection.execute(
        "SELECT users.id, name, full_name, digest FROM tokens JOIN users ON users.id = user_id WHERE tokens.id = ?",
        (token_id,),
    ).fetchone()
    is_right = hmac.compare_digest(row["digest"] if row else bytes(32), _digest(secret))
    return Account(row["id"], row["name"], row["full_name"]) if row and is_right else None


def of(connection: sqlite3.Connection, account: Account) -> list[sqlite3.Row]:
    """An account's tokens, oldest first: id, purpose, made."""
    return connection.execute(
        "SELECT id, purpose, made FROM tokens WHERE user_id = ? ORDER BY made, id", (account.id,)
    ).fetchall()


def revoke(connection: sqlite3.Connection, account: Account, token_id: str) -> None:
    """Revoke a token of this account; another's stays."""
    connection.execute("DELETE FROM tokens WHERE id = ? AND user_id = ?", (token_id, account.id))


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
