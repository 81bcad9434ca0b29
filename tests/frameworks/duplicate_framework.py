"""A framework with a job type that is already taken."""

from dlctl.frameworks.mxnet import MXJob as Original


class MXJob(Original):
    """Another MXJob."""
