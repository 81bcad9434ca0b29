"""When a pod is terminal, compared with the kubelet's rule for the phase."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlctl.api.objects.pods import Pod
from tests.builders import RUNNING, exited

WAITING = {"waiting": {"reason": "CrashLoopBackOff"}}
CREATING = {"waiting": {"reason": "PodInitializing"}}
CODES = st.sampled_from([0, 1, 137])
TERMINATED = st.builds(exited, CODES)
INITS = st.lists(
    st.fixed_dictionaries({"state": TERMINATED | st.just(RUNNING), "sidecar": st.booleans()}),
    max_size=2,
)
MAINS = st.lists(st.just(RUNNING) | TERMINATED, min_size=1, max_size=3)


def pod_of(
    policy: str, mains: list[Any], inits: list[Any] | None = None, phase: str = "Running"
) -> Pod:
    """Return a pod; each container is its state, the first one is called ``main``."""
    names = ["main", "upload", "mesh"]
    found = [{"name": n, "state": s} for n, s in zip(names, mains, strict=False)]
    wire = {
        "spec": {
            "restartPolicy": policy,
            "initContainers": [
                {"name": f"init-{i}", **({"restartPolicy": "Always"} if one["sidecar"] else {})}
                for i, one in enumerate(inits or [])
            ],
        },
        "status": {
            "phase": phase,
            "containerStatuses": found,
            "initContainerStatuses": [
                {"name": f"init-{i}", "state": one["state"]} for i, one in enumerate(inits or [])
            ],
        },
    }
    return msgspec.json.decode(msgspec.json.encode(wire), type=Pod)


def kubelet_phase(policy: str, mains: list[Any], inits: list[Any]) -> str:
    """Return the terminal phase that the kubelet will report."""
    once = [one["state"] for one in inits if not one["sidecar"]]
    if policy == "Never" and any(code_of(state) for state in once):
        return "Failed"
    if any(code_of(state) != 0 for state in once):
        return "Pending"
    codes = [code_of(state) for state in mains]
    if None in codes or policy == "Always":
        return "Running"
    if not any(codes):
        return "Succeeded"
    return "Failed" if policy == "Never" else "Running"


def code_of(state: Any) -> int | None:
    end = state.get("terminated")
    return None if end is None else int(end["exitCode"])


@given(policy=st.sampled_from(["Never", "OnFailure", "Always"]), mains=MAINS, inits=INITS)
def test_pod_is_terminal_as_soon_as_the_kubelet_will_report_it(
    policy: str, mains: list[Any], inits: list[Any]
) -> None:
    in_store = kubelet_phase(policy, mains, inits)
    if in_store == "Pending":
        # No container starts before the init containers are done.
        mains = [CREATING]
    pod = pod_of(policy, mains, inits)
    assert pod.is_terminal == (in_store in ("Succeeded", "Failed"))
    assert pod_of(policy, mains, inits, phase="Failed").is_terminal
    assert pod.is_terminated("main") or not pod.is_terminal


@pytest.mark.parametrize(
    ("policy", "state", "expected"),
    [
        ("Never", exited(0), True),
        ("Never", exited(137), True),
        ("OnFailure", exited(0), True),
        ("OnFailure", exited(1), False),
        ("Always", exited(0), False),
        ("OnFailure", WAITING, False),
        ("Never", RUNNING, False),
    ],
)
def test_container_that_is_not_restarted_is_terminated_whatever_else_runs(
    policy: str, state: Any, expected: bool
) -> None:
    pod = pod_of(policy, [state, RUNNING])
    assert pod.is_terminated("main") is expected
    assert not pod.is_terminal


def test_pod_without_container_statuses_has_not_ended() -> None:
    assert not pod_of("Never", [], phase="Pending").is_terminal


def test_container_without_a_status_is_not_terminated() -> None:
    assert not pod_of("Never", [exited(0), RUNNING]).is_terminated("other")
