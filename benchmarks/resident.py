"""The memory that a process holds now, in MiB."""

import resource
from pathlib import Path

STATM = Path("/proc/self/statm")


def resident() -> float:
    """Resident MiB; where the system does not tell (no /proc), the most there ever were."""
    if STATM.exists():
        return int(STATM.read_text().split()[1]) * resource.getpagesize() / (1 << 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
