from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Dlctl

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["mxnet", "numpy"])
def test_script_in_the_manifest_is_the_one_beside_it(name: str) -> None:
    _, config = yaml.safe_load_all((EXAMPLES / name / "linear-dist.yaml").read_text())
    assert config["data"]["linear.py"] == (EXAMPLES / name / "linear.py").read_text()


@pytest.mark.parametrize("name", ["mxnet", "numpy"])
def test_example_is_a_valid_job_of_four_pods(dlctl: Dlctl, name: str) -> None:
    done = dlctl("render", str(EXAMPLES / name / "linear-dist.yaml"))
    kinds = [child["kind"] for child in yaml.safe_load_all(done.out)]
    assert kinds == ["Service", "Pod", "Pod", "Pod", "Pod"]
