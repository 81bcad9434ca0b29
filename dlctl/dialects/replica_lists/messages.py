"""The messages of the list form; those of conditions and events are dlctl's own."""

import attrs

from dlctl.api.status.condition_messages import ConditionMessages


@attrs.frozen
class ReplicaListMessages(ConditionMessages):
    """The messages about a job of the list form."""

    def invalid_status_reason(self, problem: str) -> str:
        # As tf-operator and the operators made from it wrote it.
        return f"invalid job spec: {problem}"
