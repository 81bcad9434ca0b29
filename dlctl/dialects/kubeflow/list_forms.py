"""The list forms that Kubeflow's kinds had at first, with the defaults of their operators."""

from dlctl.api.exit_codes import RetryPolicy
from dlctl.api.job import CleanPodPolicy
from dlctl.dialects.kubeflow.kind import GROUP, KubeflowKind
from dlctl.dialects.replica_lists.replica_list import ReplicaList
from dlctl.frameworks.mxnet import MXJob
from dlctl.frameworks.tensorflow import LegacyTFJob


def mx_operator_v1alpha1(storage_kind: KubeflowKind) -> ReplicaList:
    """Return the form of jzp1025's mx-operator."""
    return ReplicaList(
        MXJob,
        group_label=GROUP,
        field_prefix="mx",
        port_field="PsRootPort",
        default_port=9091,
        default_type="WORKER",
        default_clean_pod_policy=CleanPodPolicy.ALL,
        storage_kind=storage_kind,
        retry_policy=RetryPolicy.TABLE,
        port_name="ps-root-port",
    )


def tf_operator_v1alpha1(storage_kind: KubeflowKind) -> ReplicaList:
    """Return the form of tf-operator up to its version 0.3."""
    return ReplicaList(
        LegacyTFJob,
        group_label=GROUP,
        field_prefix="tf",
        port_field="tfPort",
        default_port=2222,
        default_type="MASTER",
        default_clean_pod_policy=CleanPodPolicy.ALL,
        storage_kind=storage_kind,
        retry_policy=RetryPolicy.TABLE_AND_SIGNALS,
        port_name="tf-port",
        service_per_replica=True,
    )
