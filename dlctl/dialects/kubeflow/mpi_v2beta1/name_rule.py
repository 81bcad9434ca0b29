"""The CEL rule by which the names of workers are host names."""

from typing import Any, Final

from dlctl.dialects.child_names import MAX_LENGTH

_WORKERS: Final = "{0}.?spec.?mpiReplicaSpecs[?'Worker'].?replicas.orValue(1)"
# A stored job is exempt while it has the same workers, so that its status can be written.
WORKER_NAME_LENGTH: Final[dict[str, Any]] = {
    "rule": "self.metadata.name.size() + '-worker-'.size() + "
    f"string({_WORKERS.format('self')} - 1).size() <= {MAX_LENGTH} || "
    f"oldSelf.hasValue() && {_WORKERS.format('oldSelf')} == {_WORKERS.format('self')}",
    "optionalOldSelf": True,
    "message": "metadata.name is too long: the names of workers, <name>-worker-<index>, "
    f"may have {MAX_LENGTH} characters",
}
