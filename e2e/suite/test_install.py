"""Every way to install dlctl: jobs run, and removing it leaves nothing behind.

It comes last: the installation shared by other tests is removed first.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dlctl.api.json_types import JSON
from e2e import install
from e2e.kubectl import Kubectl, KubectlError
from e2e.suite import jobs
from e2e.suite.namespaces import own_namespace

# Objects that clusters create and remove by themselves.
PASSING: Final = ("events", "events.events.k8s.io", "endpoints", "endpointslices.discovery.k8s.io")
LINES: Final = (
    'jsonpath={range .items[*]}{.kind} {.metadata.namespace} {.metadata.name}{"\\n"}{end}'
)
ENFORCED: Final = {
    "pod-security.kubernetes.io/enforce": "restricted",
    "pod-security.kubernetes.io/warn": "restricted",
}
CHART: Final = install.MANIFESTS / "chart"
# With the user of the Dockerfile, and nothing but a shell.
UNTIL_TOLD: Final = ["sh", "-c", "trap 'exit 0' TERM; sleep 600 & wait"]


def everything(kubectl: Kubectl) -> set[str] | None:
    """Return all objects that can be listed; None if a kind disappears meanwhile."""
    resources = kubectl("api-resources", "--verbs=list", "--output=name").split()
    asked = ",".join(name for name in resources if name not in PASSING)
    try:
        lines = kubectl("get", asked, "--all-namespaces", "--output", LINES).splitlines()
    except KubectlError as error:
        # The definition of an earlier installation was just deleted.
        if "(NotFound)" not in str(error):
            raise
        return None
    return {line for line in lines if not line.endswith(" kube-root-ca.crt")}


@contextmanager
def leaves_nothing_behind(kubectl: Kubectl) -> Iterator[None]:
    """Check that the block leaves the cluster unchanged."""
    before = kubectl.until(lambda: everything(kubectl), within_s=120, what="a list of everything")
    yield
    left = {"?"}

    def gone() -> bool:
        found = everything(kubectl)
        if found is None:
            return False
        left.clear()
        left.update(found - before)
        return not left

    with suppress(AssertionError):
        kubectl.until(gone, within_s=120, what="an end")
    assert left == set()


@pytest.fixture(scope="module", autouse=True)
def _vacant(cluster: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Remove the session's installation; its own teardown then has nothing to remove."""
    install.remove(cluster, install.kustomization(tmp_path_factory.mktemp("shared"), jobs.IMAGE))
    cluster.until(
        lambda: not any(name.startswith("namespace/e2e-") for name in names(cluster)),
        within_s=180,
        what="the end of the namespaces of other tests",
    )


def names(cluster: Kubectl) -> list[str]:
    return cluster("get", "namespaces", "--output=name").split()


def check_jobs_run(cluster: Kubectl) -> None:
    with own_namespace(cluster) as kubectl:
        kubectl.apply(jobs.mxjob("ok", jobs.replicas("WORKER", 1, ["true"])))
        assert jobs.ended(kubectl, "ok", within_s=120)["phase"] == "Done"
        # Before the CRDs: deleting a namespace would otherwise have to find its jobs again.
        kubectl("delete", "namespace", kubectl.namespace, within_s=120)


def rendered() -> list[JSON]:
    """Return the contents of ``install.yaml``, with the image changed as documented."""
    text = (install.MANIFESTS / "install.yaml").read_text()
    return list(yaml.safe_load_all(re.sub("image: dlctl:.*", f"image: {jobs.IMAGE}", text)))


def older() -> list[JSON]:
    """Return an installation similar to that of an earlier version."""
    before = rendered()
    for obj in before:
        if obj["kind"] == "Deployment":
            obj["spec"]["template"]["spec"]["containers"][0]["args"].append("--restart-backoff=5")
        if obj["kind"] == "CustomResourceDefinition":
            version = obj["spec"]["versions"][0]
            del version["additionalPrinterColumns"]
            schema = version["schema"]["openAPIV3Schema"]
            schema["properties"]["status"] = {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
            }
    return before


def state(kubectl: Kubectl) -> JSON:
    """Return the objects of the one job, without fields that change over time."""
    (job,) = kubectl.items("mxjobs.kubeflow.org")
    pods = kubectl.items("pods")
    return {
        "job": (job["metadata"]["uid"], job["metadata"]["generation"], job["status"]),
        "pods": [(pod["metadata"]["uid"], pod["status"]["containerStatuses"]) for pod in pods],
    }


def test_kustomization_installs_into_a_restricted_namespace(
    cluster: Kubectl, tmp_path: Path
) -> None:
    folder = install.kustomization(tmp_path, jobs.IMAGE)
    with leaves_nothing_behind(cluster):
        meta = {"name": install.NAMESPACE, "labels": ENFORCED}
        strict: JSON = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
        cluster("create", "-f", "-", stdin=yaml.safe_dump(strict))
        cluster("apply", "-k", str(folder), "--warnings-as-errors")
        with install.installed(cluster, folder):
            check_jobs_run(cluster)


def test_install_yaml_installs_and_upgrades_under_running_jobs(cluster: Kubectl) -> None:
    with leaves_nothing_behind(cluster):
        cluster.apply(*older())
        install.rolled_out(cluster)
        with own_namespace(cluster) as kubectl:
            kubectl.apply(jobs.mxjob("runs", jobs.replicas("WORKER", 1, UNTIL_TOLD)))
            jobs.running(kubectl, "runs", within_s=120)
            before = state(kubectl)
            assert "STATE" not in kubectl("get", "mxjobs.kubeflow.org")

            cluster.apply(*rendered())
            install.rolled_out(cluster)
            cluster.until(lambda: install.leader(cluster), within_s=60, what="a leader")
            assert "STATE" in kubectl("get", "mxjobs.kubeflow.org")
            assert state(kubectl) == before

            (pod,) = kubectl.items("pods")
            kubectl("exec", pod["metadata"]["name"], "--", "sh", "-c", "kill 1")
            assert jobs.ended(kubectl, "runs")["phase"] == "Done"
        whole = yaml.safe_dump_all(rendered())
        cluster("delete", "-f", "-", "--timeout=120s", stdin=whole, within_s=125)


def test_single_namespace_overlay_uses_only_that_namespace(
    cluster: Kubectl, tmp_path: Path
) -> None:
    with own_namespace(cluster) as inside, own_namespace(cluster) as elsewhere:
        folder = install.kustomization(
            tmp_path, jobs.IMAGE, "single-namespace", namespace=inside.namespace
        )
        with leaves_nothing_behind(cluster):
            with install.installed(cluster, folder, inside.namespace):
                job = jobs.mxjob("ok", jobs.replicas("WORKER", 1, ["true"]))
                elsewhere.apply(job)
                inside.apply(job)
                assert jobs.ended(inside, "ok", within_s=120)["phase"] == "Done"
                assert jobs.status(elsewhere, "ok") == {}
                assert refusals(inside) == []


def refusals(kubectl: Kubectl) -> list[str]:
    """Return the controllers' log lines about forbidden requests."""
    text = kubectl("logs", "--selector", install.SELECTOR, "--tail=-1")
    # Not every rejection is about rights: older servers forbid streamed lists.
    return [line for line in text.splitlines() if "is forbidden: User" in line]


def operator_kind(kind: str) -> JSON:
    """Return a minimal CRD of the Prometheus operator."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    called = {"kind": kind, "plural": f"{kind.lower()}s"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.monitoring.coreos.com"},
        "spec": {
            "group": "monitoring.coreos.com",
            "names": called,
            "scope": "Namespaced",
            "versions": [version],
        },
    }


@pytest.fixture
def _operator(cluster: Kubectl) -> Iterator[None]:
    """The kinds of the Prometheus operator, unless they are installed."""
    present = cluster("get", "crds", "--output=name")
    definitions = [operator_kind(kind) for kind in ("ServiceMonitor", "PrometheusRule")]
    made = [d for d in definitions if d["metadata"]["name"] not in present]
    if made:
        cluster.apply(*made)
    yield
    for definition in made:
        cluster("delete", "crd", definition["metadata"]["name"])


@pytest.mark.usefixtures("_operator")
def test_prometheus_operator_accepts_the_monitoring_manifests(
    cluster: Kubectl, tmp_path: Path
) -> None:
    folder = install.kustomization(
        tmp_path, jobs.IMAGE, "monitoring", replicas=[{"name": "dlctl", "count": 0}]
    )
    with leaves_nothing_behind(cluster):
        cluster("apply", "-k", str(folder))
        inside = cluster.within(install.NAMESPACE)
        for resource in ("servicemonitor", "prometheusrule", "configmap/dlctl-dashboard"):
            assert inside("get", resource, "--output=name").split()
        install.remove(cluster, folder)


def helm(*args: str) -> str:
    program = shutil.which("helm")
    if program is None:
        pytest.skip("helm is not there")
    return subprocess.run(
        [program, *args], check=True, text=True, stdout=subprocess.PIPE, timeout=150
    ).stdout


def test_chart_installs_upgrades_and_uninstalls_completely(cluster: Kubectl) -> None:
    name, _, tag = jobs.IMAGE.rpartition(":")
    image = ("--set", f"image.repository={name},image.tag={tag}")
    with own_namespace(cluster) as inside:
        cluster("label", "namespace", inside.namespace, *(f"{k}={v}" for k, v in ENFORCED.items()))
        where = ("--namespace", inside.namespace, "--wait", "--timeout", "120s")
        with leaves_nothing_behind(cluster):
            helm("install", "dlctl", str(CHART), *where, *image)
            check_jobs_run(cluster)
            setting = ("--set", "settings.restart-backoff=5")
            helm("upgrade", "dlctl", str(CHART), *where, *image, *setting)
            deployment: Any = inside.get("deployment", "dlctl")
            (container,) = deployment["spec"]["template"]["spec"]["containers"]
            assert container["env"] == [{"name": "DLCTL_RESTART_BACKOFF", "value": "5"}]
            helm("uninstall", "dlctl", *where)
