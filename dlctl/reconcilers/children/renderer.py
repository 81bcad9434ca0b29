"""Renders the objects of a job: pods, services and dependents in wire format.

Pure, and shared by ``dlctl render`` and the controller.
"""

import hashlib
import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import attrs

from dlctl.api.job import LAUNCHER_REPLICA, Job, Replica, ReplicaSpec
from dlctl.api.json_types import JSON
from dlctl.api.meta import MANAGED_BY, MANAGED_BY_LABEL, ROLES, owner_reference
from dlctl.api.objects.dependents import Dependent
from dlctl.api.objects.pods import AVOIDED_NODES, PLACEMENT_HASH, WORKERS_RUNNING_GATE
from dlctl.dialects.dialect import Dialect
from dlctl.errors import InvalidJobError
from dlctl.frameworks.dljob import DLJob
from dlctl.reconcilers.children.avoided_nodes import AvoidedNode, with_avoided_nodes
from dlctl.reconcilers.children.dependents import hash_annotations
from dlctl.reconcilers.children.desired import Desired
from dlctl.reconcilers.children.gang import Gang
from dlctl.reconcilers.children.placement import placement_hash
from dlctl.reconcilers.children.security_context import with_security_context
from dlctl.reconcilers.children.termination_messages import with_termination_messages
from dlctl.reconcilers.content_errors import FrameworkValueError
from dlctl.reconcilers.launcher_job import manifests
from dlctl.reconcilers.observe import Observed
from dlctl.reconcilers.observed_replica import ReplicaState
from dlctl.reconcilers.restart_attempts import restart_attempt_labels, restart_environment

# Linux allows 32 pages per argument or variable, including its name, "=" and the final zero byte.
MAX_VARIABLE_BYTES: Final = 32 * 4096 - 1
# Of the paths in names of volumes, which have 63 characters at most.
_MAX_PATH_CHARS: Final = 40


def _avoid_none() -> Sequence[AvoidedNode]:
    return ()


@attrs.frozen
class Renderer:
    """Renders the children of one job, named by its dialect and set up by its framework."""

    job: Job
    dialect: Dialect
    # Asked only for pods that are created.
    choose_avoided: Callable[[], Sequence[AvoidedNode]] = _avoid_none

    @cached_property
    def framework(self) -> DLJob:
        return self.dialect.framework(self.job)

    @cached_property
    def avoided_nodes(self) -> Sequence[AvoidedNode]:
        """The nodes that new pods avoid."""
        return self.choose_avoided()

    @property
    def gang(self) -> Gang:
        return Gang(self.job, self.framework)

    def desired(self, observed: Observed, *, create_launcher: bool = True) -> Desired:
        """Return the wanted objects of the job other than its pods."""
        running = [o.replica for o in observed.replicas if o.state is ReplicaState.RUNNING]
        present = observed.present
        return Desired(
            services=tuple(self.replicas_with_service()),
            publishes_not_ready_addresses=self.dialect.publishes_not_ready_addresses(self.job),
            dependents=tuple(self.dependents(running, self.gang.finished_count(observed), present)),
            idle_dependents=tuple(self._idle_dependents()),
            retained_resources=self.framework.retained_resources,
            hold_reason=self.gang.hold_reason(observed),
            create_launcher=create_launcher,
        )

    def dependents(
        self,
        running: Collection[Replica],
        finished_members: int = 0,
        present: Collection[Replica] | None = None,
    ) -> Iterator[Dependent]:
        """Yield the objects other than pods and services, given the running replicas.

        The gang does not wait for ``finished_members``. ``present`` are the replicas whose pods
        exist and are owned by the job; None means all.
        """
        pod_group = self.gang.pod_group(finished_members)
        if pod_group is not None:
            yield pod_group
        yield from self.framework.dependents(running, present)

    def fallback_desired(self, observed: Observed) -> Desired:
        """Return the wanted objects of a job whose spec is too incomplete to create anything.

        Its roles grant no access to pods that are gone, since other pods may get their names.
        """
        retained = self.dialect.framework.retained_resources
        # The membership of elastic workers is more reliable than a partially decoded spec.
        known = bool(self.job.replica_specs) and self.job.status.membership is None
        roles = tuple(self._roles(observed.present)) if known else ()
        return Desired(
            dependents=roles, idle_dependents=tuple(self._roles(())), retained_resources=retained
        )

    def _idle_dependents(self) -> Iterable[Dependent]:
        # The Job of a launcher refers to all of them, also while it is suspended.
        return self._roles(()) if self.job.launcher_job is None else self.framework.dependents(())

    def _roles(self, present: Collection[Replica]) -> Iterator[Dependent]:
        """Yield the retained roles, given the existing pods."""
        if ROLES in self.framework.retained_resources:
            # Roles come before everything that refers to them.
            found = self.framework.dependents((), present)
            yield from itertools.takewhile(lambda one: one.resource == ROLES, found)

    def replicas_with_service(self) -> Iterator[Replica]:
        """Yield a replica of each service: the chief, or all if the API requires it.

        If the replicas share one service, the first stands for it.
        """
        if self.job.is_local or not self.dialect.has_services:
            return
        if self.job.shares_service:
            yield from itertools.islice(self.job.replicas, 1)
        elif self.dialect.service_per_replica:
            without_service = self.dialect.types_without_service
            yield from (r for r in self.job.replicas if r.type not in without_service)
        else:
            yield self.dialect.framework.default_chief()

    def service(self, replica: Replica) -> JSON:
        """Render the headless service that provides a replica's DNS name, or those of all replicas.

        :raises InvalidJobError: if its pod could not start.
        """
        replica_spec = self._spec(replica)
        # Fails early for a job that is too large, so that nothing is created for it.
        self._environment(replica_spec, replica)
        selector = dict(self.dialect.labels(self.job, replica))
        if self.job.shares_service:
            of_replica = self.dialect.replica_labels
            selector = {n: value for n, value in selector.items() if n not in of_replica}
        spec: JSON = {"clusterIP": "None"}
        if self.dialect.publishes_not_ready_addresses(self.job):
            # Replicas resolve each other's names during start-up, before they are ready.
            spec["publishNotReadyAddresses"] = True
        spec["selector"] = selector
        if not self.job.shares_service:
            # Names resolve without ports, which may differ between types.
            spec["ports"] = [{"name": n, "port": port} for n, port in replica_spec.ports.items()]
        labels = self.dialect.service_labels(self.job, selector)
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": self._metadata(
                self.job.service_name(replica), {**labels, MANAGED_BY_LABEL: MANAGED_BY}
            ),
            "spec": spec,
        }

    def dependent(self, dependent: Dependent) -> JSON:
        """Render a dependent."""
        own = dependent.body.get("metadata") or {}
        labels = {**(own.get("labels") or {}), MANAGED_BY_LABEL: MANAGED_BY}
        metadata = self._metadata(dependent.name, labels)
        metadata["annotations"] = hash_annotations(dependent.body)
        return {
            "apiVersion": dependent.resource.api_version,
            "kind": dependent.resource.kind,
            **dependent.body,
            "metadata": metadata,
        }

    def pod(self, replica: Replica) -> JSON:
        """Render the pod of a replica from the user's template."""
        spec = self._spec(replica)
        template = spec.template
        template_meta = template.get("metadata") or {}
        labels = {
            **(template_meta.get("labels") or {}),
            **self._labels(replica),
            **self.dialect.pod_labels(self.job, replica),
            **restart_attempt_labels(self.job),
        }
        metadata = self._metadata(self.job.child_name(replica), labels)
        own = {PLACEMENT_HASH: placement_hash(template), **restart_attempt_labels(self.job)}
        metadata["annotations"] = {**(template_meta.get("annotations") or {}), **own}
        # Not the user's to set: pods that avoid nodes are replaced when their job gives that up.
        metadata["annotations"].pop(AVOIDED_NODES, None)
        if template_meta.get("finalizers"):
            metadata["finalizers"] = list(template_meta["finalizers"])
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": self._pod_spec(template["spec"], spec, replica),
        }
        return with_avoided_nodes(self.gang.add_to_pod(pod, spec), self.avoided_nodes)

    def launcher_job(self, *, suspended: bool) -> JSON:
        """Render the batch/v1 Job of the launcher.

        :raises LookupError: if the launcher is a pod of the job itself.
        """
        job = self.job
        if job.launcher_job is None:
            raise LookupError(f"the launcher of {job.key} has no Job")
        labels = {"app": job.key.name, MANAGED_BY_LABEL: MANAGED_BY, **restart_attempt_labels(job)}
        metadata = self._metadata(job.child_name(LAUNCHER_REPLICA), labels)
        # Its Job would keep avoiding nodes, even if none is left.
        pod = attrs.evolve(self, choose_avoided=_avoid_none).pod(LAUNCHER_REPLICA)
        return manifests.batch_job(metadata, job.launcher_job, pod, suspended=suspended)

    def _pod_spec(self, given: Mapping[str, Any], spec: ReplicaSpec, replica: Replica) -> JSON:
        pod_spec = dict(given)
        if self.job.scheduler_name:
            pod_spec["schedulerName"] = self.job.scheduler_name
        if self.job.shares_service:
            pod_spec["hostname"] = self.job.child_name(replica)
            pod_spec["subdomain"] = self.job.shared_service
        if self._is_gated(spec, given):
            gates = pod_spec.get("schedulingGates") or []
            pod_spec["schedulingGates"] = [*gates, {"name": WORKERS_RUNNING_GATE}]
        environment = self._environment(spec, replica)
        pod_spec["containers"] = [
            self._container(container, environment) if is_training else container
            for container, is_training in self._containers(given["containers"], spec)
        ]
        pod_spec = with_termination_messages(pod_spec, spec.container)
        volumes = self.framework.container_properties.get("volumes") or []
        if volumes:
            added = [{"name": _volume_name(path), "emptyDir": {}} for path in volumes]
            pod_spec["volumes"] = [*(given.get("volumes") or []), *added]
        pod_spec = dict(self.framework.mutate_pod_spec(pod_spec, replica))
        return with_security_context(pod_spec, given, spec.container)

    def _is_gated(self, spec: ReplicaSpec, given: Mapping[str, Any]) -> bool:
        """Return whether a gate holds a pod back: not in a gang, nor if the user sets its node."""
        if self.gang.pod_group_resource is not None:
            return False
        others = any(other.replicas for other in self.job.replica_specs if other is not spec)
        return spec.gated and others and not given.get("nodeName")

    def _containers(
        self, containers: Sequence[JSON], spec: ReplicaSpec
    ) -> Iterator[tuple[JSON, bool]]:
        # If no container has the framework's name, the training container is unknown.
        all_ = self.framework.sets_env_in_all_containers
        all_ = all_ or spec.container != self.framework.container_name()
        for container in containers:
            yield container, all_ or container.get("name") == spec.container

    def _container(self, given: JSON, environment: Mapping[str, Any]) -> JSON:
        container = dict(given)
        env = list(given.get("env") or [])
        user_names = {variable.get("name") for variable in env}
        if self.dialect.overrides_user_env:
            # Of several variables with the same name, the last one takes effect.
            user_names = set()
        added = [_variable(n, v) for n, v in environment.items() if n not in user_names]
        if env or added:
            container["env"] = [*env, *added]
        volumes = self.framework.container_properties.get("volumes") or []
        if volumes:
            mounts = list(given.get("volumeMounts") or [])
            mounted = {mount.get("mountPath") for mount in mounts}
            free = [path for path in volumes if path not in mounted]
            mounts += [{"name": _volume_name(path), "mountPath": path} for path in free]
            container["volumeMounts"] = mounts
        return container

    def _environment(self, spec: ReplicaSpec, replica: Replica) -> Mapping[str, Any]:
        if self.job.is_local:
            return restart_environment(self.job)
        method = self.framework.get_environment_variables
        variables = method(spec, replica.index)
        if problem := _environment_problem(variables):
            title = f"{type(self.framework).__name__}.get_environment_variables"
            raise FrameworkValueError(f"{title} {problem}", method)
        for name, value in variables.items():
            _check_size(name, value)
        return {**variables, **self.dialect.extra_env, **restart_environment(self.job)}

    def _labels(self, replica: Replica) -> JSON:
        return {**self.dialect.labels(self.job, replica), MANAGED_BY_LABEL: MANAGED_BY}

    def _metadata(self, name: str, labels: JSON) -> JSON:
        job = self.job
        return {
            "name": name,
            "namespace": job.key.namespace,
            "labels": labels,
            "ownerReferences": [owner_reference(job.resource, name=job.key.name, uid=job.uid)],
        }

    def _spec(self, replica: Replica) -> ReplicaSpec:
        spec = self.job.replica_spec(replica.type)
        if spec is None:
            raise LookupError(f"{self.job.key} lists no {replica.type}")
        return spec


def _environment_problem(variables: Any) -> str:
    """Return what is wrong with a framework's variables, or an empty string."""
    if not isinstance(variables, Mapping):
        return f"must return a mapping, not {type(variables).__name__}"
    for name, value in variables.items():
        if not isinstance(name, str) or not name:
            return f"returns the name {name!r}: use a string"
        if not isinstance(value, str | Mapping):
            fix = "use a string, or a mapping as valueFrom takes it"
            return f"returns a value of type {type(value).__name__} for {name}: {fix}"
    return ""


def _check_size(name: str, value: Any) -> None:
    size = len(name) + 1 + len(value.encode()) if isinstance(value, str) else 0
    if size > MAX_VARIABLE_BYTES:
        raise InvalidJobError(
            f"has too many replicas: the variable {name}, which lists all of them, has {size} "
            f"bytes in each pod, and Linux allows at most {MAX_VARIABLE_BYTES}: lower replicas, "
            "or give the job a shorter name",
            field="spec",
        )


def _variable(name: str, value: Any) -> JSON:
    return {"name": name, "value" if isinstance(value, str) else "valueFrom": value}


def _volume_name(path: str) -> str:
    """Return a DNS label, which differs from that of any other path."""
    label = re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-")[:_MAX_PATH_CHARS].strip("-")
    if "/" + label.replace("-", "/") != path:
        label += f"-{hashlib.sha256(path.encode()).hexdigest()[:8]}"
    return f"dl-{label}"
