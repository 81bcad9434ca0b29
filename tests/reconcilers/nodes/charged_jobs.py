"""Stored jobs whose attempts ended on nodes, and the ledger of their charges."""

import datetime
import json

import msgspec

from dlctl.api.objects.jobs import JobObject
from dlctl.api.status.verdict import Attempt, Cause, Confidence, Verdict
from dlctl.dialects.status import attempts_codec
from dlctl.informers.handlers import Change
from dlctl.reconcilers.nodes.charge_ledger import ChargeLedger
from tests.builders import NOW
from tests.support.timing import ManualClock

DAY_S = 86400.0


def ended(
    node: str = "node-a",
    cause: Cause = Cause.NODE,
    confidence: Confidence = Confidence.HIGH,
    *,
    ago_s: float = 0.0,
) -> Attempt:
    """Return an attempt that ended on a node."""
    end = NOW - datetime.timedelta(seconds=ago_s)
    return Attempt(0, end, end, Verdict(cause, confidence, "", end, "worker-0", "pod", node))


def job(uid: str, *attempts: Attempt, namespace: str = "ml", nested: bool = True) -> JobObject:
    """Return a stored job with these attempts, in the status of a map or a list dialect."""
    wire = {"attempts": attempts_codec.write(attempts)}
    stored = {
        "metadata": {"name": f"job-{uid}", "namespace": namespace, "uid": uid},
        "status": {"dlctl": wire} if nested else wire,
    }
    return msgspec.json.decode(json.dumps(stored), type=JobObject)


def ledger_of(*jobs: JobObject) -> ChargeLedger:
    ledger = ChargeLedger(DAY_S, ManualClock(NOW.timestamp()))
    for one in jobs:
        ledger.handle(Change(None, one, initial=True))
    return ledger


def avoided(ledger: ChargeLedger) -> list[str]:
    return [one.node for one in ledger.avoided()]
