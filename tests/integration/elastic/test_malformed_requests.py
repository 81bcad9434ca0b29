"""Requests that no CRD has checked, and those that CRDs reject."""

from typing import Any

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import (
    CRDS,
    ObjectKey,
    Resource,
)
from dlctl.api.objects.scalers import Scaler, ScalerObject
from dlctl.dialects.et_operator import scalers
from dlctl.dialects.et_operator.resources import SCALE_INS, SCALE_OUTS
from dlctl.kube.errors import InvalidError
from tests.support.elastic_harness import JOBS, ONE, ElasticHarness, start_elastic_cluster

pytestmark = [pytest.mark.looptime(noop_cycles=8)]


async def test_empty_objects_do_no_harm() -> None:
    async with start_elastic_cluster() as stage:
        await accept_anything(stage)
        await stage.running(2)
        requests: list[JSON] = [{}, {"spec": {}}, {"spec": {"selector": {"name": "linear"}}}]
        for body in requests:
            for resource in (SCALE_INS, SCALE_OUTS):
                await create(stage, resource, body)
        launcher: JSON = {"template": {"spec": {"containers": []}}}
        jobs: list[JSON] = [{}, {"spec": {}}, {"spec": {"etReplicaSpecs": {"launcher": launcher}}}]
        for job in jobs:
            await create(stage, JOBS, job)
        await stage.cluster.settled()
        failed = [
            scaler["status"]["conditions"][-1]["message"]
            for resource in (SCALE_INS, SCALE_OUTS)
            for scaler in stage.cluster.objects(resource)
            if "status" in scaler
        ]
        assert len([each for each in failed if "name the TrainingJob to scale" in each]) == 4
        (scale_in, scale_out) = [each for each in failed if "TrainingJob to scale" not in each]
        assert "only one of them should be set" in scale_in
        assert "toAdd.count shouldn't be empty" in scale_out
        await stage.scale_out("whole", toAdd=ONE)
        assert (await stage.scaler_result("whole"))[0] == "ScaleSucceeded"
        assert stage.cluster.phase() == "Running"


async def test_malformed_request_fails_and_its_job_continues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = scalers.read

    def faulty(obj: ScalerObject, resource: Resource) -> Scaler:
        if obj.metadata.name == "odd" and resource == SCALE_OUTS:
            raise IndexError("list index out of range")
        return read(obj, resource)

    monkeypatch.setattr(scalers, "read", faulty)
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        await stage.scale_out("odd", toAdd=ONE)
        reason, message = await stage.scaler_result("odd")
        assert reason == "ScaleFailed"
        assert "IndexError: list index out of range" in message
        await stage.scale_out("whole", toAdd=ONE)
        assert (await stage.scaler_result("whole"))[0] == "ScaleSucceeded"
        assert not stage.cluster.condition("Waiting")


async def test_malformed_request_gets_one_event_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def faulty(obj: ScalerObject, resource: Resource) -> Scaler:
        raise IndexError("list index out of range")

    monkeypatch.setattr(scalers, "read", faulty)
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        await stage.scale_out("odd", toAdd=ONE)
        await stage.scaler_result("odd")
        written = stage.scaler("odd")
        labels = {"metadata": {"labels": {"changed": "yes"}}}
        await stage.cluster.user.patch(SCALE_OUTS, stage.cluster.key("odd"), labels)
        await stage.cluster.advance(600)
        assert stage.scaler("odd") == written
        assert len(stage.event_messages("ScalingOutFailed")) == 1
        assert not [record.message for record in caplog.records if record.exc_info]


async def accept_anything(stage: ElasticHarness) -> None:
    """Make the server validate as little as under et-operator's CRDs."""
    for resource in (JOBS, SCALE_INS, SCALE_OUTS):
        key = ObjectKey("", resource.group_resource)
        crd = await stage.cluster.user.get(CRDS, key, JSON)
        (version,) = crd["spec"]["versions"]
        open_ = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version["schema"] = {"openAPIV3Schema": open_}
        await stage.cluster.user.patch(CRDS, key, {"spec": {"versions": [version]}})
    await stage.cluster.advance(5)


async def create(stage: ElasticHarness, resource: Any, body: JSON) -> None:
    wire = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
    wire["metadata"] = {"generateName": "lacking-"}
    await stage.cluster.user.create(resource, stage.cluster.namespace, wire)


@pytest.mark.parametrize(
    "spec",
    [{"script": "/opt/../proc/self/environ"}, {"script": "/dev/stdin"}, {"timeout": 3601}],
    ids=["proc", "dev", "time"],
)
async def test_invalid_or_endless_script_path_is_rejected_at_admission(spec: JSON) -> None:
    async with start_elastic_cluster() as stage:
        with pytest.raises(InvalidError, match=r"spec\.(script|timeout)"):
            await stage.scale_out(toAdd=ONE, **spec)
        await stage.scale_out(toAdd=ONE, script="/opt/proc/join.sh", timeout=3600)
