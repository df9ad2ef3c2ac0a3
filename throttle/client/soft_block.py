"""A block is not a limit: patience opens no wall.

A limit wants waiting, a block wants a person. What is told apart here stops the host with a clear error.
"""

from collections.abc import Mapping

# Cloudflare: «cf-mitigated: challenge», also on 429. AWS WAF: the action, on 202 and 405.
BLOCK_FIELDS = {
    "cf-mitigated": frozenset({"challenge"}),
    "x-amzn-waf-action": frozenset({"challenge", "captcha"}),
}
# draft-ietf-httpapi-ratelimit-headers, «Problem types»: this one asks for another behaviour, the other two
# (quota-exceeded, temporary-reduced-capacity) for another pace.
BLOCK_PROBLEMS = ("abnormal-usage-detected",)
PROBLEM_LENGTH_MAX = 4096


def soft_block_reason(status: int, headers: Mapping[str, str], body: bytes = b"") -> str | None:
    """What says that this answer is a block, or None. `headers` has lower-case names.

    `body` is looked at only for application/problem+json; a caller that streams may leave it out.
    """
    for name, actions in BLOCK_FIELDS.items():
        action = headers.get(name)
        if action is not None and action.strip().lower()[:64] in actions:
            return f"{name}: {action.strip().lower()[:64]}"
    if status in (403, 429, 503) and headers.get("content-type", "").startswith("application/problem+json"):
        start = body[:PROBLEM_LENGTH_MAX]
        for problem in BLOCK_PROBLEMS:
            if problem.encode() in start:
                return f"problem type {problem}"
    return None
