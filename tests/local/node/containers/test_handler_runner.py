"""Probes and hooks of pods, on either network."""

from typing import Any

import pytest

from e2e.cluster.addresses import free_port
from tests.local.node.builders import make_container
from tests.local.node.harness import NodeHarness, Wire, container, exit_code

pytestmark = pytest.mark.asyncio(loop_scope="module")

# Answers each request with the status code that its path names.
SERVE = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(int(self.path[1:]))
        self.end_headers()
    def log_message(self, *args):
        pass
http.server.HTTPServer(("", int(sys.argv[1])), Handler).serve_forever()
"""
FOREVER = "trap 'exit 3' TERM; while :; do sleep 0.02; done"
# The signal may come before the trap is set.
ENDED = (3, 143)


def probe(action: str, *, failures: int = 1, **fields: Any) -> dict[str, Any]:
    return {action: fields, "periodSeconds": 1, "failureThreshold": failures, "timeoutSeconds": 5}


def command(script: str) -> dict[str, Any]:
    return {"command": ["sh", "-c", script]}


async def start(harness: NodeHarness, name: str, *argv: str, spec: Wire, **pod: Any) -> None:
    main = make_container(command=list(argv), **spec)
    await harness.start(name, containers=[main], terminationGracePeriodSeconds=1, **pod)


def ready(status: Wire) -> bool:
    return bool(status.get("containerStatuses")) and bool(container(status)["ready"])


async def end(harness: NodeHarness, name: str) -> None:
    await harness.delete(name, grace_period_s=0)
    await harness.gone(name)


async def test_container_without_probes_is_ready_when_it_runs(harness: NodeHarness) -> None:
    await start(harness, "plain", "sh", "-c", FOREVER, spec={})
    status = await harness.until("plain", lambda status: status["phase"] == "Running")
    assert (container(status)["ready"], container(status)["started"]) == (True, True)
    await end(harness, "plain")


@pytest.mark.parametrize("action", ["httpGet", "tcpSocket"])
async def test_server_is_ready_once_it_answers(harness: NodeHarness, action: str) -> None:
    port = free_port()
    fields = {"port": "web"} | ({"path": "/204"} if action == "httpGet" else {})
    spec = {
        "ports": [{"name": "web", "containerPort": port}],
        "readinessProbe": probe(action, **fields, failures=60),
    }
    name = f"ready-{action.lower()}"
    await start(harness, name, "python3", "-c", SERVE, str(port), spec=spec)
    status = await harness.until(name, ready)
    conditions = {each["type"]: each["status"] for each in status["conditions"]}
    assert conditions["Ready"] == "True"
    await end(harness, name)


async def test_status_code_that_is_an_error_keeps_a_container_unready(harness: NodeHarness) -> None:
    port = free_port()
    spec = {"readinessProbe": probe("httpGet", port=port, path="/503")}
    await start(harness, "unready", "python3", "-c", SERVE, str(port), spec=spec)
    await harness.warning("Readiness probe failed: HTTP probe failed with statuscode: 503")
    status = await harness.until("unready", lambda status: status["phase"] == "Running")
    assert (container(status)["ready"], container(status)["started"]) == (False, True)
    await end(harness, "unready")


async def test_readiness_follows_a_command_in_the_container(harness: NodeHarness) -> None:
    spec = {
        "env": [{"name": "WORD", "value": "seen"}],
        "readinessProbe": probe("exec", **command('test "$WORD" = seen')),
    }
    await start(harness, "commanded", "sh", "-c", FOREVER, spec=spec)
    await harness.until("commanded", ready)
    await end(harness, "commanded")


async def test_failing_liveness_probe_restarts_the_container(harness: NodeHarness) -> None:
    spec = {"livenessProbe": probe("exec", **command("echo stuck; exit 7"))}
    await start(harness, "stuck", "sh", "-c", FOREVER, spec=spec, restartPolicy="OnFailure")
    await harness.warning("Liveness probe failed: stuck")
    status = await harness.until(
        "stuck", lambda status: status["containerStatuses"][0]["restartCount"] > 0
    )
    assert container(status)["lastState"]["terminated"]["exitCode"] in ENDED
    await end(harness, "stuck")


async def test_failing_liveness_probe_ends_a_pod_that_never_restarts(harness: NodeHarness) -> None:
    mounts = [{"name": "room", "mountPath": "/room"}]
    spec = {
        "startupProbe": probe("exec", **command("test -e /room/up"), failures=60),
        "livenessProbe": probe("tcpSocket", port=1),
        "volumeMounts": mounts,
    }
    script = "trap '' TERM; touch /room/up; sleep 60"
    volumes = [{"name": "room", "emptyDir": {}}]
    await start(harness, "ends", "sh", "-c", script, spec=spec, volumes=volumes)
    status = await harness.finished("ends")
    # It ignores SIGTERM; SIGKILL follows after the grace period.
    assert (status["phase"], exit_code(status)) == ("Failed", 137)


async def test_other_probes_wait_for_the_startup_probe(harness: NodeHarness) -> None:
    mounts = [{"name": "room", "mountPath": "/room"}]
    spec = {
        "startupProbe": probe("exec", **command("test -e /room/up"), failures=60),
        "livenessProbe": probe("exec", **command("test -e /room/up")),
        "volumeMounts": mounts,
    }
    script = f"touch /room/up; {FOREVER}"
    hook = {"postStart": {"exec": command("test -e /room")}}
    await start(
        harness,
        "slow",
        "sh",
        "-c",
        script,
        spec=spec | {"lifecycle": hook},
        volumes=[{"name": "room", "emptyDir": {}}],
    )
    status = await harness.until("slow", ready)
    assert (container(status)["started"], container(status)["restartCount"]) == (True, 0)
    await end(harness, "slow")


async def test_failing_startup_probe_ends_the_container(harness: NodeHarness) -> None:
    spec = {"startupProbe": probe("exec", **command("exit 1"))}
    await start(harness, "never-up", "sh", "-c", FOREVER, spec=spec)
    assert exit_code(await harness.finished("never-up")) in ENDED


async def test_container_runs_once_its_hook_after_the_start_succeeds(harness: NodeHarness) -> None:
    mounts = [{"name": "room", "mountPath": "/room"}]
    hook = {"postStart": {"exec": command("echo hooked > /room/hook")}}
    spec = {"lifecycle": hook, "volumeMounts": mounts}
    script = "until test -e /room/hook; do sleep 0.02; done; cat /room/hook; " + FOREVER
    volumes = [{"name": "room", "emptyDir": {}}]
    await start(harness, "hooked", "sh", "-c", script, spec=spec, volumes=volumes)
    await harness.until("hooked", lambda status: status["phase"] == "Running")
    assert await harness.first_line("hooked") == "hooked"
    await end(harness, "hooked")


async def test_failing_hook_after_the_start_ends_the_container(harness: NodeHarness) -> None:
    spec = {"lifecycle": {"postStart": {"exec": command("echo no; exit 1")}}}
    await start(harness, "unhooked", "sh", "-c", FOREVER, spec=spec)
    await harness.warning("PostStartHook failed: no")
    assert exit_code(await harness.finished("unhooked")) in ENDED


async def test_hook_before_the_stop_runs_before_the_signal(harness: NodeHarness) -> None:
    mounts = [{"name": "room", "mountPath": "/room"}]
    spec: Any = {
        "lifecycle": {"preStop": {"exec": command("echo drained > /room/state")}},
        "volumeMounts": mounts,
    }
    script = "trap 'cat /room/state; exit 0' TERM; echo up; while :; do sleep 0.02; done"
    volumes = [{"name": "room", "emptyDir": {}}]
    main = make_container(command=["sh", "-c", script], **spec)
    await harness.start("drains", containers=[main], volumes=volumes, activeDeadlineSeconds=4)
    status = await harness.finished("drains")
    assert exit_code(status) == 0
    assert await harness.log("drains") == "up\ndrained\n"


async def test_hook_that_takes_too_long_does_not_prevent_the_end(harness: NodeHarness) -> None:
    spec = {"lifecycle": {"preStop": {"exec": command("sleep 60")}}}
    await start(harness, "drags", "sh", "-c", FOREVER, spec=spec)
    await harness.until("drags", lambda status: status["phase"] == "Running")
    await harness.delete("drags", grace_period_s=1)
    await harness.gone("drags")


async def test_sidecar_starts_before_the_container_and_ends_after_it(harness: NodeHarness) -> None:
    mounts = [{"name": "room", "mountPath": "/room"}]
    beside = (
        "touch /room/beside; trap 'test -e /room/done && echo last; exit 0' TERM;"
        "while :; do sleep 0.02; done"
    )
    sidecar = make_container(
        "beside",
        command=["sh", "-c", beside],
        restartPolicy="Always",
        startupProbe=probe("exec", **command("test -e /room/beside"), failures=60),
        volumeMounts=mounts,
    )
    after = make_container(
        "after", command=["sh", "-c", "test -e /room/beside"], volumeMounts=mounts
    )
    main = make_container(
        command=["sh", "-c", "test -e /room/beside && touch /room/done"], volumeMounts=mounts
    )
    status = await harness.run(
        "pair",
        initContainers=[sidecar, after],
        containers=[main],
        volumes=[{"name": "room", "emptyDir": {}}],
    )
    assert status["phase"] == "Succeeded"
    assert await harness.log("pair", container="beside") == "last\n"


async def test_sidecar_restarts_in_a_pod_that_never_does(harness: NodeHarness) -> None:
    mounts = [{"name": "room", "mountPath": "/room"}]
    script = "test -e /room/again || { touch /room/again; exit 1; }; " + FOREVER
    sidecar = make_container(
        "beside", command=["sh", "-c", script], restartPolicy="Always", volumeMounts=mounts
    )
    await start(
        harness,
        "restless",
        "sh",
        "-c",
        FOREVER,
        spec={},
        initContainers=[sidecar],
        volumes=[{"name": "room", "emptyDir": {}}],
    )
    status = await harness.until(
        "restless",
        lambda status: any(
            each["restartCount"] for each in status.get("initContainerStatuses", ())
        ),
    )
    assert status["phase"] in ("Pending", "Running")
    await end(harness, "restless")


async def test_pod_whose_sidecar_does_not_start_can_be_deleted(harness: NodeHarness) -> None:
    sidecar = make_container(
        "beside",
        command=["sh", "-c", FOREVER],
        restartPolicy="Always",
        startupProbe=probe("exec", **command("exit 1"), failures=60),
    )
    await start(harness, "hangs", "true", spec={}, initContainers=[sidecar])
    await harness.warning("Startup probe failed: the command exited with code 1")
    await harness.delete("hangs", grace_period_s=10)
    await harness.gone("hangs")


async def test_probe_of_a_closed_port_says_why_it_failed(harness: NodeHarness) -> None:
    probe = {"tcpSocket": {"port": 9}, "periodSeconds": 1}
    main = make_container(command=["sleep", "60"], readinessProbe=probe)
    await harness.start("closed-port", containers=[main])
    await harness.warning(":9: Connection refused")
    await harness.delete("closed-port")
    await harness.gone("closed-port")
