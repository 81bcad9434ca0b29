"""Containers as real processes: exit codes, restarts, init containers, environment."""

import signal

import pytest

from dlctl.api.meta import CONFIG_MAPS
from dlctl.informers.handlers import Change
from dlctl.kube.errors import NotFoundError
from dlctl.local.node.wire import NodePod
from tests.local.node.builders import make_container
from tests.local.node.lab import Lab, container, exit_code

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(
    ("script", "code"),
    [
        *((f"exit {code}", code) for code in (0, 1, 2, 126, 127, 128)),
        # In a manifest, two dollars stand for one.
        *((f"kill -{signal} $$$$", 128 + signal) for signal in (2, 9, 10, 11, 15)),
    ],
)
async def test_end_of_a_program_is_its_exit_code(lab: Lab, script: str, code: int) -> None:
    name = f"ends-{script.split()[0]}-{code}"
    status = await lab.run(name, command=["sh", "-c", script])
    assert exit_code(status) == code
    assert status["phase"] == ("Failed" if code else "Succeeded")
    reason = container(status)["state"]["terminated"]["reason"]
    assert reason == ("Error" if code else "Completed")


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (1, "Failed")])
async def test_end_is_reported_of_the_container_first_and_of_the_pod_later(
    lab: Lab, code: int, phase: str
) -> None:
    name, seen = f"in-two-steps-{code}", list[tuple[str, bool]]()
    informer = lab.cluster.node.pods

    def note(change: Change[NodePod]) -> None:
        status = change.new.status if change.new and change.new.key.name == name else None
        if status and status.get("containerStatuses"):
            seen.append((status["phase"], "terminated" in container(status)["state"]))

    registration = informer.add_handler(note)
    try:
        await lab.run(name, command=["sh", "-c", f"exit {code}"])
    finally:
        registration.remove()
    assert seen[-2:] == [("Running", True), (phase, True)]


async def test_container_ignores_no_signal_that_dlctl_was_started_without(lab: Lab) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        status = await lab.run("interrupted", command=["sh", "-c", "kill -2 $$$$"])
    finally:
        signal.signal(signal.SIGINT, before)
    assert exit_code(status) == 130


@pytest.mark.parametrize(
    ("program", "code"), [("no-such-program", 127), ("/etc/passwd", 126)], ids=["none", "no right"]
)
async def test_program_that_cannot_be_executed_fails_the_pod(
    lab: Lab, program: str, code: int
) -> None:
    name = f"cannot-{code}"
    status = await lab.run(name, command=[program])
    state = container(status)["state"]["terminated"]
    assert (state["exitCode"], state["reason"]) == (code, "StartError")
    assert state["message"].startswith(f"{program}: ")
    assert program in await lab.log(name)


async def test_container_that_fails_is_restarted_until_it_succeeds(lab: Lab) -> None:
    script = "echo x >>/count/n; test $(wc -l </count/n) = 3"
    status = await lab.run(
        "third-time-lucky",
        restartPolicy="OnFailure",
        volumes=[{"name": "count", "emptyDir": {}}],
        containers=[
            make_container(
                command=["sh", "-c", script],
                volumeMounts=[{"name": "count", "mountPath": "/count"}],
            )
        ],
    )
    assert status["phase"] == "Succeeded"
    assert container(status)["restartCount"] == 2
    assert container(status)["lastState"]["terminated"]["exitCode"] == 1


async def test_container_that_keeps_ending_is_held_back(lab: Lab) -> None:
    await lab.start("crash-loop", restartPolicy="Always", command=["true"])
    status = await lab.until(
        "crash-loop",
        lambda status: "CrashLoopBackOff" in str(status.get("containerStatuses")),
    )
    assert status["phase"] == "Running"
    assert container(status)["lastState"]["terminated"]["exitCode"] == 0
    await lab.delete("crash-loop")
    await lab.gone("crash-loop")


async def test_init_containers_run_one_after_the_other_before_the_others(lab: Lab) -> None:
    mounts = [{"name": "v", "mountPath": "/v"}]
    status = await lab.run(
        "inits",
        volumes=[{"name": "v", "emptyDir": {}}],
        initContainers=[
            make_container("first", command=["sh", "-c", "echo 1 >/v/x"], volumeMounts=mounts),
            make_container("second", command=["sh", "-c", "echo 2 >>/v/x"], volumeMounts=mounts),
        ],
        containers=[make_container(command=["cat", "/v/x"], volumeMounts=mounts)],
    )
    assert status["phase"] == "Succeeded"
    assert await lab.log("inits", container="main") == "1\n2\n"


async def test_failed_init_container_fails_the_pod_before_it_starts(lab: Lab) -> None:
    status = await lab.run(
        "bad-init",
        initContainers=[make_container("first", command=["false"])],
        containers=[make_container(command=["true"])],
    )
    assert status["phase"] == "Failed"
    assert "waiting" in container(status)["state"]


async def test_program_sees_the_environment_of_the_manifest_only(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_SHELL", "x")
    await lab.run(
        "environment",
        containers=[
            make_container(
                command=["sh", "-c", "echo $(WHO) $$(WHO); env; pwd"],
                env=[{"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            )
        ],
    )
    log = await lab.log("environment")
    assert "HOSTNAME=environment\n" in log
    assert "WHO=environment\n" in log
    assert "SECRET_OF_THE_SHELL" not in log


async def test_container_without_command_waits_and_tells_the_fix(lab: Lab) -> None:
    await lab.start("no-command", containers=[{"name": "main", "image": "repo/unknown:1"}])
    status = await lab.until(
        "no-command", lambda status: "CreateContainerConfigError" in str(status)
    )
    assert "--image repo/unknown:1=PREFIX" in container(status)["state"]["waiting"]["message"]
    assert status["phase"] == "Pending"
    await lab.delete("no-command")
    await lab.gone("no-command")


async def test_working_directory_that_is_not_here_is_replaced_and_told(lab: Lab) -> None:
    where = "/incubator-mxnet/example"
    status = await lab.run(
        "no-directory", containers=[make_container(command=["pwd"], workingDir=where)]
    )
    assert exit_code(status) == 0
    assert where not in await lab.log("no-directory")
    await lab.warning(where)


async def test_entrypoint_of_a_mapped_image_is_run(lab: Lab) -> None:
    await lab.run(
        "mapped", containers=[{"name": "main", "image": "mapped:latest", "args": ["a", "b"]}]
    )
    assert await lab.log("mapped") == "entrypoint a b\n"


async def test_container_waits_for_the_config_map_it_refers_to(lab: Lab) -> None:
    source = {"configMapKeyRef": {"name": "later", "key": "k"}}
    await lab.start(
        "waits", command=["sh", "-c", "echo $K"], env=[{"name": "K", "valueFrom": source}]
    )
    await lab.until("waits", lambda status: 'configmap "later" not found' in str(status))
    await lab.create(CONFIG_MAPS, "later", data={"k": "came"})
    assert (await lab.finished("waits"))["phase"] == "Succeeded"
    assert await lab.log("waits") == "came\n"


async def test_pod_over_its_deadline_fails(lab: Lab) -> None:
    status = await lab.run("deadline", command=["sleep", "60"], activeDeadlineSeconds=1)
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert exit_code(status) == 143


async def test_program_that_obeys_sigterm_ends_at_once(lab: Lab) -> None:
    await lab.start(
        "obeys", command=["sh", "-c", "trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done"]
    )
    await lab.until("obeys", lambda status: status["phase"] == "Running")
    await lab.delete("obeys", grace_period_s=60)
    await lab.gone("obeys")


async def test_program_that_ignores_sigterm_is_killed_after_its_grace(lab: Lab) -> None:
    await lab.start("ignores", command=["sh", "-c", "trap '' TERM; echo up; sleep 60"])
    await lab.until("ignores", lambda status: status["phase"] == "Running")
    await lab.delete("ignores", grace_period_s=1)
    await lab.gone("ignores")


async def test_life_of_a_pod_costs_few_writes(lab: Lab) -> None:
    def writes() -> int:
        return sum(
            count
            for request, count in lab.cluster.server.audit.items()
            if request.subresource == "status" and request.resource == "pods"
        )

    before = writes()
    await lab.run("writes")
    assert 1 <= writes() - before <= 4


async def test_finished_pod_can_be_read_until_it_is_deleted(lab: Lab) -> None:
    await lab.run("stays", command=["echo", "hello"])
    assert await lab.log("stays") == "hello\n"
    await lab.delete("stays")
    await lab.gone("stays")
    with pytest.raises(NotFoundError):
        await lab.log("stays")
