"""The early list forms of Kubeflow's kinds, with the defaults of their operators."""

import inspect
from typing import Final

import attrs

from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.api.policies.run_policy import CleanPodPolicy
from dlctl.dialects.kubeflow.kind import GROUP, KubeflowKind
from dlctl.dialects.replica_lists.image_server import MXNET_SERVER, ImageServer
from dlctl.dialects.replica_lists.list_form import ListForm
from dlctl.dialects.replica_lists.replica_list import ReplicaList
from dlctl.frameworks.mxnet import MXJob
from dlctl.frameworks.pytorch import LegacyPyTorchJob
from dlctl.frameworks.tensorflow import LegacyTFJob

TENSORFLOW_GROUP: Final = "tensorflow.org"
# For TensorFlow 1, which these jobs are for.
_DEFAULT_PARAMETER_SERVER: Final = ImageServer(
    "ps",
    inspect.cleandoc("""
        import json, os
        import tensorflow

        config = json.loads(os.environ["TF_CONFIG"])
        task = config["task"]
        tensorflow.train.Server(config["cluster"], task["type"], task["index"]).join()
    """),
    default_image="tensorflow/tensorflow:1.3.0",
)


def mx_operator_v1alpha1(storage_kind: KubeflowKind) -> ReplicaList:
    """Return the form of jzp1025's mx-operator."""
    form = ListForm(
        framework=MXJob,
        group_label=GROUP,
        field_prefix="mx",
        type_field="mxReplicaType",
        status_type_field="mx_replica_type",
        image_server=MXNET_SERVER,
        port_field="PsRootPort",
        default_port=9091,
        default_type="WORKER",
        default_clean_pod_policy=CleanPodPolicy.ALL,
        storage_kind=storage_kind,
        retry_policy=RetryPolicy.TABLE,
        port_name="ps-root-port",
    )
    return ReplicaList(form)


def tf_operator_v1alpha1(storage_kind: KubeflowKind | None, group: str = GROUP) -> ReplicaList:
    """Return the form of tf-operator up to its version 0.3, in either of its groups."""
    form = ListForm(
        framework=LegacyTFJob,
        group_label=group,
        field_prefix="tf",
        type_field="tfReplicaType",
        status_type_field="tf_replica_type",
        port_field="tfPort",
        default_port=2222,
        default_type="MASTER",
        default_clean_pod_policy=CleanPodPolicy.ALL,
        storage_kind=storage_kind,
        retry_policy=RetryPolicy.TABLE_AND_SIGNALS,
        # It started a TensorBoard before the operator's first release.
        ignored_fields=("tensorboard",),
        # Another replica may be the chief.
        requires_singletons=False,
        port_name="tf-port",
        service_per_replica=True,
    )
    return ReplicaList(form)


def first_tf_operator() -> ReplicaList:
    """Return the form of tf-operator before it had Kubeflow's group."""
    form = tf_operator_v1alpha1(None, TENSORFLOW_GROUP).form
    return ReplicaList(attrs.evolve(form, image_server=_DEFAULT_PARAMETER_SERVER))


def pytorch_operator_v1alpha1(storage_kind: KubeflowKind) -> ReplicaList:
    """Return the form of pytorch-operator up to its version 0.3."""
    form = ListForm(
        framework=LegacyPyTorchJob,
        group_label=GROUP,
        field_prefix="pytorch",
        type_field="replicaType",
        status_type_field="replica_type",
        port_field="masterPort",
        default_port=23456,
        default_type="MASTER",
        # Pods are kept for their logs.
        default_clean_pod_policy=CleanPodPolicy.NONE,
        storage_kind=storage_kind,
        retry_policy=RetryPolicy.TABLE_AND_SIGNALS,
        chief_field="master",
        chief_index_field="replicaRank",
        case_insensitive_templates=False,
        # Named after the operator that it was made from.
        port_name="tf-port",
        service_per_replica=True,
    )
    return ReplicaList(form)
