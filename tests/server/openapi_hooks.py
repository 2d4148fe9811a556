"""What schemathesis changes in its requests (SCHEMATHESIS_HOOKS)."""

import schemathesis

# The example of a duration in openapi.json: a :reserve would wait as long.
EXAMPLE = "1h30m"


@schemathesis.hook
def before_call(_context, case, _kwargs):
    if isinstance(case.body, dict) and case.body.get("wait") == EXAMPLE:
        case.body["wait"] = "0s"
