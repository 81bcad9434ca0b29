"""The status of a job: conditions, membership, verdicts of attempts, and how it is reported."""
