"""The same probes and hooks where pods share the machine's network."""

from tests.local.node.containers import test_handler_runner as handlers
from tests.local.node.containers.test_handler_runner import pytestmark

NETWORK = "host"
__all__ = ["pytestmark"]

test_server_is_ready_once_it_answers = handlers.test_server_is_ready_once_it_answers
test_failing_liveness_probe_restarts_the_container = (
    handlers.test_failing_liveness_probe_restarts_the_container
)
test_hook_before_the_stop_runs_before_the_signal = (
    handlers.test_hook_before_the_stop_runs_before_the_signal
)
