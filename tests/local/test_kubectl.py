"""The real kubectl against the embedded API server: what users type, and what they see.

Skipped without kubectl; the environment variable KUBECTL names one.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from dlctl.local.apiserver.endpoints.log_requests import LogRequest
from dlctl.local.apiserver.server import serve
from tests.local.apiserver.definitions import definition, gadget
from tests.local.kubectl import KUBECTL, Kubectl, lines

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "busybox",
                "command": ["sleep", "1"],
                "env": [{"name": "A", "value": "1"}],
            }
        ]
    },
}


@pytest.fixture
async def kubectl(tmp_path: Path) -> AsyncIterator[Kubectl]:
    async with serve() as server:
        config = tmp_path / "config"
        config.write_text(yaml.safe_dump(server.kubeconfig()))
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "KUBECONFIG": str(config),
        }
        yield Kubectl(server, environment)


async def test_pod_is_applied_shown_and_deleted(kubectl: Kubectl) -> None:
    assert await kubectl("apply", "-f", "-", stdin=POD) == "pod/web created\n"
    assert await kubectl("apply", "-f", "-", stdin=POD) == "pod/web unchanged\n"

    header, row = lines(await kubectl("get", "pods", "-o", "wide", "-l", "app=web"))
    assert header[:5] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row[:4] == ["web", "0/1", "Pending", "0"]
    (phase,) = lines(await kubectl("get", "pod/web", "-o", "jsonpath={.status.phase}"))
    assert phase == ["Pending"]
    assert "pod/web\n" == await kubectl(
        "get", "po", "-A", "-o", "name", "--field-selector", "status.phase=Pending"
    )

    assert "deleted" in await kubectl("delete", "pod", "web", "--force", "--grace-period=0")
    assert "No resources found" in await kubectl("get", "pods")


async def test_pod_is_described_with_its_events(kubectl: Kubectl) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "web", "namespace": "default"},
        "type": "Normal",
        "reason": "Pulled",
        "message": "Image is there",
        "source": {"component": "node"},
    }
    created = yaml.safe_load(await kubectl("create", "-o", "yaml", "-f", "-", stdin=POD))
    event["involvedObject"]["uid"] = created["metadata"]["uid"]  # type: ignore[index]
    await kubectl("create", "-f", "-", stdin=event)

    described = await kubectl("describe", "pod", "web")

    assert "QoS Class:" in described
    assert "Image is there" in described
    assert "pod/web" in await kubectl("get", "events")


async def test_metadata_and_spec_are_changed_by_every_kind_of_patch(kubectl: Kubectl) -> None:
    await kubectl.apply(POD)
    strategic = '{"spec":{"containers":[{"name":"main","image":"busybox:2"}]}}'

    await kubectl("label", "pod", "web", "tier=a")
    await kubectl("annotate", "pod", "web", "note=b")
    await kubectl("patch", "pod", "web", "-p", strategic)
    await kubectl("patch", "pod", "web", "--type=merge", "-p", '{"metadata":{"labels":{"x":"y"}}}')
    remove = '[{"op":"remove","path":"/metadata/labels/x"}]'
    await kubectl("patch", "pod", "web", "--type=json", "-p", remove)

    pod = yaml.safe_load(await kubectl("get", "pod", "web", "-o", "yaml"))
    assert pod["metadata"]["labels"] == {"app": "web", "tier": "a"}
    assert pod["metadata"]["annotations"]["note"] == "b"
    (container,) = pod["spec"]["containers"]
    assert (container["image"], container["command"]) == ("busybox:2", ["sleep", "1"])


async def test_unknown_and_invalid_fields_are_rejected_by_name(kubectl: Kubectl) -> None:
    misspelt = {**POD, "spec": {**POD["spec"], "restartPolice": "Never"}}  # type: ignore[dict-item]
    nonsense = {**POD, "spec": {"containers": [{"name": "main"}]}}

    said = await kubectl("apply", "-f", "-", stdin=misspelt, code=1)
    assert 'strict decoding error: unknown field "spec.restartPolice"' in said
    said = await kubectl("apply", "-f", "-", stdin=nonsense, code=1)
    assert 'The Pod "web" is invalid: spec.containers[0].image: Required value' in said


async def test_kubectl_create_generators_work(kubectl: Kubectl) -> None:
    await kubectl("create", "namespace", "team")
    await kubectl("create", "configmap", "cm", "--from-literal=a=b")
    await kubectl("create", "secret", "generic", "s", "--from-literal=a=b", "-n", "team")
    await kubectl("run", "bare", "--image=busybox", "--restart=Never", "--", "true")

    assert await kubectl("get", "cm", "cm", "-o", "jsonpath={.data.a}") == "b"
    secret = await kubectl("get", "secret", "s", "-n", "team", "-o", "jsonpath={.data.a}")
    assert secret == "Yg=="
    assert await kubectl("auth", "can-i", "create", "pods") == "yes\n"
    assert "*.*" in await kubectl("auth", "can-i", "--list")
    await kubectl("create", "serviceaccount", "me")
    assert (await kubectl("create", "token", "me", "--duration=1h")).count(".") == 2
    as_me = "--as=system:serviceaccount:default:me"
    assert await kubectl("auth", "can-i", "create", "pods", as_me, code=1) == "no\n"
    await kubectl("delete", "namespace", "team")
    assert "NotFound" in await kubectl("get", "namespace", "team", code=1)


async def test_logs_come_from_the_node(kubectl: Kubectl) -> None:
    async def logs(request: LogRequest) -> AsyncIterator[bytes]:
        yield f"{request.container} previous={request.previous}\n".encode()
        if request.follow:
            yield b"followed\n"

    kubectl.server.subresources.log_source = logs
    await kubectl.apply(POD)

    assert await kubectl("logs", "web") == "main previous=False\n"
    assert await kubectl("logs", "web", "-p") == "main previous=True\n"
    assert await kubectl("logs", "-f", "web") == "main previous=False\nfollowed\n"


async def test_custom_resource_is_served_by_its_crd(kubectl: Kubectl) -> None:
    await kubectl.apply(definition())
    await kubectl("wait", "--for=condition=Established", "crd/gadgets.test.io", "--timeout=5s")
    await kubectl.apply(gadget(size=3))

    assert lines(await kubectl("get", "gd", "-o", "wide"))[1][:3] == ["a", "3", "red"]
    assert "Size:" in await kubectl("describe", "gadget", "a")
    assert ["gadgets", "gd", "test.io/v1", "true", "Gadget"] in lines(
        await kubectl("api-resources")
    )
    said = await kubectl("apply", "-f", "-", stdin=gadget("b", size=7), code=1)
    assert 'The Gadget "b" is invalid: spec: Invalid value: not seven' in said

    await kubectl("delete", "crd", "gadgets.test.io")
    assert "could not find the requested resource" in await kubectl("get", "gadgets", code=1)


async def test_kinds_are_explained(kubectl: Kubectl) -> None:
    await kubectl.apply(definition())

    explained = await kubectl("explain", "gadgets.spec")
    assert "What is wanted." in explained
    assert "size\t<integer> -required-" in explained
    assert "How big." in explained
    assert "Name of the container" in await kubectl("explain", "pods.spec.containers.name")
    assert "size\t<integer> -required-" in await kubectl("explain", "gadgets", "--recursive")


async def test_unknown_kinds_are_named(kubectl: Kubectl) -> None:
    await kubectl.apply(definition())

    for version, kind in (("apps/v1", "Deployment"), ("test.io/v1", "Gdaget")):
        obj = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}}
        said = await kubectl("apply", "-f", "-", stdin=obj, code=1)
        assert f'no matches for kind "{kind}" in version "{version}"' in said
    explained = await kubectl("explain", "gadgets.spec", "--output=plaintext-openapiv2")
    assert "What is wanted." in explained


async def test_kubectl_wait_ends_when_the_condition_holds_or_the_object_is_deleted(
    kubectl: Kubectl,
) -> None:
    await kubectl.apply(definition())
    await kubectl.apply(gadget(size=3))
    done = '{"status":{"phase":"Done"}}'

    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(
            kubectl("wait", "--for=jsonpath={.status.phase}=Done", "gadget/a", "--timeout=10s")
        )
        await kubectl("patch", "gd", "a", "--subresource=status", "--type=merge", "-p", done)
    assert "condition met" in waiting.result()

    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(kubectl("wait", "--for=delete", "gadget/a", "--timeout=10s"))
        await kubectl("delete", "gadget", "a", "--cascade=foreground")


async def test_watch_prints_rows_as_objects_change(kubectl: Kubectl) -> None:
    await kubectl.apply(POD)

    async with kubectl.started("get", "pods", "-w") as process:
        assert process.stdout is not None
        async with asyncio.timeout(10):
            header = await process.stdout.readline()
            first = await process.stdout.readline()
            await kubectl("delete", "pod", "web", "--wait=false")
            last = await process.stdout.readline()

    assert header.split()[0] == b"NAME"
    assert first.split()[:3] == [b"web", b"0/1", b"Pending"]
    assert last.split()[0] == b"web"


async def test_kubectl_diff_and_replace_work(kubectl: Kubectl) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }
    await kubectl.apply(service)
    await kubectl("diff", "-f", "-", stdin=service)
    changed = {**service, "spec": {"selector": {"app": "other"}, "ports": [{"port": 80}]}}

    assert "+    app: other" in await kubectl("diff", "-f", "-", stdin=changed, code=1)
    await kubectl("replace", "-f", "-", stdin=changed)
    assert lines(await kubectl("get", "svc", "web", "-o", "wide"))[1][-1] == "app=other"


async def test_server_side_apply_names_conflicts_and_takes_over(kubectl: Kubectl) -> None:
    await kubectl.apply(definition())
    await kubectl("apply", "-f", "-", stdin=gadget(size=1))
    # From here on kubectl applies on the server what it has applied by itself.
    applied = await kubectl("apply", "--server-side", "-f", "-", stdin=gadget(size=2))
    assert applied == "gadget.test.io/a serverside-applied\n"
    other = ("apply", "--server-side", "--field-manager=other", "-f", "-")
    said = await kubectl(*other, stdin=gadget(size=3), code=1)
    assert 'conflict with "kubectl": .spec.size' in said
    await kubectl(*other, "--force-conflicts", stdin=gadget(size=3))
    shown = await kubectl("get", "gadget", "a", "-o", "yaml", "--show-managed-fields")
    managers = yaml.safe_load(shown)["metadata"]["managedFields"]
    assert {"f:size": {}}.items() <= next(
        each["fieldsV1"]["f:spec"] for each in managers if each["manager"] == "other"
    ).items()
    assert "+  size: 4" in await kubectl(
        "diff", "--server-side", "--field-manager=other", "-f", "-", stdin=gadget(size=4), code=1
    )


async def test_server_reports_its_version_and_paths(kubectl: Kubectl) -> None:
    assert "Server Version: v1.36" in await kubectl("version")
    assert "apiextensions.k8s.io/v1\n" in await kubectl("api-versions")
    assert "is running at" in await kubectl("cluster-info")
    assert await kubectl("get", "--raw", "/readyz") == "ok"
