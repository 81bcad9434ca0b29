from pathlib import Path

import attrs
import pytest

from dlctl.api.defaults import JobDefaults
from dlctl.cli.settings.job_defaults import job_defaults
from dlctl.errors import ConfigError
from dlctl.frameworks.horovod.hostfile_init import HostfileInit
from dlctl.frameworks.kubeflow.pytorch_init import PyTorchInit
from dlctl.frameworks.launcher_access import KubectlDelivery
from dlctl.options import Options


def test_default_settings_are_the_defaults_of_jobs() -> None:
    found = job_defaults(Options())
    assert attrs.evolve(found, framework_settings=()) == JobDefaults()
    assert found.framework_settings
    assert all(one == type(one)() for one in found.framework_settings)


def test_settings_reach_the_jobs(tmp_path: Path) -> None:
    template = tmp_path / "initContainer.yaml"
    template.write_text("- name: wait\n")

    found = job_defaults(
        Options(
            cluster_domain="cluster.local",
            gang_scheduler_name="volcano",
            pytorch_init_container_image="busybox",
            pytorch_init_container_template_file=str(template),
            pytorch_init_container_max_tries=3,
            mpi_kubectl_delivery_image="delivery",
            elastic_init_container_image="first",
        )
    )

    assert found == JobDefaults(
        cluster_domain="cluster.local",
        gang_scheduler_name="volcano",
        framework_settings=(
            PyTorchInit("busybox", "- name: wait\n", 3),
            KubectlDelivery("delivery"),
            HostfileInit("first"),
        ),
    )


@pytest.mark.parametrize("name", ["", "none", "None"])
def test_gang_scheduling_is_disabled_by_several_names(name: str) -> None:
    assert job_defaults(Options(gang_scheduler_name=name)).gang_scheduler_name == ""


def test_missing_init_container_template_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"--pytorch-init-container-template-file nowhere: "):
        job_defaults(Options(pytorch_init_container_template_file="nowhere"))
