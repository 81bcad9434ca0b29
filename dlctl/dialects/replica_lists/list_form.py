"""The names and defaults in which the operators of the list form differ."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.api.policies.run_policy import CleanPodPolicy
from dlctl.dialects.replica_lists.image_server import ImageServer
from dlctl.dialects.status.replica_map_status import ReplicaTypeNames
from dlctl.frameworks.dljob import DLJob


class StorageSchema(Protocol):
    """The schemas of a kind's own fields in spec."""

    @property
    def spec_properties(self) -> Mapping[str, JSON]: ...
    @property
    def list_properties(self) -> Mapping[str, JSON] | None: ...
    @property
    def v1_properties(self) -> Mapping[str, JSON]: ...


class StorageKind(ReplicaTypeNames, Protocol):
    """A kind of Kubeflow that stores jobs of the list form beside those of its own map form."""

    @property
    def replica_specs_field(self) -> str: ...
    @property
    def schema(self) -> StorageSchema: ...


@attrs.frozen(kw_only=True)
class ListForm:
    """The list form of one API group."""

    framework: type[DLJob]
    # The label, without a value, of all children of the group's jobs.
    group_label: str
    # Begins the names that carry the framework's: ``mx`` in ``mxImage``.
    field_prefix: str
    # The field of an entry with its replica type, in the spec and in the status.
    type_field: str
    status_type_field: str
    port_field: str
    port_name: str
    default_port: int
    default_type: str
    default_clean_pod_policy: CleanPodPolicy
    retry_policy: RetryPolicy
    # The kind of Kubeflow's v1 as which jobs are stored, so that its typed clients read them.
    storage_kind: StorageKind | None = None
    # In ``terminationPolicy``, the replica that decides the job, and its index there.
    chief_field: str = "chief"
    chief_index_field: str = "replicaIndex"
    # True if the fields of core/v1 may be written in any case, too.
    case_insensitive_templates: bool = True
    # The replica type that needs no template; None if each needs one.
    image_server: ImageServer | None = None
    # Fields of a spec that its operator ignored, and dlctl does.
    ignored_fields: Sequence[str] = ()
    # True if a type of which there is exactly one replica has to be listed.
    requires_singletons: bool = True
    # True if each replica has its own service, False if only the chief has one.
    service_per_replica: bool = False
    # Added to the framework's environment.
    extra_env: Mapping[str, str] = attrs.field(factory=dict)
