"""Notices that several processes serve one site while each counts for itself."""

import fcntl
import logging
import multiprocessing
import os
import sys
from hashlib import blake2b

from throttle.server.private_folder import private_folder

logger = logging.getLogger("throttle")

_held: list[int] = []
"""files whose locks say that this process serves; open until it ends"""


def warn_of_several() -> None:
    """Say once, in the second process that serves this site from this parent, what that does to the limits."""
    if not is_one_of_several() or _held:
        return
    whose = repr((os.getppid(), sys.argv, os.getcwd())).encode()
    try:
        folder = private_folder("processes")
        name = folder / blake2b(whose, digest_size=8).hexdigest()
        _held.append(os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))
    except OSError:
        return  # nowhere to meet: then nothing is noticed
    if not _is_taken(0) or _is_taken(1):
        return
    logger.warning(
        "several processes serve this site, and each counts for itself: with N of them a caller gets N times the hits, "
        "and N times the bots run and wait. store='local' gives all processes of this machine one count, "
        "store='redis://...' those of all machines."
    )


def is_one_of_several() -> bool:
    """This process was made by a server that may have made others like it."""
    return multiprocessing.parent_process() is not None or "gunicorn.arbiter" in sys.modules


def _is_taken(place: int) -> bool:
    """Somebody else has this place; else it is ours until we end."""
    try:
        fcntl.lockf(_held[0], fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
    except OSError:
        return True
    return False
