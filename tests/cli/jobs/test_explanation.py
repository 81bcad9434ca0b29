"""What ``dlctl why`` prints. ``python -m tests.cli.jobs.test_explanation`` rewrites the files."""

import datetime
from pathlib import Path

import msgspec
import pytest

from dlctl.api.meta import ObjectMeta
from dlctl.cli.jobs.explanation import explain
from tests.builders import NOW
from tests.cli.jobs.outcomes import (
    BEGIN,
    CREATED,
    RUNNING,
    SITUATIONS,
    Situation,
    event,
    failed,
    pod,
    running,
    snapshot,
)

FOLDER = Path(__file__).parents[2] / "golden" / "why"


def why(situation: Situation) -> str:
    lines = explain(situation.job, situation.pods, situation.events, NOW, situation.output)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("name", SITUATIONS)
def test_explanation_of_a_situation_is_the_expected_one(name: str) -> None:
    assert why(SITUATIONS[name]()) == (FOLDER / f"{name}.txt").read_text()


def test_event_that_repeats_what_a_pod_shows_is_left_out() -> None:
    assert "ExitedWithCode" not in why(failed())


def test_event_about_a_pod_that_is_gone_is_kept() -> None:
    situation = failed()
    text = why(Situation(situation.job, situation.pods[:2], situation.events))
    assert "ExitedWithCode: Pod: ml.sum-worker-1 exited with code 1" in text


@pytest.mark.parametrize("year", [1, 9999])
def test_event_of_an_impossible_time_happened_when_it_was_created(year: int) -> None:
    created = BEGIN + datetime.timedelta(seconds=5)
    stated = created.replace(year=year)
    wrong = msgspec.structs.replace(
        event("Strange", 5, "from elsewhere"),
        metadata=ObjectMeta(name="strange", creation_timestamp=created),
        first_timestamp=stated,
        last_timestamp=stated,
    )
    assert "     +5s  Strange: from elsewhere" in why(Situation(snapshot(), events=[wrong]))
    assert wrong.last >= created


def test_job_without_status_and_pods_can_be_explained() -> None:
    assert why(Situation(snapshot())).startswith("pytorchjob/sum in namespace ml: New")


def test_job_with_pods_has_a_controller_even_without_a_status() -> None:
    text = why(Situation(snapshot(), [pod(snapshot(), "master-0", state=running(1))]))
    assert "none has taken the job up" not in text
    assert "worker-0" in text


def test_job_with_pods_and_no_status_for_long_lacks_a_controller() -> None:
    text = why(Situation(snapshot(), [pod(snapshot(), "master-0", state=running(1))]))
    assert "none has given it a status, though it has pods, in 90s" in text


def test_job_whose_status_is_refused_has_a_controller() -> None:
    refused = "the status of pytorchjob sum is invalid: failed rule"
    text = why(Situation(snapshot(), events=[event("StatusRejected", 5, refused, type_="Warning")]))
    assert f"its first status: {refused}" in text
    assert "none has taken the job up" not in text


def test_refusal_of_a_later_status_is_what_a_job_waits_for() -> None:
    refused = "the status of pytorchjob sum is invalid: failed rule"
    job = snapshot(conditions=[CREATED, RUNNING])
    pods = [pod(job, "master-0", state=running(1))]
    events = [event("SuccessfulCreatePod", 1, "Created pods"), event("StatusRejected", 5, refused)]
    assert f"its next status: {refused}" in why(Situation(job, pods, events))
    events.append(event("PyTorchJobRestarting", 9, "it is restarting"))
    assert "its next status" not in why(Situation(job, pods, events))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for situation_name, situation_of in SITUATIONS.items():
        (FOLDER / f"{situation_name}.txt").write_text(why(situation_of()))
