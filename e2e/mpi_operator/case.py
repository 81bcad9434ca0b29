"""What is compared: an MPIJob, and what happens to it, step by step."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from dlctl.api.json_types import JSON
from e2e.mpi_operator.observed import Observed

IMAGE: Final = "mpi:1"


@attrs.frozen
class Step:
    """One thing that happens to a job, and how it is called in the records."""

    name: str
    do: Callable[[Observed, str], Awaitable[None]]


@attrs.frozen
class Case:
    """A job, the steps after its creation, and objects that exist before."""

    job: JSON
    steps: Sequence[Step] = ()
    before: Sequence[JSON] = ()

    @property
    def name(self) -> str:
        name: str = self.job["metadata"]["name"]
        return name


def replicas(
    count: int | None = None,
    *,
    container: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    restart: str | None = None,
    **pod: Any,
) -> JSON:
    """Return a replica spec; ``pod`` are fields of the pod's spec."""
    main = {"name": "main", "image": IMAGE, **(container or {})}
    spec = {"containers": [main], **pod}
    template = {"spec": spec, **({"metadata": dict(metadata)} if metadata else {})}
    return {
        **({} if count is None else {"replicas": count}),
        **({} if restart is None else {"restartPolicy": restart}),
        "template": template,
    }


def launcher(count: int | None = None, **fields: Any) -> JSON:
    container = {"command": ["mpirun", "train"], **fields.pop("container", {})}
    return replicas(count, container=container, **fields)


def mpijob(
    name: str,
    workers: JSON | int | None = 2,
    launcher_: JSON | None = None,
    *,
    metadata: Mapping[str, Any] | None = None,
    run_policy: Mapping[str, Any] | None = None,
    **spec: Any,
) -> JSON:
    """Return an MPIJob; ``spec`` are fields of its spec, which replace those made here."""
    specs: JSON = {"Launcher": launcher_ or launcher()}
    if workers is not None:
        specs["Worker"] = replicas(workers) if isinstance(workers, int) else workers
    policy = {"runPolicy": dict(run_policy)} if run_policy is not None else {}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name, **(metadata or {})},
        "spec": {"mpiReplicaSpecs": specs, **policy, **spec},
    }
