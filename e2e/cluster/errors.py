"""What keeps a cluster from being built or started, in words for whoever runs the tests."""


class ClusterError(Exception):
    """A cluster that cannot be had; the message says what to look at."""
