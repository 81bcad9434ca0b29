"""The table of ``dlctl get nodes``."""

import datetime
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from dlctl.api.objects.nodes import Node
from dlctl.api.status.verdict import Attempt, Cause, Confidence
from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.cli.jobs.nodes import charges_by_node, node_table
from dlctl.dialects.status import attempts_codec
from tests.builders import NOW, kind_of, training_job
from tests.reconcilers.nodes.charged_jobs import ended

KIND = kind_of("kubeflow.org/v1", "PyTorchJob")


def snapshot(name: str, *attempts: Attempt) -> JobSnapshot:
    wire = training_job("PyTorchJob", name, Master=1)
    wire["metadata"]["uid"] = f"uid-of-{name}"
    wire["status"] = {"dlctl": {"phase": "Done", "attempts": attempts_codec.write(attempts)}}
    return JobSnapshot.of(KIND, wire)


def node(name: str, **fields: Any) -> Node:
    return msgspec.convert({"metadata": {"name": name}, **fields}, Node)


def rows(nodes: Sequence[Node], *jobs: JobSnapshot, namespace: str = "ml") -> list[list[str]]:
    """Return the cells of each row below the header."""
    now = NOW + datetime.timedelta(minutes=5)
    _, *lines = node_table(nodes, charges_by_node(jobs, now, namespace), now)
    return [[cell for cell in line.split("   ") if cell.strip()] for line in lines]


def cells(*jobs: JobSnapshot, namespace: str = "ml", **fields: Any) -> list[str]:
    (row,) = rows([node("node-a", **fields)], *jobs, namespace=namespace)
    return [cell.strip() for cell in row]


def test_normal_node_has_neither_signals_nor_charges() -> None:
    assert cells() == ["node-a", "<none>", "<none>", "<none>", "<none>", "no"]


def test_unhealthy_node_is_avoided_by_all_jobs() -> None:
    condition = {"type": "NetworkingReady", "status": "False"}
    found = cells(status={"conditions": [condition]})
    assert (found[1], found[-1]) == ("faulty (NetworkingReady=False)", "by all jobs")


def test_draining_node_shows_its_signal() -> None:
    found = cells(spec={"taints": [{"key": "karpenter.sh/disrupted"}]})
    assert (found[1], found[-1]) == ("draining (karpenter.sh/disrupted)", "no")


@pytest.mark.parametrize(
    ("count", "charged_by", "avoided"),
    [
        (1, "ml/job-0", "by these jobs"),
        (2, "ml/job-1, ml/job-0", "by all jobs"),
        (5, "ml/job-4, ml/job-3, ml/job-2 and 2 more", "by all jobs"),
    ],
)
def test_charged_node_names_the_last_jobs(count: int, charged_by: str, avoided: str) -> None:
    jobs = [snapshot(f"job-{n}", ended(ago_s=60.0 * (count - n))) for n in range(count)]
    found = cells(*jobs)
    assert found[2:] == [charged_by, "Node", "6m", avoided]


def test_log_of_a_program_charges_for_its_own_namespace_only() -> None:
    job = snapshot("job", ended("node-a", Cause.HARDWARE, Confidence.LOW))
    assert cells(job)[3] == "Hardware"
    assert cells(job, namespace="other")[3] == "<none>"
    assert cells(job, namespace="")[3] == "<none>"


def test_nodes_are_listed_by_name() -> None:
    found = rows([node("node-b"), node("node-a")], snapshot("job", ended("node-b")))
    assert [row[0].strip() for row in found] == ["node-a", "node-b"]
