"""``dlctl check``: what manifests are, what is wrong with them, what differs; offline."""

import argparse
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs

from dlctl.cli.installed_kinds import installed_kinds
from dlctl.cli.manifests.checks import (
    Problem,
    can_admit,
    chosen_version,
    in_order,
    manifest_problems,
    manifest_warnings,
)
from dlctl.cli.manifests.end_notes import end_notes
from dlctl.cli.manifests.loading import (
    Manifest,
    job_kind,
    load,
    read_valid,
    scaler_resource,
)
from dlctl.cli.manifests.operators import operator_of
from dlctl.cli.manifests.pod_references import containers, entry, templates
from dlctl.cli.manifests.start_checks import StartChecks
from dlctl.cli.manifests.yaml_lines import dotted
from dlctl.dialects.kind import Kind
from dlctl.errors import ConfigError

# Fields of pods and of containers that a node of plain processes does not act on.
_IGNORED_HERE: Final = frozenset(
    "dnsPolicy hostIPC hostPID imagePullSecrets priorityClassName runtimeClassName "
    "securityContext tolerations topologySpreadConstraints".split()
)
# The fields of which the local node applies one part.
_PARTLY_IGNORED: Final = {"affinity": "nodeAffinity", "dnsConfig": "searches"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Say what each manifest is, which operator it was written for, what differs under dlctl, "
        "and what is wrong with it, as strictly as kubectl apply. No cluster is needed. "
        "Exit code: 0 if the manifests are valid, 1 if not, 2 if there are none, or a file cannot "
        "be read; the others are checked all the same."
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="manifests, - for stdin")
    parser.add_argument(
        "-n", "--namespace", default="default", help="namespace of jobs that set none (%(default)s)"
    )
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="(%(default)s)"
    )
    parser.set_defaults(command=check)


def check(args: argparse.Namespace) -> int:
    if not can_admit():
        raise ConfigError("dlctl check needs optional packages: pip install 'dlctl[local]'")
    manifests, errors = _readable(args.files)
    if not manifests and not errors:
        raise ConfigError(f"no objects in {', '.join(args.files)}: nothing to check")
    served = installed_kinds()
    reports = list(manifest_reports(served, manifests, args.namespace))
    if args.output == "json":
        print(json.dumps([report.wire for report in reports], indent=2))
    else:
        for report in reports:
            print("\n".join(report.lines()))
    if errors:
        # Together they are the error of the command, after what could be checked.
        raise ConfigError("\ndlctl: ".join(map(str, errors)))
    return 1 if any(report.problems for report in reports) else 0


def _readable(files: Sequence[str]) -> tuple[list[Manifest], list[ConfigError]]:
    """Return the objects of the files that can be read, and the errors of the others."""
    manifests: list[Manifest] = []
    errors = []
    for file in files:
        try:
            manifests += load([file])
        except ConfigError as error:
            errors.append(error)
    return manifests, errors


@attrs.frozen(kw_only=True)
class Report:
    """The findings about one manifest."""

    manifest: Manifest
    problems: Sequence[Problem]
    # True if dlctl serves its kind: a job, or a scaler of jobs.
    checked: bool = True
    # None for objects that are no jobs.
    operator: str | None = None
    page: str = ""
    differences: Sequence[str] = ()
    # Fields without effect, and warnings that the controller will report as events.
    warnings: Sequence[str] = ()
    # What it leaves running at its end without saying so.
    notes: Sequence[str] = ()
    ignored: Sequence[str] = ()
    # Why it would not start on this machine as it is.
    start_problems: Sequence[Problem] = ()

    @property
    def wire(self) -> dict[str, Any]:
        obj, place = self.manifest.obj, self.manifest.place
        metadata = obj.get("metadata") or {}
        return {
            "file": place.file if place else None,
            "document": (place.document or 1) if place else None,
            "line": place.line(()) if place else None,
            "apiVersion": obj.get("apiVersion"),
            "kind": obj.get("kind"),
            "name": metadata.get("name") or metadata.get("generateName"),
            "operator": self.operator,
            "differences": list(self.differences),
            "warnings": list(self.warnings),
            "notes": list(self.notes),
            "ignoredLocally": list(self.ignored),
            "problems": [_wire(problem) for problem in self.problems],
            "startProblems": [_wire(problem) for problem in self.start_problems],
        }

    def lines(self) -> Iterator[str]:
        """Yield the report for people."""
        verdict = f"{len(self.problems)} problems" if len(self.problems) > 1 else "1 problem"
        version = self.manifest.obj.get("apiVersion") or "no apiVersion"
        valid = "valid" if self.checked else "not a job, not checked"
        yield f"{self.manifest.titled()} ({version}): {verdict if self.problems else valid}"
        for problem in self.problems:
            line = problem.line
            yield f"  problem: {f'line {line}: ' if line else ''}{problem.message}"
        if self.operator:
            yield f"  written for: {self.operator} ({self.page})"
        for difference in self.differences:
            yield f"  differs: {difference}"
        for warning in self.warnings:
            yield f"  warning: {warning}"
        for note in self.notes:
            yield f"  note: {note}"
        if self.ignored:
            yield f"  ignored by dlctl run: {', '.join(self.ignored)}"
        for problem in self.start_problems:
            yield f"  dlctl run would refuse it: {problem.message}"


def _wire(problem: Problem) -> dict[str, Any]:
    return {
        "line": problem.line,
        "field": dotted(problem.path),
        "message": problem.message,
    }


def manifest_reports(
    kinds: Sequence[Kind], manifests: Sequence[Manifest], namespace: str
) -> Iterator[Report]:
    problems = in_order(manifest_problems(kinds, manifests, namespace))
    checks = StartChecks(kinds, manifests, namespace, {})
    # Jobs with problems cannot be rendered.
    unstartable = [] if problems else list(checks.problems())
    for manifest in manifests:
        own = [problem for problem in problems if problem.manifest is manifest]
        refusals = [problem for problem in unstartable if problem.manifest is manifest]
        kind = job_kind(kinds, manifest.obj)
        if kind is None:
            is_scaler = scaler_resource(kinds, manifest.obj) is not None
            yield Report(
                manifest=manifest,
                problems=own,
                checked=is_scaler,
                warnings=manifest.repeated_fields,
                start_problems=refusals,
            )
            continue
        operator = operator_of(manifest.obj, chosen_version(kind, manifest, namespace))
        job = None if own else read_valid(kind, manifest.obj)
        warnings = manifest.repeated_fields
        if job:
            warnings = [*manifest_warnings(kind, manifest, namespace)]
            warnings += [warning.message for warning in job.warnings]
        yield Report(
            manifest=manifest,
            problems=own,
            operator=operator.name,
            page=operator.page,
            differences=operator.differences_of(manifest.obj),
            warnings=warnings,
            notes=list(end_notes(job, manifest.obj)) if job else [],
            ignored=_ignored(manifest),
            start_problems=refusals,
        )


def _ignored(manifest: Manifest) -> list[str]:
    found: set[str] = set()
    for path, spec in templates(manifest.obj):
        for fields in (spec, *(container for _, container in containers(spec, path))):
            found |= _IGNORED_HERE.intersection(fields)
        for field, used in _PARTLY_IGNORED.items():
            found |= {f"{field}.{part}" for part in entry(spec, field) if part != used}
    return sorted(found)
