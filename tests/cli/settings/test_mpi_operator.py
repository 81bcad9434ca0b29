"""Deployments of mpi-operator start dlctl with their flags unchanged."""

import pytest

from dlctl.cli.settings import et_operator, mpi_operator, training_operator
from dlctl.cli.settings.compat_flags import ineffective_flags
from dlctl.options import Options
from tests.cli.settings.flags import parsed, read


@pytest.mark.parametrize(
    "arguments",
    [
        ("--gang-scheduling=volcano", "--lock-namespace=mpi", "--kubeConfig=/a"),
        ("-gang-scheduling", "volcano", "-lock-namespace", "mpi", "-kubeConfig", "/a"),
    ],
)
def test_flags_of_its_deployments_are_settings(arguments: tuple[str, ...]) -> None:
    assert read(*arguments) == Options(
        gang_scheduler_name="volcano", leader_election_namespace="mpi", kubeconfig="/a"
    )


@pytest.mark.parametrize(("port", "address"), [("8000", ":8000"), ("0", ""), (":8000", ":8000")])
def test_monitoring_port_is_the_address_of_the_metrics(port: str, address: str) -> None:
    assert read("-monitoring-port", port).metrics_address == address


def test_flags_without_effect_are_accepted_with_a_warning() -> None:
    arguments = (
        "-alsologtostderr",
        "--logtostderr=true",
        "--stderrthreshold=INFO",
        "--master=",
        "--threadiness=4",
        "--controller-queue-rate-limit=10",
        "--controller-queue-burst=100",
    )
    told = dict(ineffective_flags(parsed(*arguments), Options()))
    assert told == dict(mpi_operator.IGNORED)


def test_its_flags_do_not_clash_with_those_of_others() -> None:
    own = {*mpi_operator.ALIASES, *mpi_operator.IGNORED}
    others = {*training_operator.IGNORED, *et_operator.ALIASES, *et_operator.IGNORED}
    assert own.isdisjoint(others)
