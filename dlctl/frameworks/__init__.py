"""What a training framework needs of its replicas: plain data and pure functions."""

from dlctl.frameworks.dljob import DLJob

__all__ = ("DLJob",)
