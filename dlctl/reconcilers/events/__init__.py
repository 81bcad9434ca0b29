"""The events of a job: those of its plan, and those copied from its pods."""
