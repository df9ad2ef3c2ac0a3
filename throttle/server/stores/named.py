"""A store by its name: what an operator writes in code, in a file or in the environment."""

from throttle.server.stores import Store
from throttle.server.stores.memory import MemoryStore

HINT = "use 'memory', 'local', a URL that begins with redis://, rediss:// or unix://, or a Store"


def store_named(store: Store | str) -> Store:
    """«memory»: this process; «local»: all processes of this machine; a URL: all who use that server.

    Raises ValueError for a name that is none, and ImportError where a package is missing, saying which.
    """
    if not isinstance(store, str):
        return store
    if store == "memory":
        return MemoryStore()
    if store.startswith(("redis://", "rediss://", "unix://")):
        from throttle.server.stores.redis import RedisStore  # only for those who use it

        return RedisStore(store)
    if store == "local" or store.startswith("local:"):
        from throttle.server.stores.local import LocalStore

        return LocalStore(store.partition(":")[2] or None)
    raise ValueError(f"store={store!r}: {HINT}")
