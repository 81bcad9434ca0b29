"""Token requests: ``serviceaccounts/NAME/token``."""

import datetime
from typing import Final

import attrs

from dlctl.api.json_types import JSON
from dlctl.api.meta import PODS, ObjectKey, Resource
from dlctl.clock import timestamp
from dlctl.local.apiserver import request_bodies, status
from dlctl.local.apiserver.auth.authentication import ISSUER, Tokens
from dlctl.local.apiserver.requests import ApiRequest
from dlctl.local.apiserver.serialization.decoding_errors import go_kind
from dlctl.local.apiserver.status import FieldError
from dlctl.local.apiserver.storage.stored_objects import StoredObject

_KIND: Final = Resource("authentication.k8s.io", "v1", "", "TokenRequest")
_DEFAULT_S: Final = 3600
_MIN_S: Final = 600
_MAX_S: Final = 2**32


@attrs.frozen
class TokenRequests:
    """Issues the requested tokens; one bound to a pod is valid as long as the pod exists."""

    tokens: Tokens

    def create(self, account: StoredObject, request: ApiRequest) -> JSON:
        body = request.body or b"{}"
        spec = request_bodies.parse_typed(body, request.content_type, _KIND).get("spec") or {}
        seconds = spec.get("expirationSeconds", _DEFAULT_S)
        if not _MIN_S <= seconds <= _MAX_S:
            what = "less than 10 minutes" if seconds < _MIN_S else "larger than 2^32 seconds"
            detail = f"may not specify a duration {what}"
            error = FieldError.invalid("spec.expirationSeconds", seconds, detail)
            raise status.invalid(_KIND, "", [error])
        bound = spec.get("boundObjectRef")
        pod = self._pod(account.key.namespace, bound) if bound else None
        now = self.tokens.clock.now()
        until = now + datetime.timedelta(seconds=seconds)
        return {
            "kind": _KIND.kind,
            "apiVersion": _KIND.api_version,
            "metadata": {
                "name": account.key.name,
                "namespace": account.key.namespace,
                "uid": account.uid,
                "creationTimestamp": timestamp(now),
            },
            "spec": {
                "audiences": spec.get("audiences") or [ISSUER],
                "expirationSeconds": seconds,
                "boundObjectRef": bound,
            },
            "status": {
                "token": self.tokens.issue(account, until, pod=pod),
                "expirationTimestamp": timestamp(until),
            },
        }

    def _pod(self, namespace: str, bound: JSON) -> StoredObject:
        if bound.get("kind") != PODS.kind:
            kind = go_kind(bound.get("apiVersion", ""), bound.get("kind", ""))
            raise status.bad_request(f"cannot bind token to object of type {kind}")
        pod = self.tokens.storage.get(PODS, ObjectKey(namespace, bound.get("name", "")))
        if pod is None:
            raise status.not_found(PODS, bound.get("name", ""))
        if bound.get("uid") not in (None, "", pod.uid):
            message = (
                f"the UID in the bound object reference ({bound['uid']}) does not match the UID "
                f"in record. The object might have been deleted and then recreated"
            )
            raise status.conflict(PODS, pod.key.name, message)
        return pod
