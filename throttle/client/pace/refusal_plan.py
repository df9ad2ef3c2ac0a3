"""How many requests lie between two refusals that are sought: what a refusal tells, against what it costs.

Nothing but a refusal tells that a limit has risen, and one request of a hundred is the most that may be refused. So
refusals are earned by what is served, dear ones are bought more rarely, and a fit that is still wide is worth one soon.
"""

from throttle.client.pace.bucket_fit import Fit

# At least so many requests under a fit that is sure; so many more for each one a second above LAZY, but no more than
# MOST for its sake; and than OWED_MOST for what earlier refusals cost.
LEAST, SECONDS, MOST, OWED_MOST = 106.0, 50.0, 300.0, 350.0
# What a rest costs beyond the bucket's refill may be this share of what is served.
REST_SHARE = 0.01
# A fit wider than this is worth an earlier refusal, in proportion; but after no fewer requests than EARLIEST. A slow
# host's few requests make each refusal dear, so there SLOW ÷ rate.
UNSURE, UNSURE_DEAR, EARLIEST, SLOW = 0.07, 0.04, 40.0, 60.0
# So many refusals are free; those after them are earned, and the free ones made up for, by BUDGET requests each. Above
# BRISK a second these take but half a minute, so more may be asked for; below LAZY a visit has so few that one refusal
# is a large share of them. A wide fit after the free ones is worth one on credit.
FREE, BUDGET, BRISK, BRISK_MOST, LAZY, LAZY_MOST = 2, 106.0, 4.42, 2.26, 2.0, 1.85
# A pace that goes through a wide fit is refused about here, not at the plan's end.
MIDWAY = 0.7


def refusal_plan(fit: Fit, rest: float, refusals: int, served: int) -> float:
    """Requests until a refusal is sought, after one that costs `rest` seconds; `refusals` and `served` so far."""
    low, _, rate, _, high = fit.rates
    spread = max(0.01, (high - low) / rate)
    # What flows into the bucket while we rest is not lost, as far as it holds that much.
    lost = rest * rate - 0.9 * min(fit.burst, rest * rate)
    settled = max(LEAST, min(MOST, SECONDS * (rate - LAZY)))
    return max(
        min(OWED_MOST, _requests_owed(fit, refusals, served)),
        EARLIEST,
        min(100.0, SLOW / rate),
        settled * min(1.0, UNSURE / spread),
        lost / REST_SHARE * min(1.0, UNSURE_DEAR / spread),
    )


def _requests_owed(fit: Fit, refusals: int, served: int) -> float:
    """Until the next refusal is earned; below 0 when it is."""
    rate = fit.rates[2]
    each = BUDGET * max(1.0, min(BRISK_MOST, rate / BRISK), min(LAZY_MOST, LAZY / rate))
    if refusals < FREE:
        return 0.0
    if not fit.is_wide:
        return refusals * each - served
    earned = refusals - 1 if refusals == FREE else refusals
    return (earned * each - served) / MIDWAY
