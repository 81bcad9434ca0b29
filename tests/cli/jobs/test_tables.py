"""Tables of ``dlctl get``."""

from typing import Any

from dlctl.cli.jobs.job_snapshot import JobSnapshot
from dlctl.cli.jobs.tables import job_table
from tests.builders import NOW, kind_of, training_job


def test_control_sequences_of_a_status_are_left_out() -> None:
    message = "\x1b[2J\x1b]0;title\x07\x9b31mfirst\nsecond"
    wire: dict[str, Any] = training_job("PyTorchJob", "a", Master=1)
    waiting = {"type": "Waiting", "status": "True", "reason": "a", "message": message}
    wire["status"] = {"conditions": [waiting]}
    job = JobSnapshot.of(kind_of("kubeflow.org/v1", "PyTorchJob"), wire)
    header, row = job_table([job], NOW, wide=True, namespaces=False)
    assert (header + row).isprintable()
    assert "first second" in row
