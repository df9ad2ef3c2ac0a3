"""The caller's half: a client that throttles itself."""
