"""Values that several commands take, checked as argparse wants it."""

import argparse
import math


def port(text: str) -> int:
    """A port to serve on."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and 1 <= int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is no port; a number from 1 to 65535 is needed")
    return int(text)


def seconds(text: str) -> float:
    """How long, at least a second."""
    value = number(text)
    if not 1 <= value <= 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; a number of seconds, at least 1, is needed")
    return value


def factor(text: str) -> float:
    """How many times."""
    value = number(text)
    if not 0.001 <= value <= 1e5:
        raise argparse.ArgumentTypeError(f"{text!r}: a number from 0.001 to 100,000 is needed")
    return value


def number(text: str) -> float:
    """NaN for what is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan
