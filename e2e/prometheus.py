"""A real Prometheus on this machine that scrapes forwarded ports of the cluster.

It is Debian's package; its data are in the caller's folder.
"""

import json
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import yaml

from dlctl.api.json_types import JSON
from e2e.kubectl import Kubectl

_STOP_S: Final = 10.0
_ANSWER_S: Final = 10.0


@attrs.frozen
class Prometheus:
    """The HTTP API of a running Prometheus."""

    url: str

    def ask(self, path: str, **parameters: str) -> Any:
        """Return the data of a response, or nothing as long as there is none."""
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(
                f"{self.url}/api/v1/{path}?{query}", timeout=_ANSWER_S
            ) as a:
                return json.load(a)["data"]
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return None

    def value(self, expression: str) -> float | None:
        """Return the current value of an expression that is a single number."""
        data = self.ask("query", query=expression) or {"result": ()}
        values = [float(series["value"][1]) for series in data["result"]]
        return values[0] if len(values) == 1 else None


@contextmanager
def scraping(targets: Mapping[str, str], rules: JSON, folder: Path) -> Iterator[Prometheus]:
    """Scrape addresses every second, each with a pod name, as our ServiceMonitor does."""
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [
            {
                "job_name": "dlctl",
                "honor_labels": True,
                "static_configs": [
                    {"targets": [address], "labels": {"pod": pod, "namespace": "dlctl-system"}}
                    for pod, address in targets.items()
                ],
            }
        ],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        shutil.which("prometheus") or "prometheus",
        f"--config.file={folder}/prometheus.yaml",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "log").open("wb") as log, background_process(command, stdout=log, stderr=log):
        yield Prometheus(f"http://127.0.0.1:{port}")


@contextmanager
def port_forward(kubectl: Kubectl, pod: str, port: int) -> Iterator[str]:
    """Forward a port of a pod to this machine; yield the local address."""
    command = kubectl.command("port-forward", f"pod/{pod}", f":{port}", "--address=127.0.0.1")
    with background_process(command, stdout=subprocess.PIPE, text=True) as process:
        # "Forwarding from 127.0.0.1:34567 -> 8080", or its end where that fails.
        line = process.stdout.readline() if process.stdout else ""
        assert "->" in line, f"the port of {pod} cannot be reached"
        yield line.split()[2]


@contextmanager
def background_process(command: list[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Run a program during the block, then stop it gracefully."""
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
