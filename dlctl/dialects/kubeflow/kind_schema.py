"""The part of a kind's CustomResourceDefinition that other kinds do not have."""

from collections.abc import Mapping, Sequence

import attrs

from dlctl.api.json_types import JSON


@attrs.frozen(kw_only=True)
class KindSchema:
    """The fields, rules and printer columns of one of Kubeflow's kinds."""

    # The schemas of the kind's own fields in spec.
    spec_properties: Mapping[str, JSON] = attrs.field(factory=dict)
    # CEL rules of the spec, and of the replica specs in it.
    spec_rules: Sequence[JSON] = ()
    replica_rules: Sequence[JSON] = ()
    # The schemas and rules of the fields that v1 alone has.
    v1_properties: Mapping[str, JSON] = attrs.field(factory=dict)
    v1_rules: Sequence[JSON] = ()
    # Defaults of fields of the spec, and the restart policy of all replicas, in the older versions
    # alone. v1 is stored, and does not show the version: the server writes them into jobs.
    older_defaults: Mapping[str, str | int] = attrs.field(factory=dict)
    older_restart_policy: str = ""
    # The fields of the list form, beside the list itself, that v1 keeps; if None, it keeps all.
    list_properties: Mapping[str, JSON] | None = None
    # Fields of spec that it has only for other versions, with a version that they belong to.
    foreign_fields: Mapping[str, str] = attrs.field(factory=dict)
    # Fields of spec that old manifests have, and no operator has read.
    ignored_fields: Sequence[str] = ()
    # True if it requires replica specs; else rules do, for specs of the present form.
    requires_replica_specs: bool = True
    # True if the policies may also be in spec, where the predecessors of ``runPolicy`` had them.
    has_policies_in_spec: bool = True
    # True if ``kubectl get`` shows the age before the state.
    shows_age_first: bool = False
    # True if it shows the version that a job is meant in.
    shows_version: bool = False
