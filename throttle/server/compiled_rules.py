"""The rules for each class of caller in a store's form: compiled once, for the middleware and for the replay alike."""

from throttle.rate_limit_fields import policy_value
from throttle.server.agents import CallerClass
from throttle.server.caller import Compile, Rules
from throttle.server.policy import Limits, handle_request, wake_rank
from throttle.server.rule import Rule
from throttle.server.stores import Store


def compiled_rules(limits: Limits, store: Store, *, tells_quotas: bool) -> Compile:
    """What compiles the rules of `limits` for a class of caller, to be asked of `store`."""

    def compiled(caller_class: CallerClass, is_stack_exempt: bool) -> Rules:
        rules = list(handle_request(caller_class, limits, is_stack_exempt=is_stack_exempt))
        return Rules(
            caller_class,
            store.prepare(rules, tells_quotas=tells_quotas),
            wake_rank(caller_class),
            policy_value([rule for rule in rules if isinstance(rule, Rule)]),
        )

    return compiled
