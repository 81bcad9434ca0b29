import os
import subprocess
from operator import itemgetter
from pathlib import Path

import pytest
import yaml

from dlctl.api.json_types import JSON
from dlctl.options import Options
from tests.manifests.installed import effective, rules
from tests.manifests.rendered import FOLDER, Objects, Render

# The labels of a release and its manager.
OURS = {"app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "helm.sh/chart"}
LABELS = {"labels", "matchLabels", "selector"}


def substance(value: object, name: str = "") -> object:
    """Return the value without the labels that Helm's users expect, and without defaults."""
    if isinstance(value, dict):
        kept = {k: substance(v, k) for k, v in value.items() if k not in OURS}
        if name == "labels":
            kept.pop("app.kubernetes.io/name", None)
        if kept.get("imagePullPolicy") == "IfNotPresent":
            del kept["imagePullPolicy"]
        return {k: v for k, v in kept.items() if v not in ({}, None)}
    if isinstance(value, list):
        return [substance(item) for item in value]
    return value


def contents(objects: Objects) -> dict[object, object]:
    # Helm's users name the namespace, and it makes it.
    found = {key: substance(obj) for key, obj in objects.by_identity().items()}
    return {key: obj for key, obj in found.items() if key[0] != "Namespace"}


def environment(container: JSON) -> dict[str, str]:
    return {variable["name"]: variable["value"] for variable in container.get("env", ())}


def test_chart_passes_the_linter(helm: Render) -> None:
    command = ["helm", "lint", "--strict", str(FOLDER / "chart")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("overlay", "values"),
    [
        pytest.param("cluster-wide", [], id="cluster-wide"),
        pytest.param("monitoring", ["monitoring.enabled=true"], id="monitoring"),
    ],
)
def test_chart_and_overlay_install_the_same(
    helm: Render, kustomize: Render, overlay: str, values: list[str]
) -> None:
    assert contents(helm(*values)) == contents(kustomize(overlay))


def test_chart_for_one_namespace_is_the_overlay_for_one(helm: Render, kustomize: Render) -> None:
    chart, overlay = helm("singleNamespace=true"), kustomize("single-namespace")
    assert list(rules(chart)) == list(rules(overlay))
    assert chart.of_kind("ClusterRole") == chart.of_kind("ClusterRoleBinding") == []
    assert effective(chart.container()) == Options(leader_elect=True, namespace="dlctl-system")


def test_chart_and_component_grant_metrics_to_the_same_accounts(
    helm: Render, kustomize: Render, tmp_path: Path
) -> None:
    def relative(*parts: str) -> str:
        return os.path.relpath(FOLDER.joinpath(*parts), tmp_path)

    kustomization = {
        "resources": [relative("overlays", "cluster-wide")],
        "components": [relative("components", "metrics-authentication")],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    chart, overlay = helm("metricsAuthentication=true"), kustomize(tmp_path)
    assert contents(chart) == contents(overlay)
    assert effective(chart.container()).metrics_authentication


def test_settings_reach_the_controller(helm: Render) -> None:
    container = helm("settings.kube-api-burst=8", "settings.restart-backoff=2.5").container()
    assert effective(container) == Options(
        leader_elect=True, kube_api_burst=8, restart_backoff_s=2.5
    )


def test_list_of_a_setting_reaches_the_controller(helm: Render) -> None:
    container = helm("settings.enable-scheme={PyTorchJob,TFJob}").container()
    assert effective(container).enable_scheme == ("PyTorchJob", "TFJob")


def test_large_number_in_a_values_file_reaches_the_controller(helm: Render) -> None:
    # In JSON, as in a file, numbers are floats.
    chart = helm(json=["settings.max-avoided-nodes=2000000"])
    assert effective(chart.container()).max_avoided_nodes == 2_000_000


def test_lease_of_the_settings_is_the_one_that_may_be_taken(helm: Render) -> None:
    for release in ("dlctl", "second"):
        chart = helm(
            "settings.leader-election-id=shared",
            "settings.leader-election-namespace=leases",
            release=release,
        )
        options = effective(chart.container())
        assert options.leader_election_id == "shared"
        assert options.leader_election_namespace == "leases"
        (narrowed,) = [rule for rule in rules(chart) if "resourceNames" in rule]
        assert narrowed["resourceNames"] == ["shared"]
        election = {
            kind: {meta["namespace"]: meta["name"] for meta in map(itemgetter("metadata"), objects)}
            for kind in ("Lease", "Role", "RoleBinding")
            if (objects := chart.of_kind(kind))
        }
        name = f"{release}-election"
        assert election == {
            "Lease": {"leases": "shared"},
            "Role": {"leases": name},
            "RoleBinding": {"leases": name},
        }


@pytest.mark.parametrize(
    ("values", "ports", "probed"),
    [
        pytest.param([], {"metrics": 8080}, "metrics", id="default"),
        pytest.param(["settings.bind-address=:9090"], {"metrics": 9090}, "metrics", id="both"),
        pytest.param(
            ["settings.metrics-bind-address=:9090"],
            {"metrics": 9090, "health": 8080},
            "health",
            id="metrics elsewhere",
        ),
        pytest.param(
            ["settings.health-probe-bind-address=8081"],
            {"metrics": 8080, "health": 8081},
            "health",
            id="health elsewhere",
        ),
    ],
)
def test_probes_and_ports_follow_the_addresses(
    helm: Render, values: list[str], ports: dict[str, int], probed: str
) -> None:
    container = helm(*values).container()
    assert {port["name"]: port["containerPort"] for port in container["ports"]} == ports
    probes = [container[f"{probe}Probe"] for probe in ("startup", "liveness", "readiness")]
    assert {probe["httpGet"]["port"] for probe in probes} == {probed}
    options = effective(container)
    addresses = {"metrics": options.metrics_address, "health": options.health_address}
    listening = {name: int(each.rpartition(":")[2]) for name, each in addresses.items()}
    assert listening == {"health": ports["metrics"], **ports}


@pytest.mark.parametrize(
    ("value", "ports", "is_probed"),
    [
        pytest.param('settings.metrics-bind-address="0"', {"health": 8080}, True, id="metrics"),
        pytest.param("settings.metrics-bind-address=0", {"health": 8080}, True, id="number"),
        pytest.param(
            'settings.health-probe-bind-address="0"', {"metrics": 8080}, False, id="health"
        ),
        pytest.param('settings.bind-address=""', {}, False, id="both"),
    ],
)
def test_disabled_endpoint_has_neither_port_nor_probe(
    helm: Render, value: str, ports: dict[str, int], is_probed: bool
) -> None:
    container = helm(json=[value]).container()
    assert {port["name"]: port["containerPort"] for port in container.get("ports", ())} == ports
    probes = [probe for probe in container if probe.endswith("Probe")]
    assert bool(probes) is is_probed
    options = effective(container)
    assert bool(options.metrics_address) is ("metrics" in ports)
    assert bool(options.health_address) is is_probed


@pytest.mark.parametrize("value", ["true", "TRUE", "1"])
def test_authentication_is_on_in_each_spelling_of_the_setting(helm: Render, value: str) -> None:
    chart = helm(json=[f'settings.metrics-authentication="{value}"'])
    assert effective(chart.container()).metrics_authentication
    assert list(rules(chart)) == list(rules(helm("metricsAuthentication=true")))


def test_authentication_by_the_setting_has_its_rights_too(helm: Render) -> None:
    by_setting, by_value = (
        helm(value)
        for value in ("settings.metrics-authentication=true", "metricsAuthentication=true")
    )
    assert list(rules(by_setting)) == list(rules(by_value))
    assert effective(by_setting.container()) == effective(by_value.container())


def test_release_of_another_name_has_its_own_lease(helm: Render) -> None:
    chart = helm(release="second")
    (narrowed,) = [rule for rule in rules(chart) if "resourceNames" in rule]
    assert effective(chart.container()).leader_election_id == "second"
    assert narrowed["resourceNames"] == ["second"]
    assert chart.one("Service")["spec"]["selector"]["app.kubernetes.io/instance"] == "second"


def test_optional_chart_values_reach_the_pods(helm: Render) -> None:
    spec = helm(
        "priorityClassName=high",
        "nodeSelector.disk=ssd",
        "tolerations[0].key=control",
        "imagePullSecrets[0].name=pull",
        "image.repository=here/dlctl",
        "image.tag=2",
        "affinity.nodeAffinity.key=value",
    ).pod_spec()
    assert spec["priorityClassName"] == "high"
    assert spec["nodeSelector"] == {"disk": "ssd"}
    assert spec["tolerations"] == [{"key": "control"}]
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    assert spec["containers"][0]["image"] == "here/dlctl:2"
    assert spec["affinity"] == {"nodeAffinity": {"key": "value"}}


@pytest.mark.parametrize("tag", ["20251126", '"1.10"'])
def test_tag_of_a_values_file_is_kept_as_written(helm: Render, tag: str) -> None:
    image = helm(json=[f"image.tag={tag}"]).container()["image"]
    assert image == "dlctl:" + tag.strip('"')


def test_parent_chart_may_enable_this_one(helm: Render) -> None:
    assert helm("enabled=true").text == helm().text


def test_labels_and_annotations_of_the_values_are_added_to_the_pods(helm: Render) -> None:
    (plain,), (changed,) = (
        helm(*values).of_kind("Deployment")
        for values in ((), ("podLabels.team=vision", "podAnnotations.mesh=none"))
    )
    added = changed["spec"]["template"]["metadata"]
    assert added["annotations"] == {"mesh": "none"}
    assert added["labels"] == {**plain["spec"]["template"]["metadata"]["labels"], "team": "vision"}
    assert changed["spec"]["selector"] == plain["spec"]["selector"]


def test_cluster_may_choose_the_user(helm: Render) -> None:
    chart = helm("podSecurityContext.runAsUser=null", "podSecurityContext.runAsGroup=null")
    context = chart.pod_spec()["securityContext"]
    assert context == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def test_setting_without_value_is_left_out(helm: Render) -> None:
    chart = helm("settings.restart-backoff=5", "settings.kube-api-burst=null")
    assert environment(chart.container()) == {"DLCTL_RESTART_BACKOFF": "5"}


@pytest.mark.parametrize(
    ("value", "named"),
    [
        pytest.param("setting.restart-backoff=5", "setting", id="misspelt"),
        pytest.param("image.name=mine", "name", id="misspelt in a part"),
        pytest.param("settings=null", "settings", id="missing"),
        pytest.param("replicas=two", "replicas", id="of another type"),
        pytest.param(r"podLabels.app\.kubernetes\.io/name=mine", "podLabels", id="selected by"),
    ],
)
def test_value_that_has_no_effect_is_refused_by_name(helm: Render, value: str, named: str) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        helm(value)
    assert "don't meet the specifications of the schema" in refused.value.stderr
    assert named in refused.value.stderr


def test_crds_can_be_kept_or_left_out(helm: Render) -> None:
    kept = helm("crds.keep=true").of_kind("CustomResourceDefinition")
    annotations = [crd["metadata"]["annotations"] for crd in kept]
    assert annotations == [{"helm.sh/resource-policy": "keep"}] * len(kept)
    assert helm("crds.install=false").of_kind("CustomResourceDefinition") == []


def test_network_policy_can_be_left_out(helm: Render) -> None:
    assert helm("networkPolicy.enabled=false").of_kind("NetworkPolicy") == []
