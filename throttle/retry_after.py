"""The Retry-After field (RFC 9110, 10.2.3), for both halves."""


def whole_seconds(microseconds: int) -> int:
    """Seconds to write: rounded up, at least 1, so that who returns then is not early."""
    seconds = -(-microseconds // 1_000_000)
    return seconds if seconds > 1 else 1  # on the way of each refusal: half the time of max()
