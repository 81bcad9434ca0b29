"""The kinds of the list dialects, in which installed frameworks are served."""

from collections.abc import Iterator, Mapping
from typing import Final

from dlctl.api.policies.retry_policy import RetryPolicy
from dlctl.api.policies.run_policy import CleanPodPolicy
from dlctl.dialects.kind import Kind, make_kind
from dlctl.dialects.replica_lists.bare_list import BareList
from dlctl.dialects.replica_lists.image_server import MXNET_SERVER
from dlctl.dialects.replica_lists.list_form import ListForm
from dlctl.dialects.replica_lists.replica_list import ReplicaList
from dlctl.frameworks.dljob import DLJob
from dlctl.frameworks.mxnet import MXJob

_MX_OPERATOR_GROUP: Final = "fioravanzo.org"
_FRAMEWORK_GROUP: Final = "mpba.fbk.eu"


def served_kinds(frameworks: Mapping[str, type[DLJob]]) -> Iterator[Kind]:
    """Yield fioravanzo.org's MXJob, and each framework in dl-operator's group and form."""
    if "MXJob" in frameworks:
        dialect = _fioravanzo_v1alpha1(frameworks["MXJob"])
        yield make_kind(_MX_OPERATOR_GROUP, "MXJob", {"v1alpha1": dialect})
    for framework in frameworks.values():
        yield make_kind(_FRAMEWORK_GROUP, framework.job_type, {"v1": _bare_list(framework)})


def _fioravanzo_v1alpha1(framework: type[DLJob]) -> ReplicaList:
    """Return the form of fioravanzo.org's mx-operator."""
    form = ListForm(
        framework=framework,
        group_label=_MX_OPERATOR_GROUP,
        field_prefix="mx",
        type_field="mxReplicaType",
        status_type_field="mx_replica_type",
        image_server=MXNET_SERVER,
        port_field="mxPort",
        default_port=9000,
        default_type="SCHEDULER",
        # Pods are kept for their logs.
        default_clean_pod_policy=CleanPodPolicy.NONE,
        retry_policy=RetryPolicy.TABLE_AND_SIGNALS,
        port_name="mx-port",
        service_per_replica=True,
        extra_env={"PS_VERBOSE": "2"},
    )
    return ReplicaList(form)


def _bare_list(framework: type[DLJob]) -> BareList:
    if framework is MXJob:
        # dl-operator's MXJob has another port than the framework's default.
        return BareList(framework, default_port=9000, extra_env={"PS_VERBOSE": "2"})
    return BareList(framework)
