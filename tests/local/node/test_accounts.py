"""Access of pods to the API server, as their service accounts."""

from typing import Any

import pytest

from tests.local.node.builders import make_container
from tests.local.node.harness import NodeHarness
from tests.local.node.rbac import ACCOUNTS, grant, rule

pytestmark = pytest.mark.asyncio(loop_scope="module")

FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
# The in-cluster configuration of clients in all languages.
ASK = """
import os, ssl, sys, urllib.error, urllib.request
folder = "/var/run/secrets/kubernetes.io/serviceaccount/"
host = sys.argv[2] if len(sys.argv) > 2 else os.environ["KUBERNETES_SERVICE_HOST"]
url = f"https://{host}:{os.environ['KUBERNETES_SERVICE_PORT']}{sys.argv[1]}"
token = open(folder + "token").read()
request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
context = ssl.create_default_context(cafile=folder + "ca.crt")
try:
    with urllib.request.urlopen(request, context=context) as answer:
        print(answer.status)
except urllib.error.HTTPError as error:
    print(error.code)
"""


@pytest.fixture(autouse=True)
def _isolated(harness: NodeHarness) -> None:
    if not harness.isolated:
        pytest.skip(f"no namespaces: {harness.cluster.network.reason}")


async def ask(harness: NodeHarness, name: str, path: str, *more: str, **spec: Any) -> str:
    await harness.run(name, command=["python3", "-c", ASK, path, *more], **spec)
    return (await harness.log(name)).strip()


async def test_pod_reaches_the_server_with_only_its_granted_rights(
    harness: NodeHarness,
) -> None:
    path = "/api/v1/namespaces/default/pods"
    assert await ask(harness, "plain", path) == "403"
    assert await ask(harness, "named", "/version", "kubernetes.default.svc") == "200"
    await grant(harness, "reader", rule("pods", "list"))
    assert await ask(harness, "reader", path, serviceAccountName="reader") == "200"


async def test_service_account_files_are_read_only(harness: NodeHarness) -> None:
    script = f"cd {FOLDER}; ls; cat namespace; echo; echo x >token"
    await harness.run("files", command=["sh", "-c", script])
    log = await harness.log("files")
    assert log.startswith("ca.crt\nnamespace\ntoken\ndefault\n"), log
    assert "Read-only file system" in log


@pytest.mark.parametrize("said_by", ["pod", "account"])
async def test_pod_without_automount_has_no_token(harness: NodeHarness, said_by: str) -> None:
    name = f"no-token-{said_by}"
    spec: dict[str, Any] = {"serviceAccountName": name}
    await harness.create(ACCOUNTS, name, automountServiceAccountToken=said_by == "pod")
    if said_by == "pod":
        spec["automountServiceAccountToken"] = False
    await harness.run(name, command=["sh", "-c", f"ls {FOLDER}; true"], **spec)
    assert "No such file" in await harness.log(name)


async def test_pod_waits_for_its_account(harness: NodeHarness) -> None:
    await harness.start("waits", serviceAccountName="later")
    await harness.warning('serviceaccount \\"default/later\\" not found')
    await harness.create(ACCOUNTS, "later")
    await harness.finished("waits")


async def test_own_volume_can_replace_the_service_account(harness: NodeHarness) -> None:
    mounts = [{"name": "own", "mountPath": FOLDER}]
    await harness.run(
        "own",
        volumes=[{"name": "own", "emptyDir": {}}],
        containers=[make_container(command=["ls", FOLDER], volumeMounts=mounts)],
    )
    assert await harness.log("own") == ""


async def test_server_address_is_stable_when_other_pods_are_deleted(
    harness: NodeHarness,
) -> None:
    # The address that pods cache for half a minute.
    look = "\nprint([line.split()[3] for line in open('/proc/net/arp') if '10.244.0.1 ' in line])"
    seen = set()
    for name in ("early", "late"):
        await harness.run(name, command=["python3", "-c", ASK + look, "/version"])
        seen.add(await harness.log(name))
        await harness.delete(name)
        await harness.gone(name)
    assert len(seen) == 1, seen
    assert ":" in seen.pop()
