import pytest

from dlctl.cli.settings import et_operator, training_operator
from dlctl.cli.settings.compat_flags import ineffective_flags
from dlctl.options import Options
from tests.cli.settings.flags import parsed, read


@pytest.mark.parametrize(
    "arguments",
    [
        ("--metrics-addr=:9090", "--enable-leader-election", "--init-container-image=busybox"),
        ("-metrics-addr", ":9090", "-enable-leader-election", "-init-container-image", "busybox"),
        (
            "--metrics-addr",
            ":9090",
            "--enable-leader-election=true",
            "-init-container-image=busybox",
        ),
    ],
)
def test_flags_of_its_deployments_are_settings(arguments: tuple[str, ...]) -> None:
    assert read(*arguments) == Options(
        metrics_bind_address=":9090", leader_elect=True, elastic_init_container_image="busybox"
    )


def test_its_defaults_serve_metrics_and_health_at_one_address() -> None:
    found = read("--metrics-addr=:8080", "--enable-leader-election=false")
    assert found.metrics_address == found.health_address
    assert not found.leader_elect


@pytest.mark.parametrize(
    "arguments",
    [("--create-ssh-secret",), ("-create-ssh-secret=false", "--create-ssh-secret=true")],
)
def test_flag_without_effect_is_accepted_with_a_warning(arguments: tuple[str, ...]) -> None:
    told = dict(ineffective_flags(parsed(*arguments), Options()))
    assert told == dict(et_operator.IGNORED)


def test_its_flags_do_not_clash_with_training_operators() -> None:
    assert set(training_operator.IGNORED).isdisjoint({*et_operator.ALIASES, *et_operator.IGNORED})
