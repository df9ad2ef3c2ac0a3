"""A folder that only its user can enter, in which processes of that user meet."""

import os
import stat
import tempfile
from pathlib import Path


def private_folder(name: str) -> Path:
    """The folder of that name, made if need be. Raises OSError if somebody else could enter it, or put it there."""
    root = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    folder = root / f"throttle-{os.geteuid()}"
    for one in (folder, folder / name):
        one.mkdir(mode=0o700, exist_ok=True)
        found = one.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise PermissionError(f"{one} must be a folder of this user that nobody else can enter (chmod 700)")
    return folder / name
