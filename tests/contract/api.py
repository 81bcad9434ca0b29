"""A raw client of an API server, embedded or real: codes, headers and bodies as sent.

Every test has its own namespace; cluster-scoped objects contain its name.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import attrs

from dlctl.api.json_types import JSON
from tests.contract.message_normalization import normalize_message
from tests.local.apiserver.raw_client import Answer, RawVerbs

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# A minute: the real garbage collector looks for new kinds of owners every 30 seconds.
_TRIES = 3000
_PAUSE_S = 0.02
_DIFFERENT_EACH_TIME = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    # The whole object as text.
    (r'Invalid value: "\{.*\}"', "Invalid value: OBJECT"),
    # Internal field names of the real server.
    (r"(Invalid|Duplicate) value: \[?\{.*?\}\]?(?=$|: |, )", r"\1 value: OBJECT"),
    # The source location in the real server.
    (r' in scheme "[^"]*"', ""),
    (r"(current: |in record \()\d+", r"\1VERSION"),
    # A diff of two pods in Go's format.
    (r"(?s)\n.*", ""),
    # Examples at the end of the message.
    (r" \(e\.g\. .*?regex used for validation is '[^']*'\)", ""),
)


@attrs.frozen
class Api(RawVerbs):
    """One server in one test."""

    kind: str
    # Its Kubernetes version, 1.minor; for the embedded server the one it models.
    minor: int
    namespace: str
    # Drops the history before a version; None if that is not possible.
    compact: Callable[[int], Awaitable[None]] | None

    @property
    def is_real(self) -> bool:
        return self.kind == "real"

    def path(self, plural: str, name: str = "", *, group: str = "v1") -> str:
        """Return the path of a resource in the test's namespace: ``/name/subresource`` too."""
        root = "/api/v1" if group == "v1" else f"/apis/{group}"
        return f"{root}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    async def wait_until(self, path: str, holds: Callable[[Answer], bool], **params: Any) -> Answer:
        """Repeat a request until the response is the expected one: controllers take a moment."""
        answer = await self.get(path, **params)
        for _ in range(_TRIES):
            if holds(answer):
                return answer
            await asyncio.sleep(_PAUSE_S if self.is_real else 0)
            answer = await self.get(path, **params)
        raise AssertionError(f"it does not come about: {answer.body}")

    async def wait_gone(self, path: str) -> None:
        await self.wait_until(path, lambda answer: answer.code == 404)

    async def define(self, crd: JSON) -> None:
        """Create a CRD unless it is there, and wait until its objects can be listed and created."""
        answer = await self.post(CRDS, crd)
        assert answer.code in (201, 409), answer.body
        name = crd["metadata"]["name"]
        established = await self.wait_until(f"{CRDS}/{name}", is_established)
        spec = crd["spec"]
        # Tests share the CRDs of a real server: one that stores another version breaks the others.
        assert _storage_version(established.body["spec"]) == _storage_version(spec)
        for version in spec["versions"]:
            if version["served"]:
                path = f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}"
                await self.wait_until(path, lambda listed: listed.code == 200)

    def failure_text(self, answer: Answer) -> str:
        """Return a failure in one line: code, reason, causes, message.

        What is different each time has a name instead, and what older servers say otherwise is in
        the words of 1.36; several causes are in alphabetical order, as the real server has them in
        none.
        """
        body = answer.body
        if isinstance(body, str):
            return f"{answer.code} {body.strip()}"
        assert body.get("kind") == "Status", body
        assert (body["apiVersion"], body["status"], body["code"]) == ("v1", "Failure", answer.code)
        message = normalize_message(body["message"], self.minor)
        causes = body.get("details", {}).get("causes", ())
        texts = sorted({normalize_message(_cause_text(cause), self.minor) for cause in causes})
        if len(texts) > 1:
            message = f"{message.partition(' is invalid: ')[0]} is invalid: {', '.join(texts)}"
        names = sorted({f"{each.get('reason', '')} {each.get('field', '')}" for each in causes})
        shown = "".join(f"[{name.strip()}] " for name in names)
        return normalize(f"{answer.code} {body.get('reason', '')}: {shown}{message}", self)


def _storage_version(spec: JSON) -> str:
    return next(str(version["name"]) for version in spec["versions"] if version["storage"])


def _cause_text(cause: JSON) -> str:
    return f"{cause.get('field', '')}: {cause['message']}"


def normalize(text: str, api: Api) -> str:
    for pattern, name in _DIFFERENT_EACH_TIME:
        text = re.sub(pattern, name, text)
    return text.replace(api.namespace, "NAMESPACE")


def is_established(answer: Answer) -> bool:
    conditions = answer.body.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
