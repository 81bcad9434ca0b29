"""Prints what was tried and the seed, since a run without findings is only worth that."""

import pytest

from tests.fuzz.limits import BUDGET_S, SEED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, ())
    ]
    found = [each for report in reports for each in report.user_properties]
    lines = [value for name, value in found if name == "fuzz"]
    if lines:
        terminalreporter.section(f"fuzz: FUZZ_SEED={SEED:#x} FUZZ_BUDGET_S={BUDGET_S:g}")
        for line in lines:
            terminalreporter.write_line(str(line))
