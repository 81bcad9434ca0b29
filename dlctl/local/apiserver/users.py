"""Users: the owner of the cluster, its service accounts, and names to impersonate."""

from collections.abc import Sequence
from typing import Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import ObjectKey

_PREFIX: Final = "system:serviceaccount:"


@attrs.frozen
class User:
    """A name with groups, as reviews show it; ``account`` is its service account, if any."""

    name: str
    groups: Sequence[str]
    uid: str = ""
    account: ObjectKey | None = None

    @property
    def is_superuser(self) -> bool:
        return "system:masters" in self.groups

    def user_info(self) -> JSON:
        uid = {"uid": self.uid} if self.uid else {}
        return {"username": self.name, **uid, "groups": list(self.groups)}


ADMIN: Final = User("dlctl", ("system:masters", "system:authenticated"))


def account_user(account: ObjectKey, uid: str = "") -> User:
    """Return the user of a service account."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{account.namespace}")
    name = f"{_PREFIX}{account.namespace}:{account.name}"
    return User(name, (*groups, "system:authenticated"), uid, account)


def named_user(name: str, groups: Sequence[str]) -> User:
    """Return the user with this name, which may be a service account's."""
    namespace, _, account = name.removeprefix(_PREFIX).partition(":")
    if name.startswith(_PREFIX) and account:
        return account_user(ObjectKey(namespace, account))
    if name == ADMIN.name:
        return ADMIN
    return User(name, (*groups, "system:authenticated"))
