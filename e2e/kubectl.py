"""A cluster as its users know it: kubectl, which finds the kubeconfig by itself.

Each wait has a timeout and reports the state at its end.
"""

import json
import subprocess
import time
from collections.abc import Callable
from typing import Final, TypeVar

import attrs

from dlctl.api.json_types import JSON

T = TypeVar("T")
# Interval between polls, from the first to later ones: each costs a process.
_POLL_S: Final = 0.2
_POLL_CAP_S: Final = 1.0
_POLL_GROWTH: Final = 1.3
_CALL_S: Final = 60.0


class KubectlError(Exception):
    """kubectl failed; the message is its stderr."""


@attrs.frozen
class Kubectl:
    """kubectl in one namespace, or in the kubeconfig's own."""

    namespace: str = ""

    def __call__(self, *args: str, stdin: str = "", within_s: float = _CALL_S) -> str:
        """Run it and return what it printed.

        :raises KubectlError: if it failed, or took longer.
        """
        try:
            run = subprocess.run(
                self.command(*args),
                input=stdin,
                capture_output=True,
                text=True,
                check=False,
                timeout=within_s,
            )
        except subprocess.TimeoutExpired:
            raise KubectlError(f"kubectl {' '.join(args)}: no answer in {within_s:g} s") from None
        if run.returncode:
            raise KubectlError(f"kubectl {' '.join(args)}: {run.stderr.strip()}")
        return run.stdout

    def command(self, *args: str) -> list[str]:
        return ["kubectl", *(["--namespace", self.namespace] if self.namespace else []), *args]

    def within(self, namespace: str) -> "Kubectl":
        return attrs.evolve(self, namespace=namespace)

    def is_ready(self) -> bool:
        """Return whether the API server exists and is ready."""
        try:
            return self("get", "--raw", "/readyz", within_s=5) == "ok"
        except KubectlError:
            return False

    def apply(self, *manifests: JSON) -> None:
        whole = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        self("apply", "-f", "-", stdin=json.dumps(whole))

    def get(self, resource: str, name: str) -> JSON | None:
        """Return one object, or None if it does not exist."""
        found = self("get", resource, name, "-o", "json", "--ignore-not-found")
        return json.loads(found) if found else None

    def items(self, resource: str, selector: str = "") -> list[JSON]:
        found = self("get", resource, "-o", "json", "--selector", selector)
        items: list[JSON] = json.loads(found)["items"]
        return items

    def until(self, probe: Callable[[], T | None], *, within_s: float, what: str) -> T:
        """Return the first truthy result of the probe."""
        deadline, pause_s = time.monotonic() + within_s, _POLL_S
        while True:
            found = probe()
            if found:
                return found
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {within_s:g} s: {what}; last there was {found!r}")
            time.sleep(pause_s)
            pause_s = min(pause_s * _POLL_GROWTH, _POLL_CAP_S)
