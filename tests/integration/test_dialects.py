"""Every spelling of an MXJob goes the whole way: accepted, run, ended, cleaned up and told of."""

import pytest

from dlctl.api.meta import PODS, SERVICES
from tests.builders import bare_job, mxjob
from tests.support.world import world

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(mxjob(), id="kubeflow.org"),
        pytest.param(mxjob(group="fioravanzo.org"), id="fioravanzo.org"),
        pytest.param(bare_job(), id="mpba.fbk.eu"),
        pytest.param(bare_job("TFJob", ps=1, worker=2), id="mpba.fbk.eu TFJob"),
    ],
)
async def test_job_runs_to_success(manifest):
    async with world() as cluster:
        cluster.start()
        await cluster.submit(manifest, {})
        status = await cluster.ended()

        assert status["state"] == "Succeeded"
        print(cluster.dump(), cluster.history.writes())
