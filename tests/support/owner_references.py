"""References to owners, as a client writes them."""

from dlctl.api.json_types import JSON


def owned_by(owner: JSON, *, block: bool = True) -> list[JSON]:
    """Return the references of an object that another one controls."""
    return [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": block,
        }
    ]
