"""The pace of a worker that has lost the ledger: its share of what the host was last known to bear, and never more."""

from math import ceil

from throttle.client.pace.aimd import AimdPace

ALONE = 0.9
"""the part of its share that a worker without the ledger sends at most"""
CUT = 0.75
"""… and what a refusal leaves of it: gently, since the others do not hear of it and go on"""
BACK = 60.0
"""seconds in which it would grow from nothing to its share"""
LEAST = 16
"""… and never falls below this part of it"""


def pace_alone(borne: float, slots: float, workers: int) -> AimdPace:
    """`borne` a second by all `workers`, of whose requests `slots` may be open: evenly divided, as nobody waits for a
    turn any more.
    """
    share = ALONE * borne / workers
    return AimdPace(
        rate=share,
        rate_min=share / LEAST,
        rate_max=share,
        increase=share / BACK,
        decrease=CUT,
        in_flight_max=max(1, ceil(slots / workers)),
    )
