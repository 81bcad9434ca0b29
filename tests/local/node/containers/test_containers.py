"""Containers as real processes: exit codes, restarts, init containers, environment."""

import asyncio
import itertools
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from dlctl.api.json_types import JSON
from dlctl.api.meta import CONFIG_MAPS, PODS, ObjectKey
from dlctl.informers.handlers import Change
from dlctl.kube.errors import NotFoundError
from dlctl.local.node.api_types import NodePod
from tests.local.node.builders import make_container
from tests.local.node.harness import NodeHarness, container, exit_code

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(
    ("script", "code"),
    [
        *((f"exit {code}", code) for code in (0, 1, 2, 126, 127, 128)),
        # In a manifest, two dollars stand for one.
        *((f"kill -{signal} $$$$", 128 + signal) for signal in (2, 9, 10, 11, 15)),
    ],
)
async def test_exit_code_of_a_program_is_reported(
    harness: NodeHarness, script: str, code: int
) -> None:
    name = f"ends-{script.split()[0]}-{code}"
    status = await harness.run(name, command=["sh", "-c", script])
    assert exit_code(status) == code
    assert status["phase"] == ("Failed" if code else "Succeeded")
    reason = container(status)["state"]["terminated"]["reason"]
    assert reason == ("Error" if code else "Completed")


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (1, "Failed")])
async def test_container_termination_is_reported_before_the_pods_phase(
    harness: NodeHarness, code: int, phase: str
) -> None:
    name, seen = f"in-two-steps-{code}", list[tuple[str, bool]]()
    informer = harness.cluster.node.pods

    def note(change: Change[NodePod]) -> None:
        status = change.new.status if change.new and change.new.key.name == name else None
        if status and status.get("containerStatuses"):
            seen.append((status["phase"], "terminated" in container(status)["state"]))

    informer.add_handler(note)
    await harness.run(name, command=["sh", "-c", f"exit {code}"])
    assert seen[-2:] == [("Running", True), (phase, True)]


async def test_container_does_not_inherit_ignored_signals(
    harness: NodeHarness,
) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        status = await harness.run("interrupted", command=["sh", "-c", "kill -2 $$$$"])
    finally:
        signal.signal(signal.SIGINT, before)
    assert exit_code(status) == 130


@pytest.mark.parametrize("program", ["no-such-program", "/etc/passwd"], ids=["none", "no right"])
async def test_program_that_cannot_be_executed_fails_the_pod(
    harness: NodeHarness, program: str
) -> None:
    name = f"cannot-{program.strip('/').replace('/', '-')}"
    status = await harness.run(name, command=[program])
    state = container(status)["state"]["terminated"]
    assert (state["exitCode"], state["reason"]) == (128, "StartError")
    assert state["message"].startswith(f"{program}: ")
    assert program in await harness.log(name)


@pytest.mark.parametrize(
    ("first_line", "message"),
    [
        pytest.param("#!/no/python3 -u\n", "its interpreter /no/python3 is not", id="missing"),
        pytest.param(
            "#! /bin/sh\r\n", "/bin/sh is not on this machine; its lines end as on", id="Windows"
        ),
    ],
)
async def test_script_whose_interpreter_is_missing_says_so(
    harness: NodeHarness, first_line: str, message: str, tmp_path: Path
) -> None:
    script = tmp_path / "train"
    script.write_bytes(f"{first_line}echo up\n".encode())
    script.chmod(0o755)
    name = f"without-{len(first_line)}"
    status = await harness.run(
        name, command=["train"], env=[{"name": "PATH", "value": f"{tmp_path}"}]
    )
    assert exit_code(status) == 128
    assert message in (log := await harness.log(name))
    assert "No such file" not in log


@pytest.mark.parametrize(
    ("path", "volume"),
    [
        ("/", {"emptyDir": {}}),
        ("/", {"hostPath": {"path": "/"}}),
        ("/dev", {"emptyDir": {}}),
        ("/proc", {"emptyDir": {}}),
    ],
)
async def test_volume_in_place_of_what_containers_need_fails_the_pod(
    harness: NodeHarness, path: str, volume: JSON
) -> None:
    if not harness.isolated:
        pytest.skip("needs mounts")
    mount = {"name": "v", "mountPath": path}
    status = await harness.run(
        f"over-{len(path)}-{next(iter(volume)).lower()}",
        containers=[make_container(volumeMounts=[mount])],
        volumes=[{"name": "v", **volume}],
    )
    state = container(status)["state"]["terminated"]
    assert (state["exitCode"], state["reason"]) == (128, "StartError")
    assert state["message"].startswith(f"mountPath {path}: a container needs what is there")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        pytest.param([""], "the command is empty", id="empty"),
        pytest.param(["true", "a\0b"], "embedded null byte", id="null character"),
    ],
)
async def test_words_that_no_program_can_get_fail_the_pod(
    harness: NodeHarness, command: list[str], message: str
) -> None:
    name = f"words-{len(command)}"
    status = await harness.run(name, command=command)
    state = container(status)["state"]["terminated"]
    assert (state["exitCode"], state["reason"]) == (128, "StartError")
    assert message in await harness.log(name)


async def test_failing_container_is_restarted_until_it_succeeds(harness: NodeHarness) -> None:
    script = "echo x >>/count/n; test $(wc -l </count/n) = 3"
    status = await harness.run(
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


async def test_last_state_is_of_the_run_before_the_last_one(harness: NodeHarness) -> None:
    mounts = [{"name": "count", "mountPath": "/count"}]
    # The second run lasts until the pod ends: a third one would begin before a late look.
    once = "trap 'exit 2' TERM; echo x >>/count/n; test $(wc -l </count/n) = 2 || exit 1"
    ends = ["sh", "-c", f"{once}; while true; do sleep 0.05; done"]
    waits = ["sh", "-c", "until test $(wc -l </count/n) = 2; do sleep 0.05; done"]
    sidecar = make_container("side", command=ends, restartPolicy="Always", volumeMounts=mounts)
    status = await harness.run(
        "two-runs",
        volumes=[{"name": "count", "emptyDir": {}}],
        initContainers=[sidecar],
        containers=[make_container(command=waits, volumeMounts=mounts)],
    )
    [side] = status["initContainerStatuses"]
    assert side["restartCount"] == 1
    assert side["state"]["terminated"]["exitCode"] == 2
    assert side["lastState"]["terminated"]["exitCode"] == 1


async def test_crash_looping_container_backs_off(harness: NodeHarness) -> None:
    await harness.start("crash-loop", restartPolicy="Always", command=["true"])
    status = await harness.until(
        "crash-loop",
        lambda status: "CrashLoopBackOff" in str(status.get("containerStatuses")),
    )
    assert status["phase"] == "Running"
    assert container(status)["lastState"]["terminated"]["exitCode"] == 0
    await harness.delete("crash-loop")
    await harness.gone("crash-loop")


async def test_init_containers_run_one_after_the_other_before_the_others(
    harness: NodeHarness,
) -> None:
    mounts = [{"name": "v", "mountPath": "/v"}]
    mounts_with_slash = [{"name": "v", "mountPath": "/v/"}]
    status = await harness.run(
        "inits",
        volumes=[{"name": "v", "emptyDir": {}}],
        initContainers=[
            make_container("first", command=["sh", "-c", "echo 1 >/v/x"], volumeMounts=mounts),
            make_container("second", command=["sh", "-c", "echo 2 >>/v/x"], volumeMounts=mounts),
        ],
        containers=[make_container(command=["cat", "/v/x"], volumeMounts=mounts_with_slash)],
    )
    assert status["phase"] == "Succeeded"
    assert await harness.log("inits", container="main") == "1\n2\n"


async def test_failed_init_container_fails_the_pod_before_it_starts(harness: NodeHarness) -> None:
    status = await harness.run(
        "bad-init",
        initContainers=[make_container("first", command=["false"])],
        containers=[make_container(command=["true"])],
    )
    assert status["phase"] == "Failed"
    assert "waiting" in container(status)["state"]


async def test_program_gets_only_the_environment_of_the_manifest(
    harness: NodeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_SHELL", "x")
    await harness.run(
        "environment",
        containers=[
            make_container(
                command=["sh", "-c", "echo $(WHO) $$(WHO); env; pwd"],
                env=[{"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            )
        ],
    )
    log = await harness.log("environment")
    assert "HOSTNAME=environment\n" in log
    assert "WHO=environment\n" in log
    assert "SECRET_OF_THE_SHELL" not in log


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        pytest.param([], "1", id="default"),
        pytest.param([{"name": "PYTHONUNBUFFERED", "value": "0"}], "0", id="set by the manifest"),
    ],
)
async def test_python_does_not_buffer_its_output_unless_the_manifest_says_so(
    harness: NodeHarness, env: list[dict[str, str]], expected: str
) -> None:
    command = ["sh", "-c", "echo $PYTHONUNBUFFERED"]
    name = f"unbuffered-{expected}"
    await harness.run(name, containers=[make_container(command=command, env=env)])
    assert await harness.log(name) == f"{expected}\n"


async def test_container_without_command_waits_with_the_fix_as_message(
    harness: NodeHarness,
) -> None:
    await harness.start("no-command", containers=[{"name": "main", "image": "repo/unknown:1"}])
    status = await harness.until(
        "no-command", lambda status: "CreateContainerConfigError" in str(status)
    )
    assert "--image repo/unknown:1=PREFIX" in container(status)["state"]["waiting"]["message"]
    assert status["phase"] == "Pending"
    await harness.delete("no-command")
    await harness.gone("no-command")


async def test_missing_working_directory_is_replaced_and_reported(
    harness: NodeHarness,
) -> None:
    where = "/incubator-mxnet/example"
    status = await harness.run(
        "no-directory", containers=[make_container(command=["pwd"], workingDir=where)]
    )
    assert exit_code(status) == 0
    assert where not in await harness.log("no-directory")
    await harness.warning(where)


async def test_entrypoint_of_a_mapped_image_is_run(harness: NodeHarness) -> None:
    await harness.run(
        "mapped", containers=[{"name": "main", "image": "mapped:latest", "args": ["a", "b"]}]
    )
    assert await harness.log("mapped") == "entrypoint a b\n"


async def test_container_waits_for_the_config_map_it_refers_to(harness: NodeHarness) -> None:
    source = {"configMapKeyRef": {"name": "later", "key": "k"}}
    await harness.start(
        "waits", command=["sh", "-c", "echo $K"], env=[{"name": "K", "valueFrom": source}]
    )
    await harness.until("waits", lambda status: 'configmap "later" not found' in str(status))
    await harness.create(CONFIG_MAPS, "later", data={"k": "came"})
    assert (await harness.finished("waits"))["phase"] == "Succeeded"
    assert await harness.log("waits") == "came\n"


async def test_pod_over_its_deadline_fails(harness: NodeHarness) -> None:
    status = await harness.run("deadline", command=["sleep", "60"], activeDeadlineSeconds=4)
    assert (status["phase"], status["reason"]) == ("Failed", "DeadlineExceeded")
    assert exit_code(status) == 143


async def test_program_that_handles_sigterm_ends_at_once(harness: NodeHarness) -> None:
    await harness.start(
        "obeys", command=["sh", "-c", "trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done"]
    )
    await harness.until("obeys", lambda status: status["phase"] == "Running")
    await harness.delete("obeys", grace_period_s=60)
    await harness.gone("obeys")


async def test_program_that_ignores_sigterm_is_killed_after_its_grace_period(
    harness: NodeHarness,
) -> None:
    await harness.start("ignores", command=["sh", "-c", "trap '' TERM; echo up; sleep 60"])
    await harness.until("ignores", lambda status: status["phase"] == "Running")
    await harness.delete("ignores", grace_period_s=1)
    await harness.gone("ignores")


async def test_grace_period_does_not_begin_again_with_each_change_of_the_pod(
    harness: NodeHarness,
) -> None:
    await harness.start("edited", command=["sh", "-c", "trap '' TERM; echo up; sleep 60"])
    await harness.until("edited", lambda status: status["phase"] == "Running")
    await harness.delete("edited", grace_period_s=2)
    # Until it is gone.
    async with asyncio.timeout(15):
        with suppress(NotFoundError):
            for number in itertools.count():
                edit = {"metadata": {"annotations": {"edit": str(number)}}}
                await harness.client.patch(PODS, ObjectKey("default", "edited"), edit)
                await asyncio.sleep(0.5)


async def test_lifecycle_of_a_pod_takes_few_writes(harness: NodeHarness) -> None:
    def writes() -> int:
        return sum(
            count
            for request, count in harness.cluster.server.audit.items()
            if request.subresource == "status" and request.resource == "pods"
        )

    before = writes()
    await harness.run("writes")
    assert 1 <= writes() - before <= 4


async def test_finished_pod_can_be_read_until_it_is_deleted(harness: NodeHarness) -> None:
    await harness.run("stays", command=["echo", "hello"])
    assert await harness.log("stays") == "hello\n"
    await harness.delete("stays")
    await harness.gone("stays")
    with pytest.raises(NotFoundError):
        await harness.log("stays")


async def test_end_of_the_log_is_the_message_of_a_failed_container(harness: NodeHarness) -> None:
    script = "import sys; print('x' * 5000); sys.exit('the loss is not finite')"
    main = make_container(
        command=["python3", "-c", script], terminationMessagePolicy="FallbackToLogsOnError"
    )
    status = await harness.run("failed", containers=[main])
    message = container(status)["state"]["terminated"]["message"]
    assert len(message) == 2048
    assert message.endswith("x\nthe loss is not finite\n")
