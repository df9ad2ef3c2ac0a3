"""A flood of invented callers, and those who come steadily meanwhile. See `flood.py`."""
