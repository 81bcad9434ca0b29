"""How a launcher runs whose pod belongs to a batch/v1 Job, as mpi-operator's v2beta1 has it."""

import attrs


@attrs.frozen
class LauncherJob:
    """The fields of the Job that retries a launcher; None leaves the Job's own default."""

    # Retries before the Job fails; none where a failure policy decides about them.
    backoff_limit: int | None = None
    # Seconds between the Job's start and its failure.
    active_deadline_s: int | None = None
    # Seconds between the Job's end and its deletion; the job of the user stays. Set on the Job once
    # its end is in the status of the job.
    ttl_after_finished_s: int | None = None
    # Runs only once all workers are ready.
    waits_for_workers: bool = False
