"""SSH keys of an elastic job's pods: which ones they get, and where they are mounted.

Annotations of the job override et-operator's defaults. Pure: pod specs in and out.
"""

from collections.abc import Mapping
from typing import Final, Self

import attrs

from dlctl.api.json_types import ReadOnlyJSON
from dlctl.errors import InvalidJobError
from dlctl.frameworks import ssh_keys
from dlctl.frameworks.pod_changes import add_mounts, append_items

# Names an existing Secret that is used instead of a new one; arena sets it.
SECRET_ANNOTATION: Final = "arena.kubeflow.org/ssh-secret"
# The home directory of the user that programs run as, as in the image's /etc/passwd.
HOME_ANNOTATION: Final = "dlctl.dev/ssh-home"
# Lets workers log in to each other, which mpirun requires for many hosts.
BETWEEN_WORKERS_ANNOTATION: Final = "dlctl.dev/ssh-between-workers"
_ROOT_HOME: Final = "/root"
_VOLUME: Final = "training-job-ssh"
_CLIENT_CONFIG: Final = "config"
# Workers are new each time, so their host keys are unknown. The keep-alive closes connections to a
# worker that is lost with its node within a minute; otherwise programs would wait indefinitely.
_CLIENT_CONFIG_TEXT: Final = """\
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
LogLevel ERROR
ConnectTimeout 10
ServerAliveInterval 15
ServerAliveCountMax 4
"""
_SSH_DIRECTORY: Final = ".ssh"
_OWNER_ONLY: Final = 0o600
# Files owned by root must be readable for other users; ssh rejects this mode only for their own.
_READABLE: Final = 0o444
# Keys of the Secret, by file name.
_AUTHORIZED_KEYS: Final = {ssh_keys.AUTHORIZED_KEYS: ssh_keys.PUBLIC_KEY}
_ALL_KEYS: Final = {
    ssh_keys.PRIVATE_KEY: ssh_keys.PRIVATE_KEY,
    ssh_keys.PUBLIC_KEY: ssh_keys.PUBLIC_KEY,
    **_AUTHORIZED_KEYS,
    _CLIENT_CONFIG: _CLIENT_CONFIG,
}


@attrs.frozen
class SshAccess:
    """How the pods of one job get their SSH keys."""

    secret: str
    # True if dlctl creates the Secret.
    creates_secret: bool
    home: str
    between_workers: bool

    @classmethod
    def from_annotations(cls, job: str, annotations: Mapping[str, str]) -> Self:
        """Return the settings from the annotations of the job with this name.

        :raises InvalidJobError: naming the annotation and the fix.
        """
        given = annotations.get(SECRET_ANNOTATION, "")
        home = annotations.get(HOME_ANNOTATION) or _ROOT_HOME
        if not home.startswith("/") or ":" in home:
            field = f"metadata.annotations[{HOME_ANNOTATION}]"
            raise InvalidJobError("must be an absolute path, such as /home/me", field=field)
        between = annotations.get(BETWEEN_WORKERS_ANNOTATION) == "true"
        return cls(given or job, creates_secret=not given, home=home, between_workers=between)

    def launcher(self, pod_spec: ReadOnlyJSON) -> ReadOnlyJSON:
        """Return a pod spec whose containers can log in to workers."""
        return self._with_keys(pod_spec, _ALL_KEYS)

    def worker(self, pod_spec: ReadOnlyJSON) -> ReadOnlyJSON:
        """Return a pod spec whose containers accept logins."""
        return self._with_keys(pod_spec, _ALL_KEYS if self.between_workers else _AUTHORIZED_KEYS)

    def _with_keys(self, pod_spec: ReadOnlyJSON, files: Mapping[str, str]) -> ReadOnlyJSON:
        home = self.home.rstrip("/")
        mount = {
            "name": _VOLUME,
            "mountPath": f"{home}/{_SSH_DIRECTORY}",
            "subPath": _SSH_DIRECTORY,
        }
        containers = [add_mounts(container, mount) for container in pod_spec["containers"]]
        items = [{"key": key, "path": f"{_SSH_DIRECTORY}/{name}"} for name, key in files.items()]
        mode = _OWNER_ONLY if home == _ROOT_HOME else _READABLE
        secret = {"secretName": self.secret, "defaultMode": mode, "items": items}
        volume = {"name": _VOLUME, "secret": secret}
        return append_items({**pod_spec, "containers": containers}, volumes=[volume])


def secret_data(comment: str) -> Mapping[str, str]:
    """Return the ``data`` of a Secret with a new key."""
    private, public = ssh_keys.ed25519_pair(comment)
    return ssh_keys.secret_data(
        {
            ssh_keys.PRIVATE_KEY: private,
            ssh_keys.PUBLIC_KEY: public,
            _CLIENT_CONFIG: _CLIENT_CONFIG_TEXT.encode(),
        }
    )
