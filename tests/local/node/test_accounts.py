"""What a pod may do at the API server: it comes there as its service account."""

from typing import Any

import pytest

from tests.local.node.builders import make_container
from tests.local.node.lab import Lab
from tests.local.node.rights import ACCOUNTS, grant, rule

pytestmark = pytest.mark.asyncio(loop_scope="module")

FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
# As clients of all languages find their cluster.
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
def _isolated(lab: Lab) -> None:
    if not lab.isolated:
        pytest.skip(f"no namespaces: {lab.cluster.network.reason}")


async def ask(lab: Lab, name: str, path: str, *more: str, **spec: Any) -> str:
    await lab.run(name, command=["python3", "-c", ASK, path, *more], **spec)
    return (await lab.log(name)).strip()


async def test_pod_reaches_the_server_with_no_rights_but_those_granted(lab: Lab) -> None:
    path = "/api/v1/namespaces/default/pods"
    assert await ask(lab, "plain", path) == "403"
    assert await ask(lab, "named", "/version", "kubernetes.default.svc") == "200"
    await grant(lab, "reader", rule("pods", "list"))
    assert await ask(lab, "reader", path, serviceAccountName="reader") == "200"


async def test_account_is_told_by_files_that_cannot_be_changed(lab: Lab) -> None:
    script = f"cd {FOLDER}; ls; cat namespace; echo; echo x >token"
    await lab.run("files", command=["sh", "-c", script])
    log = await lab.log("files")
    assert log.startswith("ca.crt\nnamespace\ntoken\ndefault\n"), log
    assert "Read-only file system" in log


@pytest.mark.parametrize("said_by", ["pod", "account"])
async def test_pod_that_wants_no_token_has_none(lab: Lab, said_by: str) -> None:
    name = f"no-token-{said_by}"
    spec: dict[str, Any] = {"serviceAccountName": name}
    await lab.create(ACCOUNTS, name, automountServiceAccountToken=said_by == "pod")
    if said_by == "pod":
        spec["automountServiceAccountToken"] = False
    await lab.run(name, command=["sh", "-c", f"ls {FOLDER}; true"], **spec)
    assert "No such file" in await lab.log(name)


async def test_pod_waits_for_its_account(lab: Lab) -> None:
    await lab.start("waits", serviceAccountName="later")
    await lab.warning('serviceaccount \\"default/later\\" not found')
    await lab.create(ACCOUNTS, "later")
    await lab.finished("waits")


async def test_own_volume_may_take_the_place_of_the_account(lab: Lab) -> None:
    mounts = [{"name": "own", "mountPath": FOLDER}]
    await lab.run(
        "own",
        volumes=[{"name": "own", "emptyDir": {}}],
        containers=[make_container(command=["ls", FOLDER], volumeMounts=mounts)],
    )
    assert await lab.log("own") == ""


async def test_server_is_behind_the_same_door_when_other_pods_have_gone(lab: Lab) -> None:
    # The address that pods keep in mind for half a minute.
    look = "\nprint([line.split()[3] for line in open('/proc/net/arp') if '10.244.0.1 ' in line])"
    seen = set()
    for name in ("early", "late"):
        await lab.run(name, command=["python3", "-c", ASK + look, "/version"])
        seen.add(await lab.log(name))
        await lab.delete(name)
        await lab.gone(name)
    assert len(seen) == 1, seen
    assert ":" in seen.pop()
