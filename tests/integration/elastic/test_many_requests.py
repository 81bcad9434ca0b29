"""Many requests of one job or namespace, and the end of requests."""

from functools import partial

import attrs
import msgspec
import pytest

from dlctl.api.meta import (
    NAMESPACES,
)
from dlctl.api.objects.scalers import ScalerObject
from dlctl.dialects.et_operator import scalers
from dlctl.dialects.et_operator.resources import SCALE_INS, SCALE_OUTS
from dlctl.options import Options
from dlctl.reconcilers.membership.scaler_index import MAX_COUNT, index_by_job
from tests.support.elastic_harness import ONE, ElasticHarness, start_elastic_cluster
from tests.support.fake_launcher import Program

pytestmark = [pytest.mark.looptime(noop_cycles=8)]


async def test_slow_script_of_one_job_delays_no_other() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        await stage.running(2, name="other")
        stage.launchers.programs["/slow.sh"] = Program(lasts_s=25)
        await stage.scale_out("slow", toAdd=ONE, script="/slow.sh")
        await stage.cluster.until(lambda: stage.launchers.runs)
        began = stage.cluster.clock.monotonic()
        await stage.scale_out("quick", job="other", toAdd=ONE)
        assert (await stage.scaler_result("quick"))[0] == "ScaleSucceeded"
        assert stage.cluster.clock.monotonic() - began <= 0.2
        assert stage.scaler("slow")["phase"] == "Scaling"
        assert (await stage.scaler_result("slow"))[0] == "ScaleSucceeded"


async def test_slow_scripts_of_one_namespace_delay_neither_others_nor_deliveries() -> None:
    async with start_elastic_cluster(Options(max_concurrent_scaler_scripts=4)) as stage:
        await stage.cluster.user.create(NAMESPACES, "", {"metadata": {"name": "quiet"}})
        quiet = ElasticHarness(attrs.evolve(stage.cluster, namespace="quiet"), stage.launchers)
        stage.launchers.programs["/slow.sh"] = Program(lasts_s=3000)
        for number in range(6):
            await stage.running(1, name=f"job-{number}")
            await stage.scale_out(
                f"slow-{number}", f"job-{number}", toAdd=ONE, script="/slow.sh", timeout=3600
            )
        await quiet.running(1)
        await stage.cluster.advance(10)
        assert len(stage.launchers.runs) == 2
        began = stage.cluster.clock.monotonic()
        await quiet.scale_out(toAdd=ONE, script="/quick.sh")
        assert (await quiet.scaler_result("out"))[0] == "ScaleSucceeded"
        await quiet.scale_in(toDelete=ONE)
        assert (await quiet.scaler_result("in"))[0] == "ScaleSucceeded"
        assert stage.cluster.clock.monotonic() - began <= 2


async def test_slow_scripts_of_a_few_namespaces_do_not_delay_those_of_another() -> None:
    async with start_elastic_cluster(Options(max_concurrent_scaler_scripts=4)) as stage:
        stage.launchers.programs["/slow.sh"] = Program(lasts_s=3000)
        names = ("one", "two", "three", "quiet")
        for name in names:
            await stage.cluster.user.create(NAMESPACES, "", {"metadata": {"name": name}})
        *crowd, quiet = (
            ElasticHarness(attrs.evolve(stage.cluster, namespace=name), stage.launchers)
            for name in names
        )
        for own in crowd:
            for number in range(3):
                job = f"{own.cluster.namespace}-{number}"
                await own.running(1, name=job)
                await own.scale_out(job, job, toAdd=ONE, script="/slow.sh", timeout=3600)
            await stage.cluster.advance(10)
        assert len(stage.launchers.runs) == 4
        await quiet.running(1)
        began = stage.cluster.clock.monotonic()
        await quiet.scale_out(toAdd=ONE, script="/quick.sh")
        assert (await quiet.scaler_result("out"))[0] == "ScaleSucceeded"
        assert stage.cluster.clock.monotonic() - began <= 2


async def test_request_for_a_missing_job_fails_after_a_while() -> None:
    async with start_elastic_cluster() as stage:
        await stage.scale_out(job="absent", toAdd=ONE)
        await stage.cluster.advance(60)
        assert stage.scaler("out") == {}
        how, why = await stage.scaler_result("out")
        assert how == "ScaleFailed"
        assert "there is no TrainingJob default/absent" in why
        await stage.cluster.until(lambda: stage.event_messages("ScalingOutFailed") == [why])


async def test_finished_requests_are_deleted_after_their_ttl() -> None:
    async with start_elastic_cluster(Options(scaler_ttl_s=600)) as stage:
        await stage.running(2)
        await stage.scale_out(toAdd=ONE)
        await stage.scaler_result("out")
        await stage.scale_in(job="absent", toDelete=ONE)
        await stage.scaler_result("in")
        await stage.cluster.advance(300)
        assert len([*stage.cluster.objects(SCALE_INS), *stage.cluster.objects(SCALE_OUTS)]) == 2
        await stage.cluster.advance(400)
        assert stage.cluster.objects(SCALE_INS) == stage.cluster.objects(SCALE_OUTS) == []
        assert stage.members() == [0, 1, 2]


async def test_many_requests_are_all_processed_in_turns() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        for number in range(3 * MAX_COUNT):
            await stage.scale_in(f"refused-{number}", toDelete={"podNames": ["other"]})
        await stage.scale_out(toAdd=ONE)
        assert (await stage.scaler_result("out"))[0] == "ScaleSucceeded"
        refused = stage.cluster.objects(SCALE_INS)
        assert {one["status"]["phase"] for one in refused} == {"ScaleFailed"}


async def test_many_requests_fail_with_the_end_of_their_job() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(2)
        stage.launchers.reachable_after_s = {"linear-worker-2": 1e9}
        for number in range(3 * MAX_COUNT):
            await stage.scale_out(f"out-{number}", toAdd=ONE)
        await stage.end("linear-launcher")
        for number in range(3 * MAX_COUNT):
            assert (await stage.scaler_result(f"out-{number}"))[0] == "ScaleFailed"


async def test_finished_requests_are_not_reconciled_with_their_job() -> None:
    async with start_elastic_cluster() as stage:
        await stage.running(1)
        await stage.scale_out(toAdd=ONE)
        await stage.scaler_result("out")
        await stage.cluster.settled()
        (scaler,) = stage.cluster.objects(SCALE_OUTS)
        done = msgspec.json.decode(msgspec.json.encode(scaler), type=ScalerObject)
        read = partial(scalers.read, resource=SCALE_OUTS)
        assert list(index_by_job(read, done)) == []
        waiting = msgspec.structs.replace(done, status=msgspec.Raw(b"null"))
        assert list(index_by_job(read, waiting)) == ["default/linear"]
