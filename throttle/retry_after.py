"""The Retry-After field (RFC 9110, 10.2.3), for both halves."""


def whole_seconds(microseconds: int) -> int:
    """Seconds to write: rounded up, at least 1, so that who returns then is not early."""
    return max(1, -(-microseconds // 1_000_000))
