"""Pods that log in to each other with keys from a Secret, wherever the image's user has them.

sshd of root and of an ordinary user differ, so that the second runs these tests as well.
"""

import base64
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from dlctl.api.meta import SECRETS, SERVICES
from dlctl.frameworks.ssh_keys import ed25519_pair
from tests.local.node.builders import make_container
from tests.local.node.harness import NodeHarness

SSHD: Final = "/usr/sbin/sshd"
FILES: Final = {"id_rsa": "private", "id_rsa.pub": "public", "authorized_keys": "public"}
LOGIN: Final = (
    "until there=$(ssh $0.$1.default.svc 'echo $(hostname) $PATH'); do sleep 0.1; done;"
    'echo "$there is $0 $PATH"; echo root may: $OMPI_ALLOW_RUN_AS_ROOT'
)
PROJECT: Final = Path(__file__).parents[4]

pytestmark = pytest.mark.skipif(
    shutil.which("ssh") is None or not os.access(SSHD, os.X_OK), reason="no OpenSSH"
)


async def create_keys(harness: NodeHarness, name: str) -> None:
    private, public = (base64.b64encode(key).decode() for key in ed25519_pair(name))
    await harness.create(SECRETS, name, data={"private": private, "public": public})


def spec(secret: str, path: str, command: list[str], **fields: Any) -> dict[str, Any]:
    items = [{"key": key, "path": name} for name, key in FILES.items()]
    container = make_container(command=command, image="mapped", **fields)
    container["volumeMounts"] = [{"name": "keys", "mountPath": path}]
    return {
        "containers": [container],
        "subdomain": secret,
        "volumes": [{"name": "keys", "secret": {"secretName": secret, "items": items}}],
    }


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("name", "path", "sshd", "fields"),
    [
        ("root", "/root/.ssh", [], {}),
        (
            "mpiuser",
            "/home/mpiuser/.ssh",
            ["-h", "/home/mpiuser/.ssh/id_rsa"],
            {"securityContext": {"runAsUser": 1000}},
        ),
    ],
)
async def test_pods_log_in_where_the_user_of_the_image_has_the_keys(
    harness: NodeHarness, name: str, path: str, sshd: list[str], fields: dict[str, Any]
) -> None:
    if not harness.isolated:
        pytest.skip(f"no namespaces: {harness.cluster.network.reason}")
    await create_keys(harness, name)
    await harness.create(SERVICES, name, spec={"clusterIP": "None", "selector": {"app": name}})
    worker, launcher = f"{name}-worker", f"{name}-launcher"
    login = ["sh", "-c", LOGIN, worker, name]
    await harness.start(launcher, **spec(name, path, login, **fields))
    serve = spec(name, path, [SSHD, "-De", *sshd], **fields)
    await harness.start(worker, labels={"app": name}, **serve)

    status = await harness.finished(launcher)
    said = await harness.log(launcher)
    assert status["phase"] == "Succeeded", said
    *_, there, root = said.splitlines()
    assert there.startswith(f"{worker} /")
    assert len(set(there.split(" is "))) == 1
    assert root == ("root may: 1" if fields and os.geteuid() == 0 else "root may:")


def ordinary_user() -> pwd.struct_passwd:
    """Return a user with a home and a shell, or skip the test."""
    if os.geteuid() != 0:
        pytest.skip("only root can run tests as another user")
    for user in pwd.getpwall():
        shell = user.pw_shell.rpartition("/")[2]
        if user.pw_uid >= 1000 and shell in ("bash", "sh") and Path(user.pw_dir).is_dir():
            return user
    pytest.skip("the machine has no ordinary user")


@pytest.mark.slow
def test_ordinary_user_needs_no_rights_for_it() -> None:
    user = ordinary_user()
    python = "/usr/bin/python3"
    env = {"HOME": user.pw_dir, "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
    env["PYTHONPATH"] = os.pathsep.join([str(PROJECT), *filter(None, sys.path)])
    drop = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    probe = [*drop, python, "-c", "import pytest, dlctl"]
    if subprocess.run(probe, env=env, check=False, capture_output=True).returncode:
        pytest.skip(f"{user.pw_name} cannot read the project and its packages")
    tests = f"{__file__}::{test_pods_log_in_where_the_user_of_the_image_has_the_keys.__name__}"
    run = [python, "-m", "pytest", "-p", "no:cacheprovider", tests]
    done = subprocess.run(
        [*drop, *run], check=False, env=env, cwd=PROJECT, capture_output=True, text=True
    )
    assert "2 passed" in done.stdout, done.stdout
