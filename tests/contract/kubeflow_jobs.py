"""Jobs in the older versions of Kubeflow's kinds."""

from typing import Any

from dlctl.api.json_types import JSON
from tests.builders import template


def tfjob(version: str, spec: JSON) -> JSON:
    api_version = f"kubeflow.org/{version}"
    return {"apiVersion": api_version, "kind": "TFJob", "metadata": {"name": "a"}, "spec": spec}


def tf_entry(type_: str, replicas: int, **fields: Any) -> JSON:
    pod = {"template": template("tensorflow"), "replicas": replicas}
    return {"tfReplicaType": type_, **pod, **fields}


def tf_map(*types: str) -> JSON:
    return {type_: {"replicas": 1, "template": template("tensorflow")} for type_ in types}


LISTED = tfjob(
    "v1alpha1",
    {
        "replicaSpecs": [tf_entry("MASTER", 1), tf_entry("PS", 2, tfPort=2223)],
        "tfImage": "tensorflow/tensorflow:1.3.0",
        "terminationPolicy": {"chief": {"replicaName": "MASTER", "replicaIndex": 0}},
    },
)
TORCH_LISTED: JSON = {
    "apiVersion": "kubeflow.org/v1alpha1",
    "kind": "PyTorchJob",
    "metadata": {"name": "a"},
    "spec": {
        "backend": "tcp",
        "masterPort": "23456",
        "replicaSpecs": [
            {"replicaType": "MASTER", "replicas": 1, "template": template("pytorch")},
            {"replicaType": "WORKER", "replicas": 3, "template": template("pytorch")},
        ],
        "terminationPolicy": {"master": {"replicaName": "MASTER", "replicaRank": 0}},
    },
}
# Older versions of other kinds, which already were maps.
OLDER_MAPS = {
    "PyTorchJob": ("v1alpha2", "v1beta1", "v1beta2"),
    "MPIJob": ("v1alpha2",),
    "MXJob": ("v1alpha2", "v1beta1"),
}
