"""The table of kinds: served kinds, lookup by manifest, and duplicate names."""

from typing import Any

import msgspec
import pytest

from dlctl.api.nesting import MAX_DEPTH
from dlctl.api.objects.jobs import JobObject
from dlctl.api.status.job_status import JobPhase
from dlctl.dialects.kind import Kind
from dlctl.dialects.kinds import kind_of_api_version, served_kinds
from dlctl.dialects.replica_lists.bare_list import BareList
from dlctl.errors import ConfigError, InvalidJobError
from dlctl.frameworks.mxnet import MXJob
from dlctl.frameworks.tensorflow import TFJob
from tests.builders import KINDS, decoded, job_object, kind_of, mxjob


class ClashingMXJob(MXJob):
    """A framework whose kind differs from another's only in case."""

    job_type = "MxJob"


def test_each_group_serves_its_kinds() -> None:
    assert [(kind.resource.group_resource, kind.resource.version) for kind in KINDS] == [
        ("tfjobs.kubeflow.org", "v1"),
        ("pytorchjobs.kubeflow.org", "v1"),
        ("xgboostjobs.kubeflow.org", "v1"),
        ("paddlejobs.kubeflow.org", "v1"),
        ("jaxjobs.kubeflow.org", "v1"),
        ("mpijobs.kubeflow.org", "v1"),
        ("mxjobs.kubeflow.org", "v1"),
        ("xgboostjobs.xgboostjob.kubeflow.org", "v1"),
        ("tfjobs.tensorflow.org", "v1alpha1"),
        ("trainingjobs.kai.alibabacloud.com", "v1alpha1"),
        ("mxjobs.fioravanzo.org", "v1alpha1"),
        ("mxjobs.mpba.fbk.eu", "v1"),
        ("tfjobs.mpba.fbk.eu", "v1"),
    ]


def test_kind_of_an_uninstalled_framework_is_not_served() -> None:
    served = served_kinds({"TFJob": TFJob})
    own = [kind for kind in served if kind.resource.group == "mpba.fbk.eu"]
    assert [kind.resource.group_resource for kind in own] == ["tfjobs.mpba.fbk.eu"]


def test_two_kinds_of_the_same_name_are_rejected() -> None:
    with pytest.raises(
        ConfigError, match=r"test_kinds\.ClashingMXJob .*mxjobs\.mpba\.fbk\.eu.*taken"
    ):
        served_kinds({"MXJob": MXJob, "MxJob": ClashingMXJob})


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("kubeflow.org/v1beta9", "MXJob"),
        ("kubeflow.org/v1alpha1", "JAXJob"),
        ("v1alpha1", "MXJob"),
        ("", ""),
    ],
)
def test_manifest_of_another_kind_is_not_served(api_version: str, kind: str) -> None:
    assert kind_of_api_version(KINDS, api_version, kind) is None


def test_job_is_read_by_its_form_whatever_its_version() -> None:
    old, bare = kind_of().dialects["v1alpha1"], BareList(MXJob)
    both = Kind(kind_of().resource, {"v1alpha1": old, "v1": bare})
    assert both.decode(job_object(mxjob())).dialect is old
    assert both.decode(job_object({"spec": []})).dialect is bare


@pytest.mark.parametrize("spec", [None, "x", {}])
def test_job_of_unknown_form_has_the_dialect_of_the_storage_version(spec: Any) -> None:
    kind = kind_of()
    assert kind.decode(job_object({"spec": spec})).dialect is kind.dialects["v1"]


def test_spec_is_decoded_with_its_dialect_and_version() -> None:
    wire = mxjob()
    obj = decoded(wire)
    assert obj.spec == wire["spec"]
    assert (obj.resource.version, obj.invalid_reason) == ("v1alpha1", "")
    assert obj.dialect is kind_of().dialects["v1alpha1"]


def test_spec_that_nests_too_deeply_is_invalid_and_its_policy_is_known() -> None:
    deep: Any = []
    for _ in range(MAX_DEPTH):
        deep = [deep]
    obj = decoded(mxjob(runPolicy={"suspend": True}, extra=deep))
    assert obj.spec["runPolicy"] == {"suspend": True}
    assert obj.invalid_reason.startswith(f"is nested deeper than {MAX_DEPTH} levels")


def test_spec_that_is_not_json_is_an_invalid_job() -> None:
    with pytest.raises(InvalidJobError, match="spec: cannot be read"):
        kind_of().read(kind_of().decode(JobObject(spec=msgspec.Raw(b"{"))))


def test_status_is_read_even_if_the_job_is_invalid() -> None:
    wire = mxjob(group="fioravanzo.org")
    obj = decoded({**wire, "spec": None, "status": {"phase": "Failed"}})
    assert obj.dialect.read_status(obj).phase is JobPhase.FAILED
