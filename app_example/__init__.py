"""A small site behind the throttle."""
