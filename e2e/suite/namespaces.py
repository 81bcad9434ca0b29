"""A namespace for a test."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from e2e.kubectl import Kubectl


@contextmanager
def own_namespace(cluster: Kubectl) -> Iterator[Kubectl]:
    """Create a namespace in which pods can be created; its deletion is not awaited."""
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    cluster("create", "namespace", name)
    try:
        inside = cluster.within(name)
        inside.until(
            lambda: inside.get("serviceaccount", "default"), within_s=30, what="an account for pods"
        )
        yield inside
    finally:
        cluster("delete", "namespace", name, "--wait=false", "--ignore-not-found")
