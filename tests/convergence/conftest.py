"""Without a real cluster there is nothing to run on it."""

from tests.support.real_harness import KUBECONFIG

collect_ignore = [] if KUBECONFIG else ["test_real_server.py"]
