"""A run that cannot start ends at once: what its pods refer to is missing."""

from typing import Any

import pytest

from tests.support.command_line import Dlctl, Written, script_job


def _worker(job: dict[str, Any]) -> dict[str, Any]:
    pod = job["spec"]["replicaSpecs"][-1]["template"]["spec"]
    assert isinstance(pod, dict)
    return pod


def _without_command(pod: dict[str, Any]) -> None:
    del pod["containers"][0]["command"]


def _volume(**source: Any) -> Any:
    return lambda pod: pod.update(volumes=[{"name": "v", **source}])


def _variable(**source: Any) -> Any:
    env = [{"name": "TOKEN", "valueFrom": source}]
    return lambda pod: pod["containers"][0].update(env=env)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        pytest.param(_without_command, "(--image python=PREFIX)", id="command"),
        pytest.param(
            _volume(configMap={"name": "nowhere"}),
            'volumes[0].configMap.name: configmap "nowhere" not found: add it to the manifests',
            id="ConfigMap of a volume",
        ),
        pytest.param(
            _volume(projected={"sources": [{"secret": {"name": "nowhere"}}]}),
            'volumes[0].projected.sources[0].secret.name: secret "nowhere" not found',
            id="projected Secret",
        ),
        pytest.param(
            _variable(secretKeyRef={"name": "nowhere", "key": "k"}),
            'env[0].valueFrom.secretKeyRef.name: secret "nowhere" not found',
            id="Secret of a variable",
        ),
        pytest.param(
            _variable(configMapKeyRef={"name": "there", "key": "tokn"}),
            'key "tokn" not found in configmap "there"; it has token',
            id="key",
        ),
        pytest.param(
            lambda pod: pod.update(serviceAccountName="robot"),
            'serviceAccountName: serviceaccount "robot" not found',
            id="service account",
        ),
        pytest.param(
            _volume(hostPath={"path": "/nowhere"}), "/nowhere does not exist", id="hostPath"
        ),
        pytest.param(
            _volume(persistentVolumeClaim={"claimName": "../Data"}),
            "volumes[0].persistentVolumeClaim.claimName: is '../Data', but no claim can have",
            id="claim",
        ),
        pytest.param(_volume(nfs={"server": "s", "path": "/"}), "volumes[0].nfs", id="volume type"),
    ],
)
def test_start_without_hope_ends_at_once_with_exit_code_1(
    dlctl: Dlctl, written: Written, spoil: Any, message: str
) -> None:
    job = script_job("")
    spoil(_worker(job))
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "there"}}
    done = dlctl("run", written(job, {**config, "data": {"token": "x"}}))
    assert done.code == 1
    assert message in done.err
    # Nothing was started.
    assert done.out == ""


def test_optional_references_may_be_missing(dlctl: Dlctl, written: Written) -> None:
    job = script_job("print('ready')")
    pod = _worker(job)
    pod["volumes"] = [{"name": "v", "secret": {"secretName": "nowhere", "optional": True}}]
    done = dlctl("run", written(job), "--timeout", "20")
    assert done.code == 0, done.err


QUEUE = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "LocalQueue", "metadata": {"name": "q"}}


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        pytest.param(
            QUEUE,
            "the cluster does not serve kind LocalQueue in kueue.x-k8s.io/v1beta1: leave it "
            "out here",
            id="another operator's",
        ),
        pytest.param(
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "board"}},
            "the cluster does not serve kind Deployment in apps/v1",
            id="Deployment",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "ConfigMaps", "metadata": {"name": "a"}},
            "the cluster does not serve kind ConfigMaps in v1; did you mean ConfigMap?",
            id="misspelt",
        ),
    ],
)
def test_object_that_the_cluster_does_not_serve_is_refused_before_it_starts(
    dlctl: Dlctl, written: Written, obj: Any, message: str
) -> None:
    path = written(obj, script_job(""))
    done = dlctl("run", path)
    assert (done.code, done.out) == (1, "")
    assert message in done.err
    checked = dlctl("check", path)
    assert checked.code == 0
    assert f"  dlctl run would refuse it: {message}" in checked.out


def test_object_of_a_definition_beside_it_is_served(dlctl: Dlctl, written: Written) -> None:
    names = {"kind": "LocalQueue", "plural": "localqueues"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "kueue.x-k8s.io", "names": names, "scope": "Namespaced", "versions": [version]}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "localqueues.kueue.x-k8s.io"},
        "spec": spec,
    }
    done = dlctl("run", written(crd, QUEUE, script_job("print('ready')")), "--timeout", "20")
    assert done.code == 0, done.err
