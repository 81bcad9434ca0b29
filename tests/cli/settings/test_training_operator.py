from pathlib import Path

import pytest

from dlctl.cli.settings.compat_flags import ineffective_flags
from dlctl.cli.settings.schemes import enabled
from dlctl.cli.settings.training_operator import IGNORED
from dlctl.dialects.kinds import served_kinds
from dlctl.errors import ConfigError
from dlctl.frameworks.registry import load_frameworks
from dlctl.options import Options
from tests.cli.settings.flags import parsed, read
from tests.support.command_line import Dlctl


def test_flags_of_its_deployments_are_settings() -> None:
    found = read(
        *("--enable-scheme=tfjob", "--enable-scheme", "PyTorchJob,mpijob", "--namespace=ml"),
        *("--gang-scheduler-name=volcano", "--controller-threads=2", "--kube-api-qps=20"),
        *("--kube-api-burst=30", "--pytorch-init-container-image=busybox"),
        *("--pytorch-init-container-template-file=/t", "--pytorch-init-container-max-tries=3"),
        *("--mpi-kubectl-delivery-image=mpi", "--metrics-bind-address=:1"),
        *("--health-probe-bind-address=:2", "--leader-elect", "--leader-election-id=x"),
    )
    assert found == Options(
        enable_scheme=("tfjob", "PyTorchJob", "mpijob"),
        namespace="ml",
        gang_scheduler_name="volcano",
        kube_api_qps=20.0,
        kube_api_burst=30,
        pytorch_init_container_image="busybox",
        pytorch_init_container_template_file="/t",
        pytorch_init_container_max_tries=3,
        mpi_kubectl_delivery_image="mpi",
        metrics_bind_address=":1",
        health_probe_bind_address=":2",
        leader_elect=True,
        leader_election_id="x",
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("-kube-api-burst", "3", "-leader-elect", "-namespace", "a"),
        ("-kube-api-burst=3", "-leader-elect=true", "-namespace=a"),
        ("--kube-api-burst=3", "--leader-elect", "--namespace", "a"),
        ("-kube-api-burst", "3", "-controller-threads", "2", "--leader-elect=1", "--namespace=a"),
    ],
)
def test_flags_can_be_spelt_as_in_go(arguments: tuple[str, ...]) -> None:
    assert read(*arguments) == Options(kube_api_burst=3, leader_elect=True, namespace="a")


def test_abbreviated_flag_is_rejected(dlctl: Dlctl) -> None:
    done = dlctl("controller", "-kube-api-bur", "3")
    assert (done.code, done.out) == (2, "")
    assert "unrecognized arguments: -kube-api-bur 3" in done.err


def test_unsupported_template_is_rejected(dlctl: Dlctl, tmp_path: Path) -> None:
    template = tmp_path / "initContainer.yaml"
    template.write_text("- name: {{ printf .MasterAddr }}\n")
    done = dlctl("controller", f"--pytorch-init-container-template-file={template}")
    assert (done.code, done.out) == (2, "")
    assert "{{printf .MasterAddr}} is not supported" in done.err


def test_its_variables_have_the_lowest_precedence() -> None:
    theirs = {"KUBEFLOW_NAMESPACE": "theirs", "CUSTOM_CLUSTER_DOMAIN": "cluster.local"}

    found = read(environment=theirs)
    assert (found.namespace, found.cluster_domain) == ("theirs", "cluster.local")
    assert read(environment={**theirs, "DLCTL_NAMESPACE": "ours"}).namespace == "ours"
    assert read("--namespace=", environment=theirs).namespace == ""


def test_two_names_of_a_setting_exclude_each_other() -> None:
    with pytest.raises(
        ConfigError, match="DLCTL_METRICS_ADDR and DLCTL_METRICS_BIND_ADDRESS are the same"
    ):
        read(environment={"DLCTL_METRICS_BIND_ADDRESS": ":1", "DLCTL_METRICS_ADDR": ":2"})


def test_flags_without_effect_are_accepted_with_a_warning() -> None:
    args = parsed(
        *("--webhook-server-port=9443", "-webhook-service-name", "x", "--webhook-secret-name=y"),
        *("--zap-log-level=debug", "--zap-devel", "--zap-encoder=json", "-zap-devel=false"),
        *("--zap-stacktrace-level=error", "--zap-time-encoding=iso8601", "-v=4"),
        "--controller-threads=4",
    )
    told = dict(ineffective_flags(args, Options()))
    assert told == dict(IGNORED)
    assert list(ineffective_flags(parsed("-v", "4"), Options())) == [("-v", IGNORED["-v"])]


def test_burst_without_a_rate_has_no_effect_and_warns() -> None:
    assert dict(ineffective_flags(parsed(), Options(kube_api_burst=9))) == {
        "--kube-api-burst": "requests are unlimited unless --kube-api-qps is set"
    }
    assert not dict(ineffective_flags(parsed(), Options(kube_api_burst=9, kube_api_qps=1)))


def test_enabled_schemes_select_the_kinds_in_any_case() -> None:
    everything = served_kinds(load_frameworks().frameworks)
    assert enabled(everything, ()) == everything
    found = enabled(everything, ("TFjob",))
    assert found
    assert {kind.resource.kind for kind in found} == {"TFJob", "TfJob"}


def test_unknown_scheme_exits_2_with_the_known_ones(dlctl: Dlctl) -> None:
    done = dlctl("controller", "--enable-scheme=ftjob", "--enable-scheme=tfjob")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("dlctl: --enable-scheme ftjob: unknown kind; use any of ")
    assert "mxjob" in done.err
    assert "tfjob" in done.err


@pytest.mark.parametrize(
    ("options", "metrics_at", "health_at"),
    [
        (Options(), ":8080", ":8080"),
        (Options(bind_address=""), "", ""),
        (Options(metrics_bind_address=":1"), ":1", ":8080"),
        (Options(health_probe_bind_address=":8081"), ":8080", ":8081"),
        (Options(metrics_bind_address="0"), "", ":8080"),
        (Options(metrics_bind_address=":1", health_probe_bind_address=":1"), ":1", ":1"),
        (Options(bind_address="", metrics_bind_address=":1"), ":1", ""),
    ],
)
def test_addresses_determine_what_is_served_where(
    options: Options, metrics_at: str, health_at: str
) -> None:
    assert (options.metrics_address, options.health_address) == (metrics_at, health_at)


def test_address_with_nothing_to_serve_is_rejected() -> None:
    with pytest.raises(ConfigError, match="override it"):
        Options(bind_address=":1", metrics_bind_address=":2", health_probe_bind_address=":3")


def test_metrics_authentication_requires_a_metrics_address() -> None:
    with pytest.raises(ConfigError, match="metrics are disabled"):
        Options(metrics_authentication=True, metrics_bind_address="0")
