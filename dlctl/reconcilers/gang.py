"""The gang of a job: who is in it, what a scheduler is told of it, and what its pods carry.

Pure. A replica that is created last is not counted among those that start together, since the
others would wait for it; what it requests is kept free for it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from dlctl.api.companions import Companion, CompanionObject
from dlctl.api.gangs import GROUP_LABEL, PLUGIN_GROUPS, VOLCANO_GROUPS, pod_groups
from dlctl.api.job import Job, ReplicaSpec
from dlctl.api.meta import Resource
from dlctl.api.quantities import QuantityError, total
from dlctl.errors import InvalidJobError
from dlctl.frameworks.dljob import DLJob
from dlctl.reconcilers.observe import Observed, Situation

JSON = dict[str, Any]
# Of other classes the value is the cluster's to know.
_PRIORITIES: Final[Mapping[str, int]] = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_DEFAULT_QUEUE: Final = "default"
# Until then Volcano has not decided whether there is room for the gang.
_UNDECIDED: Final = frozenset({"", "Pending"})
_TO_START: Final = frozenset({Situation.MISSING, Situation.LOST, Situation.PENDING})
# Many times the size of the rest, and of no use to who reads a PodGroup.
_NOT_COPIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


@attrs.frozen
class Gang:
    """The replicas of one job that its cluster's scheduler starts together or not at all."""

    job: Job
    framework: DLJob

    @property
    def groups(self) -> Resource | None:
        """Where the scheduler is told of the gang; nothing if there is none."""
        if not self.job.ganged or not any(spec.replicas for spec in self._members):
            return None
        return pod_groups(self.job.defaults.gang_scheduler)

    def least(self, finished: int = 0) -> int:
        """Return how many pods are started together: never more than there will be."""
        members = sum(spec.replicas for spec in self._members) - finished
        wanted = self.job.run_policy.scheduling.least
        if wanted is None:
            wanted = sum(self.framework.least_replicas(spec.type) for spec in self._members)
        return max(1, min(wanted, members))

    def finished(self, observed: Observed) -> int:
        """Return how many of the gang are done, if others are yet to be started.

        The plugin does not count them, and would wait for them for ever.
        """
        if self.groups != PLUGIN_GROUPS:
            return 0
        types = {spec.type for spec in self._members}
        members = [o for o in observed.replicas if o.replica.type in types]
        if not any(one.situation in _TO_START for one in members):
            return 0
        # The plugin goes by the phase: a pod whose sidecar still runs takes its place.
        return sum(
            one.situation is Situation.SUCCEEDED and (one.pod is None or one.pod.phase.finished)
            for one in members
        )

    def companion(self, finished: int = 0) -> Companion | None:
        """Return the PodGroup, when so many are not to be waited for any more.

        :raises InvalidJobError: if it follows from amounts that are none.
        """
        if self.groups is None:
            return None
        kept = {n: v for n, v in self.job.annotations.items() if n != _NOT_COPIED}
        return Companion(
            self.groups,
            self.job.key.name,
            {"metadata": {"annotations": kept}, "spec": self._spec(finished)},
            optional=("minResources", "priorityClassName", "scheduleTimeoutSeconds"),
            first_only=("queue",),
        )

    def held(self, observed: Observed) -> str:
        """Return why no pod is to be made yet, or nothing."""
        if self.groups != VOLCANO_GROUPS:
            return ""
        named = (
            obj
            for obj in observed.companions.get(self.groups, ())
            if obj.metadata.name == self.job.key.name and not obj.metadata.terminating
        )
        if _phase(next(named, None)) in _UNDECIDED:
            return f"PodGroup {self.job.key} is not admitted by {self.job.defaults.gang_scheduler}"
        return ""

    @property
    def strangers(self) -> list[str]:
        """The types whose pods the user has given to another scheduler, which sees no gang."""
        if self.groups is None:
            return []
        named = {spec.type: spec.template["spec"].get("schedulerName") for spec in self._members}
        named = {type_: own or self.job.scheduler_name for type_, own in named.items()}
        return [t for t, own in named.items() if own not in ("", self.job.defaults.gang_scheduler)]

    def join(self, pod: JSON, spec: ReplicaSpec) -> JSON:
        """Return a pod with what brings it to the scheduler and into the gang."""
        if self.groups is None:
            return pod
        scheduler = pod["spec"].get("schedulerName") or self.job.defaults.gang_scheduler
        joined = {**pod, "spec": {**pod["spec"], "schedulerName": scheduler}}
        metadata, name = pod["metadata"], self.job.key.name
        if self.groups == VOLCANO_GROUPS:
            # Of a pod without it Volcano makes a gang by itself, in the default queue.
            own = {"scheduling.k8s.io/group-name": name, "volcano.sh/task-spec": spec.type}
            annotations = {**(metadata.get("annotations") or {}), **own}
            return {**joined, "metadata": {**metadata, "annotations": annotations}}
        if spec.made_last:
            return joined
        labels = {**metadata["labels"], GROUP_LABEL: name}
        return {**joined, "metadata": {**metadata, "labels": labels}}

    @property
    def _members(self) -> list[ReplicaSpec]:
        return [spec for spec in self.job.replica_specs if not spec.made_last]

    def _spec(self, finished: int) -> JSON:
        policy, least = self.job.run_policy.scheduling, self.least(finished)
        spec: JSON = {"minMember": least}
        resources = dict(policy.resources) or self._resources(least)
        if resources:
            spec["minResources"] = resources
        if self.groups == VOLCANO_GROUPS:
            spec["queue"] = policy.queue or _DEFAULT_QUEUE
            if policy.priority_class:
                spec["priorityClassName"] = policy.priority_class
        elif policy.timeout_s is not None:
            spec["scheduleTimeoutSeconds"] = policy.timeout_s
        return spec

    def _resources(self, left: int) -> JSON:
        """Return what the first pods request that make up the least of the gang, and the last."""
        counted = [(spec, spec.replicas) for spec in self.job.replica_specs if spec.made_last]
        # Sorting is stable: what is of equal rank stays in the order of the framework.
        for spec in sorted(self._members, key=_priority, reverse=True):
            counted.append((spec, min(spec.replicas, left)))
            left -= counted[-1][1]
        amounts: dict[str, list[tuple[str, int]]] = {}
        for spec, count in counted:
            for name, amount in _requests(spec) if count else ():
                amounts.setdefault(name, []).append((str(amount), count))
        try:
            return {name: total(parts) for name, parts in sorted(amounts.items())}
        except QuantityError as error:
            message = f"cannot be summed up for the gang: {error}"
            raise InvalidJobError(message, field="resources of the containers") from error


def _phase(group: CompanionObject | None) -> str:
    return str(((group.status if group else None) or {}).get("phase") or "")


def _priority(spec: ReplicaSpec) -> int:
    pod_spec = spec.template["spec"]
    stated = pod_spec.get("priority")
    if isinstance(stated, int):
        return stated
    return _PRIORITIES.get(str(pod_spec.get("priorityClassName")), 0)


def _requests(spec: ReplicaSpec) -> Iterator[tuple[str, Any]]:
    for container in spec.template["spec"]["containers"]:
        resources = _object(container.get("resources"))
        limits, requests = _object(resources.get("limits")), _object(resources.get("requests"))
        # As the server has it: so much is requested of what is limited, unless it is said.
        yield from {**limits, **requests}.items()


def _object(value: Any) -> Mapping[str, Any]:
    # What is of another form is the server's to refuse, with the pod.
    return value if isinstance(value, Mapping) else {}
