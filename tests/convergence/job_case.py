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
    fates: Mapping[str, Sequence[Outcome]]
    decider: str
    # By replica type.
    restart_policies: Mapping[str, str]

    @property
    def key(self) -> ObjectKey:
        return ObjectKey("default", self.manifest["metadata"]["name"])

    def script(self) -> Script:
        return script_of(self.manifest, self.fates, decider=self.decider)

    def pods(self) -> Mapping[str, int]:
        """Return the number of pods by replica."""
        return {str(r): part.pods(self._in_place(r)) for r, part in self.script().parts.items()}

    def deleted(self) -> set[str]:
        """Return the replicas with a pod that is deleted before its end."""
        return {
            replica
            for replica, outcomes in self.fates.items()
            if any(isinstance(outcome, Deleted | Drained) for outcome in outcomes)
        }

    def _in_place(self, replica: Replica) -> bool:
        return self.restart_policies[replica.type] in ("OnFailure", "Always")
