"""A framework that claims a job type which is taken."""

from dlctl.frameworks.mxnet import MXJob as Original


class MXJob(Original):
    """Another MXJob."""
