"""The examples of failure policies do what their first lines say."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import pytest
import yaml

from dlctl.api.status.verdict import Cause
from tests.faults.running import cluster, until_ended

EXAMPLES: Final = Path(__file__).parents[2] / "examples" / "failures"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(90)]


@attrs.frozen
class Course:
    """How an example goes: the cause and the replica of each failure, and the end."""

    failures: Sequence[tuple[Cause, str]]
    end: str
    counted: int


COURSES: Final[Mapping[str, Course]] = {
    "restart-the-job": Course([(Cause.USER_CODE, "worker-0")], "Succeeded", 1),
    "exit-codes": Course(
        [(Cause.USER_CODE, "master-0"), (Cause.USER_CODE, "master-0")], "Failed", 0
    ),
    "restart-a-worker": Course([(Cause.USER_CODE, "worker-0")], "Succeeded", 1),
    "hardware": Course([(Cause.HARDWARE, "master-0")], "Succeeded", 1),
}


def test_each_example_has_its_course() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.yaml")} == set(COURSES)


@pytest.mark.parametrize("name", COURSES)
async def test_example_goes_as_it_says(name: str) -> None:
    expected = COURSES[name]
    job: dict[str, Any] = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    async with cluster({}) as running:
        if not running.cluster.network.isolated:
            pytest.skip(f"no namespaces: {running.cluster.network.reason}")
        status = await until_ended(running, job)
    own = status["dlctl"]
    failed = [each for each in own["attempts"] if "cause" in each]
    found = [(each["cause"], each["replica"]) for each in failed]
    assert found == list(expected.failures)
    assert [c["type"] for c in status["conditions"] if c["status"] == "True"][-1] == expected.end
    assert own.get("countedRestarts", 0) == expected.counted
