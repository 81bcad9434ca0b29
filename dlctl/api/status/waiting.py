"""Why a job does not run, as its condition ``Waiting`` reports it."""

import attrs

# Messages quote schedulers, webhooks and kubelets, which quote what tenants wrote.
MAX_MESSAGE_CHARS = 1024


@attrs.frozen
class Waiting:
    """One cause: a reason in CamelCase for programs, and one sentence for people."""

    reason: str
    message: str
