"""Installs dlctl like its users: by their own kustomization, which sets the image.

Everything goes through ``kubectl apply -k``; only what users patch is patched.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from dlctl.api.json_types import JSON
from e2e.kubectl import Kubectl

NAMESPACE: Final = "dlctl-system"
SELECTOR: Final = "app.kubernetes.io/name=dlctl,app.kubernetes.io/component=controller"
MANIFESTS: Final = Path(__file__).parents[1] / "manifests"
_ROLLOUT_S: Final = 120.0


def kustomization(
    folder: Path,
    image: str,
    overlay: str = "cluster-wide",
    *,
    components: Sequence[str] = (),
    **fields: Any,
) -> Path:
    """Write a kustomization over one of ours into an empty folder, and return the folder."""

    def ours(*parts: str) -> str:
        # Kustomize takes no absolute paths.
        return os.path.relpath(MANIFESTS.joinpath(*parts), folder.resolve())

    name, _, tag = image.rpartition(":")
    content = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [ours("overlays", overlay)],
        "components": [ours("components", name) for name in components],
        "images": [{"name": "dlctl", "newName": name, "newTag": tag}],
        **fields,
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(content))
    return folder


def environment(values: Mapping[str, str]) -> JSON:
    """Return a kustomization patch that runs controllers with these settings."""
    variables = [{"name": name, "value": value} for name, value in values.items()]
    container = {"name": "controller", "env": variables}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "dlctl", "namespace": NAMESPACE},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }
    return {"patch": yaml.safe_dump(deployment)}


@contextmanager
def installed(kubectl: Kubectl, folder: Path, namespace: str = NAMESPACE) -> Iterator[None]:
    """Apply a kustomization, wait for the controllers, and finally remove all of it."""
    kubectl("apply", "-k", str(folder))
    try:
        rolled_out(kubectl, namespace)
        yield
    finally:
        remove(kubectl, folder)


def remove(kubectl: Kubectl, folder: Path) -> None:
    arguments = ("--ignore-not-found", "--wait=true", f"--timeout={_ROLLOUT_S:g}s")
    kubectl("delete", "-k", str(folder), *arguments, within_s=_ROLLOUT_S + 5)


def rolled_out(kubectl: Kubectl, namespace: str = NAMESPACE) -> None:
    """Wait until all replicas are ready, and no old ones are left."""
    inside = kubectl.within(namespace)
    waiting = ("rollout", "status", "deployment/dlctl", f"--timeout={_ROLLOUT_S:g}s")
    inside(*waiting, within_s=_ROLLOUT_S + 5)


@contextmanager
def with_settings(controller: Kubectl, values: Mapping[str, str]) -> Iterator[None]:
    """Run controllers with these settings; ``controller`` is kubectl in their namespace."""
    controller("set", "env", "deployment/dlctl", *(f"{k}={v}" for k, v in values.items()))
    rolled_out(controller)
    yield
    controller("set", "env", "deployment/dlctl", *(f"{name}-" for name in values))
    rolled_out(controller)


def controllers(kubectl: Kubectl, namespace: str = NAMESPACE) -> list[JSON]:
    """Return the controller's pods that are not terminating."""
    pods = kubectl.within(namespace).items("pods", SELECTOR)
    return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]


def leader(kubectl: Kubectl, namespace: str = NAMESPACE) -> str:
    """Return the name of the pod that holds the lease, or an empty string."""
    lease = kubectl.within(namespace).get("lease", "dlctl")
    holder = lease["spec"].get("holderIdentity") if lease else ""
    return (holder or "").partition("_")[0]
