"""Errors that prevent building or starting a cluster, with messages for those who run the tests."""


class ClusterError(Exception):
    """A cluster cannot be built or started; the message says what to check."""
