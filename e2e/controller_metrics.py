"""The controllers' own metrics, read through the API server.

For tests of errors that leave no other trace; no scraper is needed.
"""

from collections.abc import Iterator

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from e2e import install
from e2e.kubectl import Kubectl


def ask(controller: Kubectl, pod: str, path: str) -> str:
    """Return a controller's response to an HTTP request."""
    return controller("get", "--raw", f"{_pods(controller)}/{pod}:8080/proxy/{path}")


def samples(controller: Kubectl) -> Iterator[Sample]:
    """Yield all samples of all controllers."""
    for pod in install.controllers(controller):
        text = ask(controller, pod["metadata"]["name"], "metrics")
        for family in text_string_to_metric_families(text):
            yield from family.samples


def total(controller: Kubectl, *names: str) -> float:
    """Return the sum of some counters, over all their labels and all controllers."""
    return sum(sample.value for sample in samples(controller) if sample.name in names)


def _pods(controller: Kubectl) -> str:
    return f"/api/v1/namespaces/{controller.namespace}/pods"
