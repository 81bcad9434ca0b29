from pathlib import Path

import pytest
import yaml

from tests.support.command_line import Dlctl

EXAMPLES = Path(__file__).parents[2] / "examples"


MANIFESTS = sorted(str(path.relative_to(EXAMPLES)) for path in EXAMPLES.glob("*/*.yaml"))


@pytest.mark.parametrize("name", MANIFESTS)
def test_script_in_the_manifest_is_the_one_beside_it(name: str) -> None:
    _, *configs = yaml.safe_load_all((EXAMPLES / name).read_text())
    for script, text in [item for config in configs for item in config["data"].items()]:
        assert text == (EXAMPLES / name).with_name(script).read_text()


@pytest.mark.parametrize("name", ["mxnet", "numpy"])
def test_example_is_a_valid_job_of_four_pods(dlctl: Dlctl, name: str) -> None:
    done = dlctl("render", str(EXAMPLES / name / "linear-dist.yaml"))
    kinds = [child["kind"] for child in yaml.safe_load_all(done.out)]
    assert kinds == ["Service", "Pod", "Pod", "Pod", "Pod"]
