"""Why a job does not run, as its condition ``Waiting`` reports it."""

import attrs


@attrs.frozen
class Waiting:
    """One cause: a reason in CamelCase for programs, and one sentence for people."""

    reason: str
    message: str
