"""Training frameworks: the environment, pod specs and dependents of their replicas. Pure."""

from dlctl.frameworks.dljob import DLJob

__all__ = ("DLJob",)
