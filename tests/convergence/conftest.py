"""Skips tests that need a real cluster if there is none."""

from tests.support.real_harness import KUBECONFIG

collect_ignore = [] if KUBECONFIG else ["test_real_server.py"]
