"""The objects a job consists of, rendered: pods and services as they are sent to the server.

Pure, and the same for ``dlctl render`` as for the controller.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from dlctl.api.job import Job, Replica, ReplicaSpec
from dlctl.api.meta import MANAGED_BY, MANAGED_BY_LABEL, owner_reference
from dlctl.dialects.dialect import Dialect
from dlctl.frameworks.dljob import DLJob

JSON = dict[str, Any]


@attrs.frozen
class Renderer:
    """Renders the children of one job, as its dialect names and its framework equips them."""

    job: Job
    dialect: Dialect
    framework: type[DLJob]

    def replicas_with_service(self) -> Iterator[Replica]:
        """Yield the replicas that others dial by name: the chief, or all where the API says so."""
        if self.job.local:
            return
        if self.dialect.service_per_replica:
            yield from self.job.replicas
        else:
            yield self.framework.default_chief()

    def service(self, replica: Replica) -> JSON:
        """Render the headless service that gives a replica its host name."""
        labels = self._labels(replica)
        spec = self.job.spec_of(replica.type)
        port = spec.port if spec else self.framework.default_port()
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": self._metadata(replica, labels),
            "spec": {
                "clusterIP": "None",
                # Replicas look each other up while they start, long before they are ready.
                "publishNotReadyAddresses": True,
                "selector": dict(self.dialect.labels(self.job, replica)),
                "ports": [{"name": self.dialect.port_name, "port": port}],
            },
        }

    def pod(self, replica: Replica) -> JSON:
        """Render the pod of a replica from the user's template."""
        spec = self.job.spec_of(replica.type)
        if spec is None:
            raise LookupError(f"{self.job.key} lists no {replica.type}")
        template = spec.template
        template_meta = template.get("metadata") or {}
        labels = {**(template_meta.get("labels") or {}), **self._labels(replica)}
        metadata = self._metadata(replica, labels)
        if template_meta.get("annotations"):
            metadata["annotations"] = dict(template_meta["annotations"])
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": self._pod_spec(template["spec"], spec, replica),
        }

    def _pod_spec(self, given: Mapping[str, Any], spec: ReplicaSpec, replica: Replica) -> JSON:
        pod_spec = dict(given)
        # A container that exits 0 is done: Always, also as the default, would run it again.
        if pod_spec.get("restartPolicy") != "Never":
            pod_spec["restartPolicy"] = "OnFailure"
        if self.job.scheduler_name:
            pod_spec["schedulerName"] = self.job.scheduler_name
        environment = self._environment(spec, replica)
        pod_spec["containers"] = [
            self._container(container, environment) if trains else container
            for container, trains in self._containers(given["containers"])
        ]
        volumes = self.framework.container_properties.get("volumes") or []
        if volumes:
            added = [{"name": _volume_name(path), "emptyDir": {}} for path in volumes]
            pod_spec["volumes"] = [*(given.get("volumes") or []), *added]
        return pod_spec

    def _containers(self, containers: Sequence[JSON]) -> Iterator[tuple[JSON, bool]]:
        # The framework's container alone gets the environment; without one, nobody can tell
        # which container trains, so all do.
        name = self.framework.container_name()
        named = any(container.get("name") == name for container in containers)
        for container in containers:
            yield container, not named or container.get("name") == name

    def _container(self, given: JSON, environment: Mapping[str, str]) -> JSON:
        container = dict(given)
        env = list(given.get("env") or [])
        own = {variable.get("name") for variable in env}
        added = [{"name": n, "value": v} for n, v in environment.items() if n not in own]
        if env or added:
            container["env"] = [*env, *added]
        volumes = self.framework.container_properties.get("volumes") or []
        if volumes:
            mounts = list(given.get("volumeMounts") or [])
            taken = {mount.get("mountPath") for mount in mounts}
            free = [path for path in volumes if path not in taken]
            mounts += [{"name": _volume_name(path), "mountPath": path} for path in free]
            container["volumeMounts"] = mounts
        return container

    def _environment(self, spec: ReplicaSpec, replica: Replica) -> Mapping[str, str]:
        if self.job.local:
            return {}
        variables = self.framework(self.job).get_environment_variables(spec, replica.index)
        return {**variables, **self.dialect.extra_environment}

    def _labels(self, replica: Replica) -> JSON:
        return {**self.dialect.labels(self.job, replica), MANAGED_BY_LABEL: MANAGED_BY}

    def _metadata(self, replica: Replica, labels: JSON) -> JSON:
        job = self.job
        return {
            "name": job.child_name(replica),
            "namespace": job.key.namespace,
            "labels": labels,
            "ownerReferences": [owner_reference(job.resource, name=job.key.name, uid=job.uid)],
        }


def training_container(framework: type[DLJob], spec: ReplicaSpec) -> str:
    """Return the name of the container whose exit is the replica's."""
    names = [container.get("name") for container in spec.template["spec"]["containers"]]
    name = framework.container_name()
    return name if name in names else str(names[0])


def _volume_name(path: str) -> str:
    return "dl-" + re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-")
