"""The gang of a job: its members, its PodGroup, and the labels and annotations of its pods.

Pure. A replica that is created last is not counted as a member, since the others would wait for it;
the PodGroup reserves its requests.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from dlctl.api.job import Job, ReplicaSpec
from dlctl.api.json_types import JSON
from dlctl.api.meta import LAST_APPLIED_ANNOTATION, Resource
from dlctl.api.objects.dependents import Dependent, DependentObject
from dlctl.api.objects.pod_groups import (
    COSCHEDULING_POD_GROUPS,
    POD_GROUP_LABEL,
    VOLCANO_POD_GROUPS,
    pod_group_resource,
)
from dlctl.api.quantities import QuantityError, sum_quantities
from dlctl.errors import InvalidJobError, truncated
from dlctl.frameworks.dljob import DLJob
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ReplicaState

# Values of other priority classes are unknown here.
_SYSTEM_PRIORITIES: Final[Mapping[str, int]] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_MAX_CAUSE_CHARS: Final = 600
_DEFAULT_QUEUE: Final = "default"
# Many more than any node has.
_MAX_RESOURCES: Final = 256
# In these phases Volcano has not yet decided whether there is room for the gang.
_PENDING_PHASES: Final = frozenset({"", "Pending"})
_NOT_STARTED: Final = frozenset(
    {ReplicaState.MISSING, ReplicaState.FAILED_RETRYABLE, ReplicaState.PENDING}
)


@attrs.frozen
class Gang:
    """The replicas of one job that the cluster's scheduler starts together or not at all."""

    job: Job
    framework: DLJob

    @property
    def pod_group_resource(self) -> Resource | None:
        """The PodGroup resource of the gang; None if there is no gang."""
        if not self.job.is_gang_scheduled or not any(spec.replicas for spec in self._members):
            return None
        return pod_group_resource(self.job.defaults.gang_scheduler_name)

    def min_member(self, finished_count: int = 0) -> int:
        """Return how many pods start together, at most the number of remaining members."""
        members = sum(spec.replicas for spec in self._members) - finished_count
        wanted = self.job.run_policy.scheduling_policy.min_available
        if wanted is None:
            wanted = sum(self.framework.min_available(spec.type) for spec in self._members)
        return max(1, min(wanted, members))

    def finished_count(self, observed: Observed) -> int:
        """Return how many members have succeeded, if others have yet to start.

        The coscheduling plugin does not count finished pods and would wait for them indefinitely.
        """
        if self.pod_group_resource != COSCHEDULING_POD_GROUPS:
            return 0
        types = {spec.type for spec in self._members}
        members = [o for o in observed.replicas if o.replica.type in types]
        if not any(one.state in _NOT_STARTED for one in members):
            return 0
        # The plugin goes by the phase: a pod with a running sidecar still counts.
        return sum(
            one.state is ReplicaState.SUCCEEDED and (one.pod is None or one.pod.phase.finished)
            for one in members
        )

    def pod_group(self, finished_count: int = 0) -> Dependent | None:
        """Return the PodGroup, with ``minMember`` reduced for finished members.

        :raises InvalidJobError: if its minResources cannot be computed from malformed quantities.
        """
        if self.pod_group_resource is None:
            return None
        # kubectl's is much larger than the rest, and irrelevant on a PodGroup.
        kept = {n: v for n, v in self.job.annotations.items() if n != LAST_APPLIED_ANNOTATION}
        return Dependent(
            self.pod_group_resource,
            self.job.key.name,
            {"metadata": {"annotations": kept}, "spec": self._spec(finished_count)},
            optional_fields=("minResources", "priorityClassName", "scheduleTimeoutSeconds"),
            create_only_fields=("queue",),
        )

    def hold_reason(self, observed: Observed) -> str:
        """Return why the gang may not start yet, or an empty string."""
        if self.pod_group_resource != VOLCANO_POD_GROUPS:
            return ""
        named = (
            obj
            for obj in observed.children.dependents.get(self.pod_group_resource, ())
            if obj.metadata.name == self.job.key.name and not obj.metadata.is_terminating
        )
        group = next(named, None)
        if _phase(group) in _PENDING_PHASES:
            scheduler = self.job.defaults.gang_scheduler_name
            return f"PodGroup {self.job.key} is not admitted by {scheduler}{_cause(group)}"
        return ""

    @property
    def other_scheduler_types(self) -> list[str]:
        """The types whose pods the user assigns to another scheduler, without the gang."""
        if self.pod_group_resource is None or self.framework.overrides_scheduler:
            return []
        named = {spec.type: spec.template["spec"].get("schedulerName") for spec in self._members}
        named = {type_: own or self.job.scheduler_name for type_, own in named.items()}
        return [
            t for t, own in named.items() if own not in ("", self.job.defaults.gang_scheduler_name)
        ]

    def add_to_pod(self, pod: JSON, spec: ReplicaSpec) -> JSON:
        """Return a pod with the scheduler name and the link to its PodGroup."""
        if self.pod_group_resource is None:
            return pod
        named = "" if self.framework.overrides_scheduler else pod["spec"].get("schedulerName")
        scheduler = named or self.job.defaults.gang_scheduler_name
        joined = {**pod, "spec": {**pod["spec"], "schedulerName": scheduler}}
        metadata, name = pod["metadata"], self.job.key.name
        if self.pod_group_resource == VOLCANO_POD_GROUPS:
            # Volcano creates a separate PodGroup in the default queue for pods without the
            # annotation.
            own = {"scheduling.k8s.io/group-name": name, "volcano.sh/task-spec": spec.type}
            annotations = {**(metadata.get("annotations") or {}), **own}
            return {**joined, "metadata": {**metadata, "annotations": annotations}}
        if spec.create_last:
            return joined
        labels = {**metadata["labels"], POD_GROUP_LABEL: name}
        return {**joined, "metadata": {**metadata, "labels": labels}}

    @property
    def _members(self) -> list[ReplicaSpec]:
        return [spec for spec in self.job.replica_specs if not spec.create_last]

    def _spec(self, finished_count: int) -> JSON:
        policy, min_member = self.job.run_policy.scheduling_policy, self.min_member(finished_count)
        spec: JSON = {"minMember": min_member}
        resources = policy.min_resources
        if resources is None:
            resources = self._min_resources(min_member)
        if resources:
            spec["minResources"] = dict(resources)
        if self.pod_group_resource == VOLCANO_POD_GROUPS:
            spec["queue"] = policy.queue or _DEFAULT_QUEUE
            if policy.priority_class:
                spec["priorityClassName"] = policy.priority_class
        elif policy.schedule_timeout_s is not None:
            spec["scheduleTimeoutSeconds"] = policy.schedule_timeout_s
        return spec

    def _min_resources(self, remaining: int) -> JSON:
        """Return the requests of the top ``remaining`` members and of replicas created last."""
        counted = [(spec, spec.replicas) for spec in self.job.replica_specs if spec.create_last]
        # Sorting is stable: specs of equal priority keep the framework's order.
        for spec in sorted(self._members, key=_priority, reverse=True):
            counted.append((spec, min(spec.replicas, remaining)))
            remaining -= counted[-1][1]
        amounts: dict[str, list[tuple[str, int]]] = {}
        for spec, count in counted:
            for name, amount in _requests(spec) if count else ():
                amounts.setdefault(name, []).append((str(amount), count))
                if len(amounts) > _MAX_RESOURCES:
                    message = f"a gang requests at most {_MAX_RESOURCES} different resources"
                    raise InvalidJobError(message, field="resources.requests")
        return {name: _sum(name, parts) for name, parts in sorted(amounts.items())}


def _phase(group: DependentObject | None) -> str:
    return str((group.decoded_status() if group else {}).get("phase") or "")


def _cause(group: DependentObject | None) -> str:
    """Return why Volcano finds no room for a gang, as it says in a condition of the PodGroup."""
    conditions = (group.decoded_status() if group else {}).get("conditions")
    for condition in conditions if isinstance(conditions, list) else ():
        if isinstance(condition, Mapping) and condition.get("type") == "Unschedulable":
            if condition.get("status") == "True" and (message := condition.get("message")):
                return f": {truncated(str(message), _MAX_CAUSE_CHARS)}"
    return ""


def _priority(spec: ReplicaSpec) -> int:
    pod_spec = spec.template["spec"]
    stated = pod_spec.get("priority")
    if isinstance(stated, int):
        return stated
    return _SYSTEM_PRIORITIES.get(str(pod_spec.get("priorityClassName")), 0)


def _requests(spec: ReplicaSpec) -> Iterator[tuple[str, Any]]:
    for container in spec.template["spec"]["containers"]:
        resources = _mapping(container.get("resources"))
        limits, requests = _mapping(resources.get("limits")), _mapping(resources.get("requests"))
        # As in the API server: requests default to limits.
        yield from {**limits, **requests}.items()


def _sum(name: str, parts: Sequence[tuple[str, int]]) -> str:
    try:
        return sum_quantities(parts)
    except QuantityError as error:
        message = f"cannot be summed up for the gang: {error}; use a plain quantity such as 500m"
        raise InvalidJobError(message, field=f"resources.requests[{name}]") from error


def _mapping(value: Any) -> Mapping[str, Any]:
    # Malformed values are left to the API server, which rejects the pod.
    return value if isinstance(value, Mapping) else {}
