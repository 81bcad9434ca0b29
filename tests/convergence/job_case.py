"""The job of a case, of any kind, and the outcomes of its replicas."""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from dlctl.api.job import Replica
from dlctl.api.meta import ObjectKey
from tests.support.outcomes import Deleted, Drained, Outcome, Script, script_of


@attrs.frozen
class JobCase:
    """A job and the outcomes of its replicas."""

    manifest: Mapping[str, Any]
    outcomes: Mapping[str, Sequence[Outcome]]
    last_replica: str
    # By replica type.
    restart_policies: Mapping[str, str]

    @property
    def key(self) -> ObjectKey:
        return ObjectKey("default", self.manifest["metadata"]["name"])

    def script(self) -> Script:
        return script_of(self.manifest, self.outcomes, last_replica=self.last_replica)

    def pods(self) -> Mapping[str, int]:
        """Return the number of pods by replica."""
        return {str(r): part.pods(self._in_place(r)) for r, part in self.script().parts.items()}

    def deleted(self) -> set[str]:
        """Return the replicas with a pod that is deleted before its end."""
        return {
            replica
            for replica, planned in self.outcomes.items()
            if any(isinstance(outcome, Deleted | Drained) for outcome in planned)
        }

    def _in_place(self, replica: Replica) -> bool:
        return self.restart_policies[replica.type] in ("OnFailure", "Always")
