"""Builders and assertions for tests of all of Kubeflow's kinds."""

from collections.abc import Mapping, Sequence

from dlctl.api.json_types import JSON
from dlctl.api.meta import CRDS, PODS, ObjectKey
from dlctl.dialects.kind import Kind
from tests.builders import kind_of, training_job
from tests.support.harness import ClusterHarness
from tests.support.outcomes import KEEPS_RUNNING, Outcome

Outcomes = dict[str, Sequence[Outcome]]
KINDS = ("TFJob", "PyTorchJob", "XGBoostJob", "PaddleJob", "JAXJob", "MXJob", "MPIJob")
# The chief of kinds whose success does not depend on workers alone.
CHIEFS = {"XGBoostJob": "Master", "MXJob": "Scheduler", "MPIJob": "Launcher"}


def only(kind: str) -> Sequence[Kind]:
    """Return a single kind: installing the CRDs of all takes long."""
    return [kind_of("kubeflow.org/v1", kind)]


def job_of(
    kind: str,
    counts: Mapping[str, int] | None = None,
    *,
    policy: str = "",
    run_policy: JSON | None = None,
) -> JSON:
    """Return a job with a restart policy for all replicas; three workers by default."""
    manifest = training_job(kind, **(counts or {"Worker": 3, **chief_of(kind)}))
    for entry in replica_specs(manifest).values():
        if policy:
            entry["restartPolicy"] = policy
    if run_policy is not None:
        manifest["spec"]["runPolicy"] = run_policy
    return manifest


def chief_of(kind: str) -> dict[str, int]:
    return {CHIEFS[kind]: 1} if kind in CHIEFS else {}


def failed_reason(kind: str) -> str:
    """Return the reason of a failure; one kind has a typing error that clients rely on."""
    return "MPIJobMPIJobFailed" if kind == "MPIJob" else f"{kind}Failed"


def replica_specs(manifest: JSON) -> JSON:
    spec = manifest["spec"]
    specs: JSON = next(spec[field] for field in spec if field.endswith("ReplicaSpecs"))
    return specs


def forever(*replicas: str) -> Outcomes:
    """Return outcomes of replicas that run until they are stopped; by default, of all chiefs."""
    chiefs = [f"{chief.lower()}-0" for chief in CHIEFS.values()]
    return dict.fromkeys(replicas or chiefs, (KEEPS_RUNNING,))


async def lift_rules(cluster: ClusterHarness, kind: Kind) -> None:
    """Accept jobs without validation, as under another operator's CRD."""
    cluster.require_embedded("other tests use the definitions")
    key = ObjectKey("", kind.resource.group_resource)
    definition = await cluster.user.get(CRDS, key, JSON)
    for version in definition["spec"]["versions"]:
        anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version["schema"] = {"openAPIV3Schema": anything}
    versions = {"spec": {"versions": definition["spec"]["versions"]}}
    await cluster.user.patch(CRDS, key, versions)


async def change(cluster: ClusterHarness, kind: str, spec: JSON, *, subresource: str = "") -> None:
    resource = kind_of("kubeflow.org/v1", kind).resource
    await cluster.user.patch(resource, cluster.key(), {"spec": spec}, subresource=subresource)


async def running(cluster: ClusterHarness) -> None:
    await cluster.until(lambda: bool(cluster.condition("Running")))


def conditions(cluster: ClusterHarness) -> list[tuple[str, str, str]]:
    """Return type, status and reason of all conditions, in order."""
    stated = cluster.status().get("conditions") or ()
    return [(c["type"], c["status"], c["reason"]) for c in stated]


def message(cluster: ClusterHarness, type_: str) -> str:
    stated = cluster.status().get("conditions") or ()
    return next((str(c["message"]) for c in stated if c["type"] == type_), "")


def phases(cluster: ClusterHarness) -> list[str]:
    """Return the phases of all pods, in the order of their names."""
    return [pod["status"]["phase"] for pod in cluster.objects(PODS)]
