import os
import subprocess
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from dlctl.api.json_types import JSON
from dlctl.options import Options
from tests.manifests.installed import effective, rules
from tests.manifests.rendered import FOLDER, Render
from tests.support.command_line import Dlctl

OVERLAYS = ["cluster-wide", "monitoring", "single-namespace"]
CLUSTER = os.environ.get("CONTRACT_KUBECONFIG", "")


def violations(pod: JSON) -> list[str]:
    """Return the violations of the restricted Pod Security Standard, and of our own rules."""
    found = []
    if not pod["securityContext"].get("runAsNonRoot"):
        found.append("may run as root")
    if pod["securityContext"].get("seccompProfile") != {"type": "RuntimeDefault"}:
        found.append("no seccomp profile")
    found += [name for name in ("hostNetwork", "hostPID", "hostIPC", "volumes") if pod.get(name)]
    for container in pod["containers"]:
        context = container["securityContext"]
        if context.get("allowPrivilegeEscalation") is not False or context.get("privileged"):
            found.append("may gain privileges")
        if context.get("capabilities") != {"drop": ["ALL"]}:
            found.append("has capabilities")
        if not context.get("readOnlyRootFilesystem"):
            found.append("may write to its image")
    return found


def test_crds_are_current(dlctl: Dlctl) -> None:
    text = (FOLDER / "base" / "crds.yaml").read_text()
    assert text == dlctl("crds").out, "run `make manifests`"


def test_rendered_file_is_current(kustomize: Render) -> None:
    text = (FOLDER / "install.yaml").read_text()
    assert text == kustomize("cluster-wide").text, "run `make manifests`"


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_pods_obey_the_restricted_standard(kustomize: Render, overlay: str) -> None:
    assert violations(kustomize(overlay).pod_spec()) == []


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_nothing_is_granted_by_wildcard(kustomize: Render, overlay: str) -> None:
    assert [rule for rule in rules(kustomize(overlay)) if "*" in str(rule)] == []


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_secrets_can_be_created_and_not_read(kustomize: Render, overlay: str) -> None:
    granted = [
        rule["verbs"] for rule in rules(kustomize(overlay)) if "secrets" in rule["resources"]
    ]
    assert granted == [["create"]]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_binding_names_an_existing_role_and_account(kustomize: Render, overlay: str) -> None:
    objects = kustomize(overlay)
    present = {(kind, key.namespace, key.name) for kind, key in objects.by_identity()}
    for binding in objects.of_kind("ClusterRoleBinding") + objects.of_kind("RoleBinding"):
        role, (account,) = binding["roleRef"], binding["subjects"]
        namespace = binding["metadata"].get("namespace", "")
        assert (role["kind"], namespace, role["name"]) in present
        assert (account["kind"], account["namespace"], account["name"]) in present


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_selector_selects_the_controller(kustomize: Render, overlay: str) -> None:
    objects = kustomize(overlay)
    deployment = objects.one("Deployment")["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    (spread,) = objects.pod_spec()["topologySpreadConstraints"]
    assert deployment["selector"]["matchLabels"] == labels
    assert objects.one("Service")["spec"]["selector"] == labels
    assert objects.one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels
    assert objects.one("NetworkPolicy")["spec"]["podSelector"]["matchLabels"] == labels
    assert spread["labelSelector"]["matchLabels"] == labels
    # Each revision by itself: what a rollout is about to remove takes no node from what it brings.
    assert spread["matchLabelKeys"] == ["pod-template-hash"]


def test_controller_takes_the_arguments_it_is_given(kustomize: Render) -> None:
    assert effective(kustomize("cluster-wide").container()) == Options(leader_elect=True)


def test_single_namespace_controller_watches_only_that_namespace(kustomize: Render) -> None:
    options = effective(kustomize("single-namespace").container())
    assert options == Options(leader_elect=True, namespace="metadata.namespace")


def test_lease_of_the_role_is_the_lease_of_the_controller(kustomize: Render) -> None:
    objects = kustomize("cluster-wide")
    narrowed = [rule for rule in rules(objects) if "resourceNames" in rule]
    assert [rule["resourceNames"] for rule in narrowed] == [
        [effective(objects.container()).leader_election_id]
    ]


def test_probes_and_service_use_the_served_port(kustomize: Render) -> None:
    objects = kustomize("cluster-wide")
    container = objects.container()
    (port,) = container["ports"]
    probes = [container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")]
    ports = {probe["port"] for probe in probes}
    assert f":{port['containerPort']}" == effective(container).bind_address
    assert ports == {port["name"]} == {objects.one("Service")["spec"]["ports"][0]["targetPort"]}


def test_startup_probe_allows_a_slow_start(kustomize: Render) -> None:
    probe = kustomize("cluster-wide").container()["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 120


def test_pod_grace_period_exceeds_the_controllers(kustomize: Render) -> None:
    grace_s = kustomize("cluster-wide").pod_spec()["terminationGracePeriodSeconds"]
    assert grace_s >= Options().graceful_shutdown_timeout_s + 10


def test_single_namespace_role_grants_nothing_outside_it(kustomize: Render) -> None:
    objects = kustomize("single-namespace")
    scoped = {key.namespace for kind, key in objects.by_identity() if not kind.startswith("Custom")}
    assert scoped == {"default"}


def test_single_namespace_role_equals_the_cluster_role_without_nodes(
    kustomize: Render,
) -> None:
    nodes, *rest = rules(kustomize("cluster-wide"))
    assert (nodes["resources"], nodes["verbs"]) == (["nodes"], ["list", "watch"])
    assert list(rules(kustomize("single-namespace"))) == rest
    assert not [rule for rule in rest if "nodes" in rule["resources"]]


@pytest.fixture
def restricted_namespace() -> Iterator[str]:
    """A namespace of the real cluster that only accepts restricted pods."""
    if not CLUSTER:
        pytest.skip("no real cluster: CONTRACT_KUBECONFIG is not set")
    name = f"restricted-{uuid.uuid4().hex[:8]}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    kubectl("create", "-f", "-", sent=namespace | {"metadata": {"name": name, "labels": labels}})
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


def kubectl(*arguments: str, sent: Any = None) -> subprocess.CompletedProcess[str]:
    command = ["kubectl", "--kubeconfig", CLUSTER, *arguments]
    text = yaml.safe_dump(sent)
    return subprocess.run(command, input=text, check=False, capture_output=True, text=True)


def test_restricted_namespace_accepts_the_pod(kustomize: Render, restricted_namespace: str) -> None:
    template = kustomize("cluster-wide").one("Deployment")["spec"]["template"]
    spec = {**template["spec"], "serviceAccountName": "default"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "dlctl"}, "spec": spec}
    in_there = ("--namespace", restricted_namespace)
    # The service account of a new namespace takes a moment.
    kubectl("create", "serviceaccount", "default", *in_there)
    done = kubectl("create", "--dry-run=server", *in_there, "-f", "-", sent=pod)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("overlay", ["cluster-wide", "single-namespace"])
def test_real_server_accepts_every_manifest(
    kustomize: Render, restricted_namespace: str, overlay: str
) -> None:
    for obj in kustomize(overlay).all():
        meta = dict(obj["metadata"])
        if "namespace" in meta:
            meta["namespace"] = restricted_namespace
        sent = {**obj, "metadata": meta}
        done = kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", sent=sent)
        # Other tests of this server have created some of the CRDs without applying them.
        said = [line for line in done.stderr.splitlines() if "last-applied" not in line]
        assert (done.returncode, said) == (0, [])
