"""A pytest plugin for tiers that exceed the time of a CI run: a time budget, or a share of tests.

With a budget, each run shuffles the tests and skips those for which no time is left; with a share,
it selects that part of each module, and keeps their order. The commit decides which, so that
coverage adds up over runs. Loaded with ``-p tests.support.budget``.
"""

import random
import subprocess
import time
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("budget")
    group.addoption("--budget-s", type=float, help="start no other test after this many seconds")
    group.addoption("--share", type=float, help="run this share of the tests of each module")
    group.addoption("--order-seed", help="seed of the order; default: the commit")


class _Deadline:
    """Skips tests once the budget is spent, but not the first; each xdist worker has its own."""

    def __init__(self, budget_s: float) -> None:
        self._budget_s = budget_s
        self._started = time.monotonic()
        self._is_first = True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        # Otherwise a busy machine, on which to collect takes as long, would run nothing.
        is_first, self._is_first = self._is_first, False
        if not is_first and time.monotonic() - self._started > self._budget_s:
            pytest.skip(f"the budget of {self._budget_s:g} s is spent")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.budget_s is not None:
        config.pluginmanager.register(_Deadline(config.option.budget_s))


def pytest_report_header(config: pytest.Config) -> str | None:
    option = config.option
    if option.share is not None:
        return f"share: {option.share:g} of the tests, chosen by --order-seed {_seed(config)}"
    if option.budget_s is None:
        return None
    return f"budget: {option.budget_s:g} s, in the order of --order-seed {_seed(config)}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.share is not None:
        chosen = _chosen(items, config.option.share, random.Random(_seed(config)))
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]
    if config.option.budget_s is not None:
        # By name, so that every xdist worker has the same order, whatever it collected first.
        items.sort(key=lambda item: item.nodeid)
        order = random.Random(_seed(config))
        order.shuffle(items)
        # Modules stay together: their tests share fixtures.
        modules = sorted({item.path for item in items})
        order.shuffle(modules)
        items.sort(key=lambda item: modules.index(item.path))


def _chosen(items: list[pytest.Item], share: float, dice: random.Random) -> set[pytest.Item]:
    by_module: dict[Path, list[pytest.Item]] = {}
    for item in sorted(items, key=lambda item: item.nodeid):
        by_module.setdefault(item.path, []).append(item)
    return {
        item
        for tests in by_module.values()
        # Rounded at random, so that the only test of a module is run by some commits.
        for item in dice.sample(tests, int(len(tests) * share + dice.random()))
    }


def _seed(config: pytest.Config) -> str:
    if config.option.order_seed:
        return str(config.option.order_seed)
    head = ["git", "rev-parse", "--short=12", "HEAD"]
    found = subprocess.run(head, capture_output=True, text=True, check=False, cwd=config.rootpath)
    return found.stdout.strip() or "none"
