"""The rights that the ClusterRole grants, and those that the controller used."""

from pathlib import Path
from typing import Final

import yaml

from dlctl.api.json_types import JSON
from tests.support.server import Server

Grant = tuple[str, str, str]
MANIFEST: Final = Path(__file__).parents[2] / "manifests" / "base" / "rbac.yaml"


def role() -> JSON:
    documents = list(yaml.safe_load_all(MANIFEST.read_text()))
    (found,) = [d for d in documents if d["kind"] == "ClusterRole"]
    return dict(found)


def granted() -> set[Grant]:
    """Return group, resource and verb of all granted rules."""
    return {
        (group, resource, verb)
        for rule in role()["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def used(server: Server) -> set[Grant]:
    grants = set()
    for audited in server.audit:
        if audited.user_agent.startswith("dlctl"):
            plural, _, group = audited.resource.partition(".")
            below = f"/{audited.subresource}" if audited.subresource else ""
            grants.add((group, plural + below, audited.verb))
    return grants
