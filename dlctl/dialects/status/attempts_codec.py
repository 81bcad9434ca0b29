"""Attempts and verdicts in a status on the wire. Reading never fails."""

import datetime
from collections.abc import Iterator
from itertools import islice

import msgspec

from dlctl.api.json_types import JSON
from dlctl.api.status.verdict import (
    MAX_ATTEMPTS,
    MAX_COLLATERAL,
    MAX_DRAINED_NODES,
    Attempt,
    Cause,
    Confidence,
    Verdict,
)
from dlctl.clock import EPOCH
from dlctl.dialects.status import status_codec as codec


def write(attempts: tuple[Attempt, ...]) -> list[JSON]:
    """Return the wire form of the newest attempts; empty fields are left out."""
    return [_write_attempt(attempt) for attempt in attempts[-MAX_ATTEMPTS:]]


def read(wire: JSON, name: str) -> tuple[Attempt, ...]:
    """Read the attempts in a field; malformed fields count as absent."""
    return tuple(map(_read_attempt, codec.mappings(wire, name)[-MAX_ATTEMPTS:]))


def read_stored(status: msgspec.Raw) -> tuple[Attempt, ...]:
    """Read the attempts in the stored status of a job of any dialect."""
    if b'"attempts"' not in bytes(status):
        return ()
    wire = codec.decode(status)
    dlctl_state = codec.mapping(wire.get(codec.OWN_STATE_FIELD))
    return read(wire, "attempts") or read(dlctl_state, "attempts")


def _write_attempt(attempt: Attempt) -> JSON:
    verdict = attempt.verdict
    wire: JSON = {
        "number": attempt.number,
        "startTime": codec.write_time(attempt.start_time),
        "endTime": codec.write_time(attempt.end_time),
        "worldSize": attempt.world_size,
        "lostSeconds": attempt.lost_s,
        "drainedNodes": {n: codec.write_time(t) for n, t in attempt.drained_nodes.items()},
        **(_write_verdict(verdict) if verdict else {}),
    }
    return {name: value for name, value in wire.items() if value not in (None, "", [], {})}


def _write_verdict(verdict: Verdict) -> JSON:
    return {
        "cause": verdict.cause,
        "confidence": verdict.confidence,
        "message": verdict.message,
        "time": codec.write_time(verdict.time),
        "replica": verdict.replica,
        "pod": verdict.pod,
        "node": verdict.node,
        "rank": verdict.rank,
        "exitCode": verdict.exit_code,
        "consequence": verdict.is_consequence or None,
        "planned": verdict.is_planned or None,
        "collateral": list(verdict.collateral[:MAX_COLLATERAL]),
        "collateralCount": verdict.collateral_count or None,
    }


def _read_attempt(wire: JSON) -> Attempt:
    return Attempt(
        number=codec.count(wire, "number"),
        start_time=codec.read_time(wire.get("startTime")) or EPOCH,
        end_time=codec.read_time(wire.get("endTime")),
        verdict=_read_verdict(wire) if "cause" in wire else None,
        world_size=codec.count(wire, "worldSize"),
        lost_s=codec.number(wire, "lostSeconds"),
        drained_nodes=dict(_read_times(codec.mapping(wire.get("drainedNodes")))),
    )


def _read_times(wire: JSON) -> Iterator[tuple[str, datetime.datetime]]:
    for name, value in islice(wire.items(), MAX_DRAINED_NODES):
        if time := codec.read_time(value):
            yield name, time


def _read_verdict(wire: JSON) -> Verdict:
    return Verdict(
        cause=codec.enum_member(Cause, wire.get("cause"), Cause.UNKNOWN),
        confidence=codec.enum_member(Confidence, wire.get("confidence"), Confidence.LOW),
        message=codec.text(wire, "message"),
        time=codec.read_time(wire.get("time")) or EPOCH,
        replica=codec.text(wire, "replica"),
        pod=codec.text(wire, "pod"),
        node=codec.text(wire, "node"),
        rank=codec.number(wire, "rank"),
        exit_code=codec.number(wire, "exitCode"),
        is_consequence=wire.get("consequence") is True,
        is_planned=wire.get("planned") is True,
        collateral=tuple(codec.texts(wire, "collateral")),
        collateral_count=codec.count(wire, "collateralCount"),
    )
