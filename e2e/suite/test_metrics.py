"""A real Prometheus with our alerts scrapes both controllers, with some jobs."""

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Final

import pytest
import yaml

from dlctl.api.json_types import JSON
from e2e import install
from e2e.kubectl import Kubectl
from e2e.prometheus import Prometheus, port_forward, scraping
from e2e.suite import jobs
from e2e.suite.namespaces import own_namespace

MONITORING: Final = install.MANIFESTS / "components" / "monitoring"
PORT: Final = 8080
# Named like those of Go controllers, against Prometheus' conventions.
UPSTREAM: Final = ("rest_client_", "reflector_", "workqueue_", "leader_election_", "controller_")
SERIES: Final = re.compile(r"([a-z_]+)\{")


def rules() -> JSON:
    spec: JSON = yaml.safe_load((MONITORING / "prometheusrule.yaml").read_text())["spec"]
    return spec


def expressions() -> Iterator[str]:
    """Yield the expressions of alerts and dashboard, with values for the dashboard's variables."""
    yield from (rule["expr"] for group in rules()["groups"] for rule in group["rules"])
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"].replace("$__rate_interval", "1m").replace("$kind", ".*")


def exposed(address: str, token: str = "") -> str:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"http://{address}/metrics", headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        text: str = answer.read().decode()
        return text


@pytest.fixture(scope="module")
def addresses(controller: Kubectl) -> Iterator[Mapping[str, str]]:
    """The local address of each controller's metrics."""
    names = [pod["metadata"]["name"] for pod in install.controllers(controller)]
    with ExitStack() as stack:
        yield {n: stack.enter_context(port_forward(controller, n, PORT)) for n in names}


@pytest.fixture(scope="module")
def namespace(cluster: Kubectl, controller: Kubectl) -> Iterator[str]:
    """A namespace with a running job, two succeeded ones and a failed one."""
    with own_namespace(cluster) as kubectl:
        commands = {"runs": "sleep 600", "done": "true", "done-too": "true", "fails": "exit 1"}
        kubectl.apply(
            *(
                jobs.mxjob(name, jobs.replicas("WORKER", 1, ["sh", "-c", command]))
                for name, command in commands.items()
            )
        )
        jobs.running(kubectl, "runs", within_s=120)
        for name in ("done", "done-too", "fails"):
            jobs.ended(kubectl, name, within_s=120)
        yield kubectl.namespace


@pytest.fixture(scope="module")
def prometheus(
    addresses: Mapping[str, str], namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    if shutil.which("prometheus") is None:
        pytest.skip("prometheus is not there: it is in Debian's package of that name")
    with scraping(addresses, rules(), tmp_path_factory.mktemp("prometheus")) as prometheus:
        yield prometheus


def until(kubectl: Kubectl, prometheus: Prometheus, expression: str, value: float) -> None:
    kubectl.until(
        lambda: prometheus.value(expression) == value, within_s=60, what=f"{value} = {expression}"
    )


def test_both_replicas_are_scraped_and_one_leads(
    controller: Kubectl, prometheus: Prometheus
) -> None:
    until(controller, prometheus, 'count(up{job="dlctl"} == 1)', 2)
    until(controller, prometheus, 'count(leader_election_master_status{job="dlctl"})', 2)
    until(controller, prometheus, 'sum(leader_election_master_status{job="dlctl"})', 1)


@pytest.mark.parametrize(("phase", "count"), [("Running", 1), ("Done", 3)])
def test_leader_counts_jobs_by_phase(
    controller: Kubectl, prometheus: Prometheus, namespace: str, phase: str, count: int
) -> None:
    selector = f'{{job="dlctl",kind="mxjobs.kubeflow.org",namespace="{namespace}",phase="{phase}"}}'
    until(controller, prometheus, f"dlctl_jobs{selector}", count)


def test_finished_jobs_are_counted_by_result(controller: Kubectl, prometheus: Prometheus) -> None:
    count = 'dlctl_job_run_duration_seconds_count{job="dlctl",kind="mxjobs.kubeflow.org"'
    for result in ("succeeded", "failed"):
        expression = f'sum({count},result="{result}"}}) > 0'
        probe = partial(prometheus.value, expression)
        controller.until(probe, within_s=60, what=expression)


def test_every_alert_can_be_evaluated(controller: Kubectl, prometheus: Prometheus) -> None:
    expected = {rule["alert"] for group in rules()["groups"] for rule in group["rules"]}

    def healthy() -> bool:
        groups = (prometheus.ask("rules") or {"groups": ()})["groups"]
        found = {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}
        assert "err" not in found.values(), found
        return set(found) == expected and set(found.values()) == {"ok"}

    controller.until(healthy, within_s=60, what="all alerts to be evaluated")


def test_healthy_cluster_fires_no_alert(prometheus: Prometheus) -> None:
    firing = [a for a in prometheus.ask("alerts")["alerts"] if a["state"] == "firing"]
    assert firing == []


def test_metrics_of_alerts_and_dashboard_exist(
    controller: Kubectl, prometheus: Prometheus, addresses: Mapping[str, str]
) -> None:
    named = {name for expression in expressions() for name in SERIES.findall(expression)}
    seen = set(prometheus.ask("label/__name__/values"))
    # Counters of incidents have no series before the first one.
    helped = set(re.findall(r"^# HELP (\S+)", exposed(next(iter(addresses.values()))), re.M))
    unseen = {re.sub("_(bucket|sum|count)$", "", name): name for name in named - seen}
    missing = {name for family, name in unseen.items() if not {family, name} & helped}
    assert len(named) > 15
    assert missing == set()


def test_prometheus_accepts_every_expression(prometheus: Prometheus) -> None:
    assert [asked for asked in expressions() if prometheus.ask("query", query=asked) is None] == []


def test_promtool_accepts_the_metrics_of_every_replica(addresses: Mapping[str, str]) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not there: it is in Debian's package prometheus")
    for address in addresses.values():
        command = ["promtool", "check", "metrics"]
        sent = exposed(address)
        done = subprocess.run(command, input=sent, text=True, capture_output=True, check=False)
        complaints = [line for line in done.stderr.splitlines() if not line.startswith(UPSTREAM)]
        assert complaints == []


def test_metrics_authentication_admits_only_authorized_accounts(
    cluster: Kubectl, controller: Kubectl, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with own_namespace(cluster) as kubectl:
        folder = install.kustomization(
            tmp_path_factory.mktemp("authentication"),
            jobs.IMAGE,
            "single-namespace",
            components=["metrics-authentication"],
            namespace=kubectl.namespace,
            # Cluster-wide, and already installed.
            patches=[{"target": {"kind": "CustomResourceDefinition"}, "patch": DELETE}],
        )
        with install.installed(cluster, folder, kubectl.namespace):
            pod = install.controllers(cluster, kubectl.namespace)[0]["metadata"]["name"]
            with port_forward(kubectl, pod, PORT) as address:
                check_authentication(kubectl, address)


DELETE: Final = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: any
$patch: delete
"""


def check_authentication(kubectl: Kubectl, address: str) -> None:
    def status(token: str) -> int:
        try:
            exposed(address, token)
        except urllib.error.HTTPError as error:
            return error.code
        return 200

    tokens = {}
    for name in ("scraper", "unauthorized"):
        kubectl("create", "serviceaccount", name)
        tokens[name] = kubectl("create", "token", name).strip()
    subject = f"--serviceaccount={kubectl.namespace}:scraper"
    binding = f"{kubectl.namespace}-scraper"
    kubectl("create", "clusterrolebinding", binding, "--clusterrole=dlctl-metrics-reader", subject)
    try:
        assert status("") == 401
        assert status("nobody's") == 403
        assert status(tokens["unauthorized"]) == 403
        assert status(tokens["scraper"]) == 200
    finally:
        kubectl("delete", "clusterrolebinding", binding)
