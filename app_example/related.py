"""Which users are like this one, by the tags they share: the site's most expensive question.

Nothing in it is slow on purpose, and nothing sleeps. It compares one user's tags with everybody's at every
call, as one would write it first; a site with a throttle in front can leave it so. The more tags a user has,
the longer it takes.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app_example import library

# The cosine between two users' vectors of tags. A tag counts as often as the user set it, times the logarithm
# of how rare it is: to share «oncology» says more than to share «data». (tf-idf; Salton and Buckley 1988.)
RELATED = """
WITH
  uses AS (
    SELECT user_id, tag_id, count(*) AS times
    FROM posts JOIN post_tags ON post_id = posts.id GROUP BY user_id, tag_id
  ),
  rarity AS (
    SELECT tag_id, ln(1.0 * (SELECT count(DISTINCT user_id) FROM posts) / count(*)) AS weight
    FROM uses GROUP BY tag_id
  ),
  vectors AS (SELECT user_id, tag_id, times * weight AS x FROM uses JOIN rarity USING (tag_id)),
  lengths AS (SELECT user_id, sqrt(sum(x * x)) AS length FROM vectors GROUP BY user_id HAVING length > 0)
SELECT
  users.name, users.full_name, count(*) AS shared_tags,
  sum(mine.x * theirs.x) / lengths.length / (SELECT length FROM lengths WHERE user_id = :user_id) AS likeness
FROM vectors AS mine
JOIN vectors AS theirs ON theirs.tag_id = mine.tag_id AND theirs.user_id <> mine.user_id
JOIN lengths ON lengths.user_id = theirs.user_id
JOIN users ON users.id = theirs.user_id
WHERE mine.user_id = :user_id
GROUP BY theirs.user_id
ORDER BY likeness DESC, users.name
LIMIT :limit
"""


@dataclass(frozen=True, slots=True)
class RelatedUser:
    """A user who shares tags; ``likeness`` is from 0, nothing in common, to 1, the same tags as often."""

    name: str
    full_name: str
    shared_tags: int
    likeness: float


def related_users(connection: sqlite3.Connection, user: library.User, limit: int = 25) -> list[RelatedUser]:
    """The users most like this one, the likest first."""
    rows = connection.execute(RELATED, {"user_id": user.id, "limit": limit})
    return [RelatedUser(*row) for row in rows]
