"""How a kind's replica types are written, and what their replicas have by default."""

from collections.abc import Collection, Mapping, Sequence

import attrs

from dlctl.dialects.restart_policy import RestartPolicy


@attrs.frozen(kw_only=True)
class ReplicaRules:
    """The spellings and defaults of one kind's replica types, which are in lower case here."""

    # Former names of types.
    type_aliases: Mapping[str, str] = attrs.field(factory=dict)
    # Spellings of types other than capitalized.
    type_names: Mapping[str, str] = attrs.field(factory=dict)
    # The restart policy of replicas without one.
    default_restart_policy: str = "Never"
    # Other default restart policies, by type.
    restart_policy_by_type: Mapping[str, str] = attrs.field(factory=dict)
    # The restart policies that replicas may have.
    restart_policies: Sequence[str] = tuple(policy.value for policy in RestartPolicy)
    # Replica counts by type, where the default is not 1.
    default_counts: Mapping[str, int] = attrs.field(factory=dict)
    # Types with a single replica, whose name has no index.
    unindexed_types: Collection[str] = ()
    # Types whose pods are gated until all other replicas run.
    gated_types: Collection[str] = ()

    def default_policy(self, replica_type: str) -> str:
        """Return the restart policy of replicas of a type without one."""
        return self.restart_policy_by_type.get(replica_type, self.default_restart_policy)
