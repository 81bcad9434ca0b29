import pytest

from dlctl.cli.display.log_selection import MAX_SHOWN, LogSelection

PYTORCH = ["master-0", "worker-0", "worker-1"]
MANY = [f"worker-{n}" for n in range(20)]


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        pytest.param(PYTORCH, PYTORCH, id="few"),
        pytest.param(MANY[:MAX_SHOWN], MANY[:MAX_SHOWN], id="as many as are shown"),
        pytest.param([*MANY, "launcher-0"], ["launcher-0"], id="launcher of many"),
        pytest.param(["ps-0", *MANY, "chief-0"], ["chief-0"], id="chief of many"),
        pytest.param(["scheduler-0", "server-0", *MANY], ["worker-0"], id="first worker of many"),
        pytest.param(["a-0", "a-1"], ["a-0", "a-1"], id="types of a custom framework"),
        pytest.param([], [], id="not known yet"),
    ],
)
def test_all_logs_of_a_small_job_are_shown_and_the_chiefs_of_a_large_one(
    names: list[str], shown: list[str]
) -> None:
    assert LogSelection().shown(names) == shown


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        pytest.param(("worker-1",), ["worker-1"], id="name"),
        pytest.param(("worker-1", "master-0"), ["master-0", "worker-1"], id="names"),
        pytest.param(("worker",), ["worker-0", "worker-1"], id="type"),
        pytest.param(("all",), PYTORCH, id="all"),
    ],
)
def test_selected_logs_are_shown_whatever_the_size(
    wanted: tuple[str, ...], shown: list[str]
) -> None:
    assert LogSelection(wanted).shown(PYTORCH) == shown


def test_quiet_shows_no_log() -> None:
    assert LogSelection(quiet=True).shown(PYTORCH) == []


def test_name_that_matches_nothing_is_found() -> None:
    assert LogSelection(("worker", "wroker-1")).unmatched(PYTORCH) == ["wroker-1"]
