"""Hooks and workflows run the targets of the Makefile, like contributors."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

_ROOT: Final = Path(__file__).parents[1]
_MAKEFILE: Final = (_ROOT / "Makefile").read_text()
_WORKFLOWS: Final = sorted((_ROOT / ".github/workflows").glob("*.yml"))


def _steps(workflow: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(workflow.read_text())["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


def test_pre_commit_runs_what_make_lint_runs() -> None:
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", _MAKEFILE, re.MULTILINE)
    assert recipe is not None
    linted = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe[1].splitlines()]
    repos = yaml.safe_load((_ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [hook["entry"] for repo in repos for hook in repo["hooks"]] == linted


@pytest.mark.parametrize("workflow", _WORKFLOWS, ids=lambda path: path.name)
def test_workflow_calls_targets_that_exist(workflow: Path) -> None:
    commands = [step["run"] for step in _steps(workflow) if "run" in step]
    targets = {
        word
        for command in commands
        for line in re.findall(r"^make (.+)$", command, re.MULTILINE)
        for word in line.split()
    }
    assert targets <= set(re.findall(r"^([a-z-]+):", _MAKEFILE, re.MULTILINE))


@pytest.mark.parametrize("workflow", _WORKFLOWS, ids=lambda path: path.name)
def test_workflow_uses_actions_of_one_major_version(workflow: Path) -> None:
    used = [step["uses"] for step in _steps(workflow) if "uses" in step]
    assert used
    assert not [action for action in used if not re.search(r"@(release/)?v\d+$", action)]


def test_ci_runs_all_tiers() -> None:
    assert ".ci/run" in [step.get("run") for step in _steps(_ROOT / ".github/workflows/ci.yml")]


@pytest.mark.parametrize("name", ["bug.yml", "feature.yml"])
def test_issue_form_asks_for_something(name: str) -> None:
    form = yaml.safe_load((_ROOT / ".github/ISSUE_TEMPLATE" / name).read_text())
    required = [each for each in form["body"] if each.get("validations", {}).get("required")]
    assert form["name"]
    assert required
