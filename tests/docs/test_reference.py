"""The reference tables match the code completely."""

import re
from typing import Final

import attrs
import pytest

from dlctl.cli.settings.sources import file_key
from dlctl.metrics import Metrics
from dlctl.options import Options, flag
from docs.generate import conditions, fields, flags, metrics
from tests.docs.pages import PAGES, ROOT

_OPTIONS: Final = [field.name for field in attrs.fields(Options)]
_TOPICS: Final = re.compile(r"^<!-- flags: (.+) -->$", re.MULTILINE)
# Metrics as pages write them; Prometheus and the exporter add the endings.
_METRIC: Final = re.compile(r"`((?:dlctl|workqueue|rest_client|leader_election|informer)_[a-z_]+)`")


def test_each_setting_is_listed_with_its_variable() -> None:
    table = flags.all_flags()
    assert [name for name in _OPTIONS if f"| `{flag(name)}` | `DLCTL_" not in table] == []


def test_each_setting_has_a_topic() -> None:
    page = (ROOT / "docs/operate/settings.md").read_text()
    listed = [name for topic in _TOPICS.findall(page) for name in topic.split()]
    assert sorted(listed) == sorted(file_key(name) for name in _OPTIONS)


def test_flag_that_does_not_exist_has_no_row() -> None:
    with pytest.raises(KeyError):
        flags.some_flags(["no-such-flag"])


def test_flags_of_other_operators_are_listed() -> None:
    assert "| `--webhook-server-port` | no effect" in flags.training_operator_flags()
    assert "| `KUBEFLOW_NAMESPACE` | `--namespace`, unless" in flags.training_operator_flags()
    assert "| `--create-ssh-secret` | no effect" in flags.et_operator_flags()


def test_each_metric_is_listed_with_its_labels() -> None:
    table = metrics.all_metrics()
    assert "| `dlctl_jobs` | gauge | `kind`, `namespace`, `phase` | " in table
    # Each has its own line, after the two of the head.
    assert table.count("\n") - 2 == len(vars(Metrics())) - 1


def test_metric_that_a_page_names_exists() -> None:
    named = {(p.name, name) for p in PAGES for name in _METRIC.findall(p.read_text())}
    # Fixtures and options of the pytest plugin have the same prefix.
    plugin = (ROOT / "dlctl" / "pytest_plugin.py").read_text()
    known = {*dir(Metrics()), *re.findall("dlctl_[a-z_]+", plugin)}
    assert {(page, name) for page, name in named if name not in known} == set()


def test_messages_are_those_of_each_family() -> None:
    table = conditions.condition_messages()
    assert "| TFJob `kubeflow.org/v1` | TFJob ml/mnist is running. | " in table
    assert "| job(ml/mnist) successfully completed. | " in table


@pytest.mark.slow
def test_each_field_of_a_kind_is_listed() -> None:
    text = fields.all_fields()
    assert "### PyTorchJob kubeflow.org/v1\n" in text
    assert "| `spec.pytorchReplicaSpecs.*.restartPolicy` | string | " in text
    assert "### ScaleIn kai.alibabacloud.com/v1alpha1\n" in text
    assert "| `spec.toDelete.podNames` | list of string | " in text
    # Its fields are Kubernetes' own.
    assert "template.spec" not in text
