import datetime
import io

import attrs
from rich.console import Console

from dlctl.api.meta import ObjectKey
from dlctl.api.status.job_status import JobPhase
from dlctl.cli.display.progress import JobProgress
from dlctl.cli.display.replica_progress import ReplicaProgress
from dlctl.cli.display.screen import render_svg, screen
from tests.builders import NOW

SCHEDULER = ReplicaProgress("scheduler-0", "scheduler", pod="linear-scheduler-x-0")
WORKER = ReplicaProgress(
    "worker-0",
    "worker",
    pod="linear-worker-x-0",
    phase="Failed",
    restarts=3,
    exit_code=139,
    started=NOW,
    ended=NOW + datetime.timedelta(seconds=62),
)
JOB = JobProgress(
    "mxjob",
    ObjectKey("ml", "linear"),
    phase=JobPhase.RUNNING,
    replicas=(SCHEDULER, WORKER),
)


def drawn(job: JobProgress, **size: int) -> list[str]:
    console = Console(file=io.StringIO(), width=size.get("width", 100), record=True)
    console.print(screen([job], NOW, **size))
    return [line.rstrip() for line in console.export_text().splitlines()][1:]


def test_table_has_a_row_for_each_replica() -> None:
    assert [line.split() for line in drawn(JOB)[:4]] == [
        ["mxjob", "ml/linear", "Running"],
        ["REPLICA", "POD", "PHASE", "RESTARTS", "EXIT", "CODE", "ELAPSED"],
        ["worker-0", "linear-worker-x-0", "Failed", "3", "139", "62", "s"],
        ["scheduler-0", "linear-scheduler-x-0", "Waiting", "0"],
    ]


def test_narrow_terminal_has_no_room_for_pods() -> None:
    assert drawn(JOB, width=80)[1].split()[:2] == ["REPLICA", "PHASE"]
    assert max(map(len, drawn(JOB, width=80))) <= 80


def test_names_and_phases_are_whole_on_a_terminal_of_40_columns() -> None:
    crashing = attrs.evolve(WORKER, phase="CrashLoopBackOff")
    lines = drawn(attrs.evolve(JOB, replicas=(SCHEDULER, crashing)), width=40)
    assert [line.split() for line in lines[1:4]] == [
        ["REPLICA", "PHASE", "EXIT", "CODE"],
        ["worker-0", "CrashLoopBackOff", "139"],
        ["scheduler-0", "Waiting"],
    ]
    assert max(map(len, lines)) <= 40


def test_chief_is_in_the_first_row() -> None:
    names = ["ps-0", "worker-0", "worker-1", "chief-0"]
    replicas = tuple(ReplicaProgress(name, name.partition("-")[0]) for name in names)
    rows = drawn(attrs.evolve(JOB, replicas=replicas))[2:6]
    assert [row.split()[0] for row in rows] == ["chief-0", "ps-0", "worker-0", "worker-1"]


def test_notice_is_below_the_table() -> None:
    noticed = attrs.evolve(JOB, notice="worker-0 waits: its image cannot be pulled")
    assert drawn(noticed)[4] == "worker-0 waits: its image cannot be pulled"


def test_waiting_reason_of_several_replicas_is_shown_once() -> None:
    waiting = [
        ReplicaProgress(f"worker-{n}", "worker", waiting_message='configmap "script" not found')
        for n in range(3)
    ]
    text = drawn(attrs.evolve(JOB, replicas=tuple(waiting)))
    assert text.count('configmap "script" not found') == 1


def test_of_many_replicas_those_with_problems_are_shown() -> None:
    many = [ReplicaProgress(f"worker-{n}", "worker", pod="p", phase="Running") for n in range(1000)]
    many[700] = attrs.evolve(many[700], phase="Failed")
    text = drawn(attrs.evolve(JOB, replicas=tuple(many)))
    assert text[2].split()[:3] == ["worker-700", "p", "Failed"]
    assert "and 976 more" in text
    assert len(text) < 40
    assert len(drawn(attrs.evolve(JOB, replicas=tuple(many)), max_rows=5)) < 12


def test_svg_contains_log_and_screen_and_loads_nothing() -> None:
    logs = [("worker-0", "epoch 8 [loss 0.1]")]
    svg = render_svg(logs, screen([JOB], NOW), title="dlctl run linear.yaml")
    assert svg.startswith("<svg")
    assert "linear-worker-x-0" in svg
    assert "[loss" in svg
    assert "font-face" not in svg
