"""Skipped without the SDK, which `pip install .[sdk]` installs."""

from importlib.util import find_spec

from tests.support.real_harness import KUBECONFIG

_HAS_SDK = find_spec("kubeflow") is not None
collect_ignore_glob = [] if _HAS_SDK else ["test_*.py"]
if not KUBECONFIG:
    collect_ignore_glob.append("test_real_server.py")
