import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from dlctl.cli.settings.sources import (
    describe_default,
    environment_variable,
    file_key,
)
from dlctl.errors import ConfigError
from dlctl.options import Options, flag
from tests.cli.settings.flags import read
from tests.support.command_line import Dlctl

ROOT = Path(__file__).parents[3]
ConfigFile = Callable[[str], str]


@pytest.fixture
def config_file(tmp_path: Path) -> ConfigFile:
    """Write a file of settings and return its name."""

    def write(text: str) -> str:
        path = tmp_path / "dlctl.yaml"
        path.write_text(text)
        return str(path)

    return write


def test_without_input_settings_are_the_defaults() -> None:
    assert read() == Options()


def test_flag_beats_environment_and_environment_beats_file(config_file: ConfigFile) -> None:
    path = config_file("kube-api-burst: 1\ngraceful-shutdown-timeout: 1\nreconcile-timeout: 1")
    environment = {"DLCTL_KUBE_API_BURST": "2", "DLCTL_GRACEFUL_SHUTDOWN_TIMEOUT": "2"}

    found = read("--config", path, "--kube-api-burst", "3", environment=environment)

    assert found == Options(
        kube_api_burst=3, graceful_shutdown_timeout_s=2.0, reconcile_timeout_s=1.0
    )


def test_environment_can_name_the_file(config_file: ConfigFile) -> None:
    assert read(environment={"DLCTL_CONFIG": config_file("kube-api-burst: 7")}).kube_api_burst == 7


def test_empty_file_sets_nothing(config_file: ConfigFile) -> None:
    assert read("--config", config_file("# nothing yet\n")) == Options()


@pytest.mark.parametrize("field", attrs.fields(Options), ids=lambda field: field.name)
def test_every_setting_can_be_given_in_every_way(
    field: "attrs.Attribute[Any]", config_file: ConfigFile
) -> None:
    text = "true" if field.default is True else "false"
    if not isinstance(field.default, bool):
        listed = isinstance(field.default, tuple)
        text = ",".join(field.default or ()) if listed else str(field.default)
    path = config_file(f"{file_key(field.name)}: '{text}'")

    assert read(f"{flag(field.name)}={text}") == Options()
    assert read(environment={environment_variable(field.name): text}) == Options()
    assert read("--config", path) == Options()


def test_yaml_keywords_stay_strings(config_file: ConfigFile) -> None:
    assert read("--config", config_file("namespace: on")).namespace == "on"


@pytest.mark.parametrize(
    ("environment", "complaint"),
    [
        pytest.param(
            {"DLCTL_KUBE_API_BUST": "3"},
            "DLCTL_KUBE_API_BUST: unknown setting; did you mean DLCTL_KUBE_API_BURST?",
            id="unknown",
        ),
        pytest.param(
            {"DLCTL_KUBE_API_BURST": "four"},
            "DLCTL_KUBE_API_BURST is 'four': use a whole number",
            id="no number",
        ),
        pytest.param(
            {"DLCTL_GRACEFUL_SHUTDOWN_TIMEOUT": ""},
            "DLCTL_GRACEFUL_SHUTDOWN_TIMEOUT is '': use a number",
            id="empty",
        ),
        pytest.param(
            {"DLCTL_GRACEFUL_SHUTDOWN_TIMEOUT": "nan"},
            "DLCTL_GRACEFUL_SHUTDOWN_TIMEOUT is 'nan': use a number",
            id="not finite",
        ),
        pytest.param(
            {"DLCTL_RESTART_BACKOFF": "9", "DLCTL_RESTART_BACKOFF_CAP": "1"},
            "--restart-backoff is 9: set it above 0 and at most to --restart-backoff-cap, "
            "which is 1",
            id="contradiction",
        ),
        pytest.param(
            {"DLCTL_FORCE_DELETE_AFTER": "-1"},
            "--force-delete-after must be 0 or more",
            id="negative",
        ),
        pytest.param(
            {"DLCTL_FAILURE_LOG_TAILS": "33"},
            "--failure-log-tails must be between 0 and 32",
            id="too many",
        ),
    ],
)
def test_invalid_environment_is_rejected(environment: Mapping[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        read(environment=environment)
    assert str(refusal.value) == complaint


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param(
            "kube-api-bust: 3",
            "kube-api-bust: unknown setting; did you mean kube-api-burst?",
            id="?",
        ),
        pytest.param(
            "kube-api-burst: four", "kube-api-burst is 'four': use a whole number", id="no number"
        ),
        pytest.param(
            "kube-api-burst: 1\nkube-api-burst: 2", "kube-api-burst is set twice", id="twice"
        ),
        pytest.param(
            "kube-api-burst: [1]", "write one setting per line, such as kube-api-qps: 50", id="list"
        ),
        pytest.param("4", "4: unknown setting", id="no mapping"),
        pytest.param("kube-api-qps: {", "not YAML: while parsing a flow node", id="not YAML"),
    ],
)
def test_invalid_file_is_rejected(config_file: ConfigFile, text: str, complaint: str) -> None:
    path = config_file(text)
    with pytest.raises(ConfigError) as refusal:
        read("--config", path)
    assert str(refusal.value).startswith(f"{path}: {complaint}")


def test_missing_settings_file_is_rejected() -> None:
    with pytest.raises(ConfigError, match=r"--config nowhere\.yaml: .*No such file"):
        read("--config", "nowhere.yaml")


@pytest.mark.parametrize(
    "name",
    [
        "DLCTL_SERVICE_HOST",
        "DLCTL_METRICS_SERVICE_PORT",
        "DLCTL_METRICS_SERVICE_PORT_METRICS",
        "DLCTL_METRICS_PORT",
        "DLCTL_METRICS_PORT_8080_TCP",
        "DLCTL_METRICS_PORT_8080_TCP_ADDR",
    ],
)
def test_service_environment_variables_are_not_settings(name: str) -> None:
    assert read(environment={name: "tcp://10.0.0.1:8080"}) == Options()


def test_invalid_setting_exits_2_with_one_line(
    dlctl: Dlctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in os.environ:
        if name.startswith("DLCTL_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("DLCTL_QQQ", "9")
    done = dlctl("controller")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("dlctl: DLCTL_QQQ: unknown setting")
    assert done.err.count("\n") == 1


def test_help_lists_every_setting_with_its_default(dlctl: Dlctl, monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "2000")
    text = dlctl("controller", "--help").out
    for field in attrs.fields(Options):
        # From Python 3.13 on, a flag with another spelling is followed by that.
        assert re.search(rf"{flag(field.name)}[ ,]", text)
        assert field.metadata["help"] in text
        assert field.default in ("", ()) or f" ({describe_default(field)})" in text


def test_help_groups_settings_like_the_reference_page(dlctl: Dlctl) -> None:
    page = (ROOT / "docs/operate/settings.md").read_text()
    sections = re.findall(r"^## (.+?)$.*?^<!-- flags: (.+?) -->$", page, re.MULTILINE | re.DOTALL)
    text = dlctl("controller", "--help").out
    groups = re.findall(r"^(\w[\w ]*):\n((?:^ .*\n)+)", text, re.MULTILINE)
    shown = {title: re.findall(r"^  --([\w-]+)", body, re.MULTILINE) for title, body in groups[1:]}
    assert shown == {title: flags.split() for title, flags in sections}
