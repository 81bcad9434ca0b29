"""Authentication: the owner of the cluster, or a service account with its own token.

A token is a signed statement (a JWT), so none is stored. It is valid while its account and the
object it is bound to exist, and without such an object until it expires.
"""

import base64
import datetime
import hashlib
import hmac
from typing import Any, Final

import attrs
import msgspec

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS, SERVICE_ACCOUNTS, ObjectKey, Resource
from dlctl.clock import Clock
from dlctl.local.apiserver.storage.storage import Storage
from dlctl.local.apiserver.storage.stored_objects import StoredObject
from dlctl.local.apiserver.users import ADMIN, User, account_user

ISSUER: Final = "https://kubernetes.default.svc"
_HEADER: Final = {"alg": "HS256", "typ": "JWT"}


@attrs.define(eq=False)
class Tokens:
    """Issues and verifies the tokens of service accounts."""

    admin_token: str
    storage: Storage
    clock: Clock
    _key: bytes = attrs.field(repr=False)

    def authenticate(self, token: str) -> User | None:
        """Return the user of the token; None if it is invalid."""
        if not token.isascii():
            # Of a header that is not text, and cannot be encoded.
            return None
        if hmac.compare_digest(token.encode(), self.admin_token.encode()):
            return ADMIN
        claims = self._claims(token)
        if claims is None:
            return None
        claim = claims["kubernetes.io"]
        namespace, about, pod = claim["namespace"], claim["serviceaccount"], claim.get("pod")
        account = ObjectKey(namespace, about["name"])
        if not self._exists(SERVICE_ACCOUNTS, account, about["uid"]):
            return None
        if pod and not self._exists(PODS, ObjectKey(namespace, pod["name"]), pod["uid"]):
            return None
        if not pod and claims["exp"] < self.clock.now().timestamp():
            return None
        return account_user(account, about["uid"])

    def issue(
        self, account: StoredObject, until: datetime.datetime, *, pod: StoredObject | None = None
    ) -> str:
        """Return a token of the account."""
        about: JSON = {
            "namespace": account.key.namespace,
            "serviceaccount": {"name": account.key.name, "uid": account.uid},
        }
        if pod is not None:
            about["pod"] = {"name": pod.key.name, "uid": pod.uid}
        claims = {
            "aud": [ISSUER],
            "exp": int(until.timestamp()),
            "iat": int(self.clock.now().timestamp()),
            "iss": ISSUER,
            "kubernetes.io": about,
            "sub": account_user(account.key).name,
        }
        text = f"{_encoded(_HEADER)}.{_encoded(claims)}"
        return f"{text}.{self._signature(text)}"

    def _claims(self, token: str) -> dict[str, Any] | None:
        text, _, signature = token.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(text).encode()):
            return None
        body = text.partition(".")[2]
        claims: dict[str, Any] = msgspec.json.decode(base64.urlsafe_b64decode(body + "=="))
        return claims

    def _signature(self, text: str) -> str:
        return _unpadded(hmac.digest(self._key, text.encode(), hashlib.sha256))

    def _exists(self, resource: Resource, key: ObjectKey, uid: str) -> bool:
        stored = self.storage.get(resource, key)
        return stored is not None and stored.uid == uid


def _encoded(value: JSON) -> str:
    return _unpadded(msgspec.json.encode(value))


def _unpadded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
