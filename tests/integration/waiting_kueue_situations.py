"""The situations in which Kueue keeps a job waiting."""

from typing import Final

from tests.integration.waiting_acts import (
    Situation,
    condition,
    pytorch_job,
    workload,
)

QUOTA: Final = "insufficient unused quota for nvidia.com/gpu in flavor a100, 4 more needed"
SUSPENDED: Final = {"suspend": True}
KUEUE_SITUATIONS: Final = {
    "kueue has no quota": Situation(
        "WaitingForQuota",
        f"Kueue has not admitted the job from queue team-a: {QUOTA}",
        pytorch_job(SUSPENDED),
        workload(condition("QuotaReserved", "Pending", f"{QUOTA}.")),
        kueue=True,
    ),
    "kueue has no flavor": Situation(
        "NoMatchingFlavor",
        "Kueue has not admitted the job from queue team-a: flavor spot does not match node "
        "affinity",
        pytorch_job(SUSPENDED),
        workload(
            condition(
                "QuotaReserved", "NoMatchingFlavor", "flavor spot does not match node affinity"
            )
        ),
        kueue=True,
    ),
    "kueue has evicted it": Situation(
        "WaitingForQuota",
        "Kueue has evicted the job (Preempted: to make room for a job), and Kueue has not admitted "
        f"it from queue team-a: {QUOTA}; it is queued again at TIME",
        pytorch_job(SUSPENDED),
        workload(
            condition("QuotaReserved", "Pending", QUOTA),
            condition("Evicted", "Preempted", "to make room for a job", "True"),
            requeueState={"requeueAt": "2026-01-01T12:00:00Z"},
        ),
        kueue=True,
    ),
    "kueue waits for a check": Situation(
        "AdmissionCheckPending",
        "Kueue waits for the admission check capacity (Pending: waiting for nodes)",
        pytorch_job(SUSPENDED),
        workload(
            condition("QuotaReserved", "QuotaReserved", "", "True"),
            admissionChecks=[
                {"name": "capacity", "state": "Pending", "message": "waiting for nodes"}
            ],
        ),
        kueue=True,
    ),
    "kueue has deactivated it": Situation(
        "WorkloadDeactivated",
        "Kueue has deactivated Workload pytorchjob-linear-1a2b3: set its spec.active to true",
        pytorch_job(SUSPENDED),
        workload(spec={"active": False}),
        kueue=True,
    ),
}
