"""How users name jobs and kinds: ``sum``, ``pytorchjob/sum``, ``pytorchjobs``. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from dlctl.cli.suggestions import closest
from dlctl.dialects.kind import Kind
from dlctl.errors import ConfigError

KindsByName = Mapping[str, Sequence[Kind]]
_JOBS: Final = ("job", "jobs")
# The similarity of a misspelt kind; names of jobs such as ``train`` are less like ``training``.
_LIKELY: Final = 0.8


@attrs.frozen
class JobName:
    """The name of a job, and the kinds that it may be of."""

    name: str
    kinds: Sequence[Kind]
    # As the user wrote it.
    description: str
    # A kind that the name may be meant for; empty without one.
    likely_kind: str = ""


def known_kinds(kinds: Sequence[Kind]) -> KindsByName:
    """Return the kinds by each of their names, in lower case; a name may be that of several."""
    known: dict[str, list[Kind]] = {name: list(kinds) for name in _JOBS}
    for kind in kinds:
        resource = kind.resource
        for short in (kind.singular, resource.plural, kind.singular.removesuffix("job")):
            for name in (short, f"{short}.{resource.group}"):
                known.setdefault(name, []).append(kind)
    return known


def parse_kind(text: str, known: KindsByName) -> Sequence[Kind]:
    """Return the kinds of a name.

    :raises ConfigError: if there is none.
    """
    if found := known.get(text.lower()):
        return found
    close = closest(text, known)
    suggestion = f"did you mean {close}?" if close else f"use any of {_singulars(known)}"
    raise ConfigError(f"{text} is no kind of job that dlctl serves: {suggestion}")


def parse_name(text: str, known: KindsByName) -> JobName:
    """Return the job of ``NAME`` or ``KIND/NAME``.

    :raises ConfigError: if the kind is unknown, or the name is missing.
    """
    kind, slash, name = text.rpartition("/")
    if not name or (slash and not kind):
        raise ConfigError(f"{text!r} names no job: write NAME or KIND/NAME")
    if not slash:
        likely = closest(name, known, cutoff=_LIKELY)
        return JobName(name, known[_JOBS[0]], f"job {name}", likely)
    return JobName(name, parse_kind(kind, known), f"{kind} {name}")


def parse_names(words: Sequence[str], known: KindsByName) -> list[JobName]:
    """Return the jobs of ``KIND NAME ...``, or of any number of ``NAME`` and ``KIND/NAME``.

    :raises ConfigError: if a kind is unknown, or a name is missing.
    """
    first, *names = words
    if names and first.lower() in known:
        words = [f"{first}/{name}" for name in names]
    return [parse_name(word, known) for word in words]


def parse_replica(text: str, known: KindsByName) -> tuple[JobName, str]:
    """Return the job and the replica of ``[KIND/]NAME[/REPLICA]``; no replica means the chief.

    :raises ConfigError: if the kind is unknown, or a name is missing.
    """
    parts = text.split("/")
    has_kind = len(parts) > 2 or (len(parts) == 2 and parts[0].lower() in known)
    words = 2 if has_kind else 1
    return parse_name("/".join(parts[:words]), known), "/".join(parts[words:])


def parse_selection(
    words: Sequence[str], known: KindsByName
) -> tuple[Sequence[Kind], list[JobName]]:
    """Return the kinds and the jobs that the words after ``get`` select; no jobs mean all.

    They are ``KIND``, ``KIND NAME ...``, or any number of ``NAME`` and ``KIND/NAME``.
    """
    if not words:
        return known[_JOBS[0]], []
    if len(words) == 1 and words[0].lower() in known:
        return parse_kind(words[0], known), []
    return (), parse_names(words, known)


def _singulars(known: KindsByName) -> str:
    return ", ".join(dict.fromkeys(kind.singular for kind in known[_JOBS[0]]))
