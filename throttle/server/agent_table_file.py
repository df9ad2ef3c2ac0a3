"""A site's own table of agents, read again when its file changes.

A table takes milliseconds to read, so that is done in another thread; it is taken at the next look. A broken one
changes nothing, and is logged once.
"""

import logging
import threading

from throttle.server.agent_table import Table, TableError, read_table
from throttle.server.agents import Classifier
from throttle.server.watched_file import WatchedFile

logger = logging.getLogger("throttle")


class AgentTableFile:
    """`classifier` classifies by the table in the file at `path`. Raises TableError if that can't be used now."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = WatchedFile(path)
        self._file.note_read()
        self.classifier = Classifier(table=path)
        self._reading: threading.Thread | None = None
        self._read: Table | None = None

    def look(self) -> None:
        """Take what was read since the last look, and have the file read if it has changed. Costs microseconds."""
        if self._reading is not None:
            if self._reading.is_alive():
                return
            self._reading = None
            if self._read is not None:
                names = self.classifier.take(self._read)
                logger.info("table of agents read again from %s: %d names", self.path, names)
        if self._file.has_changed():
            self._file.note_read()
            self._reading = threading.Thread(target=self._read_again, name="throttle-agents", daemon=True)
            self._reading.start()

    def _read_again(self) -> None:
        self._read = None
        try:
            self._read = read_table(self.path)
        except TableError as error:
            logger.error("table of agents not re-read, the old one stays in force: %s", error)
