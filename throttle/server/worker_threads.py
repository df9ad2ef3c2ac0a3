"""Whether people would find a worker thread: of those in which handlers run that are no coroutines, a few are theirs.

Starlette runs such handlers in forty threads of anyio's. When all are taken people wait for one, however many a machine
could run at once; and where pages take alike long, threads that were taken together become free together.
"""

import anyio.to_thread

KEPT_FOR_PEOPLE = 0.1
"""of the threads"""


class WorkerThreads:
    """Those of one event loop, as they stand. Where nothing runs in threads, all are free."""

    def __init__(self) -> None:
        self._limiter: anyio.CapacityLimiter | None = None
        self._enough_for = 0.0
        """so many requests at least"""

    def has_one_for_a_machine(self, load: int) -> bool:
        """Besides those that are kept for people, while so many requests run. Needs a running event loop."""
        if load < self._enough_for:  # none of them runs in two threads
            return True
        limiter = self._limiter
        if limiter is None:
            limiter = self._limiter = anyio.to_thread.current_default_thread_limiter()
        kept = KEPT_FOR_PEOPLE * limiter.total_tokens
        self._enough_for = limiter.total_tokens - kept
        return bool(limiter.available_tokens > kept)
