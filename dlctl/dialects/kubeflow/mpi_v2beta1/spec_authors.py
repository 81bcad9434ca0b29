"""MPIJobs with the versions whose requests wrote their specs, from ``metadata.managedFields``.

There is one value per job in memory, so of the managed fields only these versions are kept.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import attrs
from msgspec.structs import force_setattr

from dlctl.api.meta import ObjectMeta, Projection
from dlctl.api.objects.jobs import JobObject


@attrs.frozen
class SpecAuthors:
    """The versions of the requests that wrote two fields of a spec."""

    # Versions that wrote the replica specs as a whole: that of the creator alone, unless others
    # have applied the job on the server.
    replica_specs: frozenset[str]
    # Versions that wrote ``FORM_FIELD``. A default that a webhook's version added belongs to none.
    form_field: frozenset[str]


class _ReplicaSpecs(Projection, frozen=True, gc=False, rename={"whole": "."}):
    # Set where an update wrote the field and not only parts of it.
    whole: dict[str, Any] | None = None


class _SpecFields(
    Projection,
    frozen=True,
    gc=False,
    rename={"replica_specs": "f:mpiReplicaSpecs", "form_field": "f:sshAuthMountPath"},
):
    replica_specs: _ReplicaSpecs | None = None
    form_field: dict[str, Any] | None = None


class _Fields(Projection, frozen=True, gc=False, rename={"spec": "f:spec"}):
    spec: _SpecFields | None = None


class _Entry(Projection, frozen=True, gc=False):
    api_version: str = ""
    operation: str = ""
    subresource: str = ""
    fields_v1: _Fields | None = None

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]

    @property
    def writes_replica_specs(self) -> bool:
        spec = self.fields_v1.spec if self.fields_v1 else None
        written = spec.replica_specs if spec else None
        # An applied configuration is complete, and has no entry for the whole.
        return written is not None and (self.operation == "Apply" or written.whole is not None)

    @property
    def writes_form_field(self) -> bool:
        spec = self.fields_v1.spec if self.fields_v1 else None
        return spec is not None and spec.form_field is not None


class AuthoredMeta(ObjectMeta, frozen=True, gc=False):
    """The metadata of an MPIJob."""

    managed_fields: list[_Entry] | None = None
    # None without managed fields.
    authors: SpecAuthors | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.managed_fields:
            entries = [entry for entry in self.managed_fields if not entry.subresource]
            force_setattr(self, "authors", _authors(*_versions(entries)))
        force_setattr(self, "managed_fields", None)


class MPIJobObject(JobObject, frozen=True, gc=False):
    """An MPIJob as stored on the server."""

    metadata: AuthoredMeta = AuthoredMeta()


def _versions(entries: Sequence[_Entry]) -> tuple[frozenset[str], frozenset[str]]:
    replica_specs = frozenset(each.version for each in entries if each.writes_replica_specs)
    return replica_specs, frozenset(each.version for each in entries if each.writes_form_field)


@lru_cache(maxsize=64)
def _authors(replica_specs: frozenset[str], form_field: frozenset[str]) -> SpecAuthors:
    """Return the one value that all jobs with these versions share."""
    return SpecAuthors(replica_specs, form_field)
