"""Whether a file has changed since it was last read."""

import os
from pathlib import Path


class WatchedFile:
    """A file at `path`. One that is gone has not changed: what was read from it stays in force."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._seen: tuple[int, int, int] | None = None

    def note_read(self) -> None:
        """It is about to be read, as it stands now."""
        self._seen = self._state()

    def has_changed(self) -> bool:
        state = self._state()
        return state is not None and state != self._seen

    def _state(self) -> tuple[int, int, int] | None:
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino
