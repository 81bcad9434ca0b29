"""An operator's requests in the audit log."""

import json
from pathlib import Path
from typing import Any

from bench.cluster.audit import AuditLog, count_by_target, is_write


def _entry(agent: str, verb: str, resource: str, subresource: str = "") -> dict[str, Any]:
    target = {"resource": resource, "subresource": subresource}
    return {"userAgent": agent, "verb": verb, "objectRef": target}


def _log(path: Path, *entries: dict[str, Any]) -> AuditLog:
    with path.open("a") as lines:
        lines.writelines(json.dumps(entry) + "\n" for entry in entries)
    return AuditLog(path)


def test_requests_are_the_operators(tmp_path: Path) -> None:
    log = _log(
        tmp_path / "audit.log",
        _entry("dlctl", "create", "pods"),
        _entry("kwok/v0.7.0", "patch", "pods", "status"),
        _entry("Python/3.11 aiohttp/3.12", "create", "pytorchjobs"),
    )
    assert [entry["userAgent"] for entry in log.requests()] == ["dlctl"]


def test_requests_before_a_mark_do_not_count(tmp_path: Path) -> None:
    log = _log(tmp_path / "audit.log", _entry("dlctl", "create", "pods"))
    mark = log.end()
    _log(log.path, _entry("dlctl", "create", "services"))
    assert count_by_target(log.requests(mark)) == {"create services": 1}


def test_entry_that_is_being_written_does_not_count(tmp_path: Path) -> None:
    log = _log(tmp_path / "audit.log", _entry("dlctl", "create", "pods"))
    with log.path.open("a") as lines:
        lines.write('{"userAgent": "dlc')
    assert len(list(log.requests())) == 1


def test_writes_are_neither_reads_nor_renewals_of_the_lease() -> None:
    assert is_write(_entry("dlctl", "patch", "pytorchjobs", "status"))
    assert not is_write(_entry("dlctl", "watch", "pods"))
    assert not is_write(_entry("dlctl", "update", "leases"))
