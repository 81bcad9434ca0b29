"""What is served below an object: its status, a scale; of a pod: binding, eviction, log, exec.

Only the paths of built-in and scaled resources differ; the rest goes to the ordinary verbs.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

import attrs
import msgspec

from dlctl.api.meta import NAMESPACES, PODS
from dlctl.local.apiserver import bodies, deletion, execs, status, traits
from dlctl.local.apiserver.calls import Call, Conversation, Reply, Response, Stream
from dlctl.local.apiserver.changes import JSON
from dlctl.local.apiserver.endpoints import Endpoints
from dlctl.local.apiserver.execs import ExecSource, conversation
from dlctl.local.apiserver.objects import check_place, timestamp
from dlctl.local.apiserver.options import DeleteOptions, flag, integer
from dlctl.local.apiserver.resources import ServedResource
from dlctl.local.apiserver.scales import check_scale, scale_of, scaled
from dlctl.local.apiserver.tokenrequests import TokenRequests

_STATUS_VERBS: Final = ("get", "update", "patch")
_CREATED: Final = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Success",
    "code": 201,
}


@attrs.frozen
class LogRequest:
    """Which lines of which container are asked for."""

    namespace: str
    pod: str
    container: str
    previous: bool = False
    follow: bool = False
    tail_lines: int | None = None
    timestamps: bool = False
    since_s: int | None = None
    limit_bytes: int | None = None


LogSource = Callable[[LogRequest], AsyncIterator[bytes]]
Verb = Callable[[ServedResource, Call], Response]


@attrs.define
class Subresources:
    """The endpoints below objects; the sources are those of whoever runs the pods."""

    endpoints: Endpoints
    tokens: TokenRequests
    log_source: LogSource | None = None
    exec_source: ExecSource | None = None

    def answer(self, served: ServedResource, call: Call) -> Response:
        """Answer a call to an object or to what is below it."""
        subresource = call.target.subresource
        if not subresource:
            return self._verb(served, call)
        allowed = self._allowed(served)
        if subresource not in allowed:
            raise status.unknown_path()
        if call.verb not in allowed[subresource]:
            if call.verb and not traits.built_in(served.resource):
                raise status.not_supported(served.resource, call.verb)
            raise status.method_not_allowed()
        particular: dict[str, Verb] = {
            "binding": self._bind,
            "eviction": self._evict,
            "exec": self._exec,
            "log": self._log,
            "scale": self._scale,
            "token": self._token,
        }
        return particular.get(subresource, self._verb)(served, call)

    def _allowed(self, served: ServedResource) -> Mapping[str, tuple[str, ...]]:
        allowed: dict[str, tuple[str, ...]] = {}
        if served.has_status:
            allowed["status"] = _STATUS_VERBS
        if served.scale:
            allowed["scale"] = _STATUS_VERBS
        if served.resource == PODS:
            allowed |= {"binding": ("create",), "eviction": ("create",), "log": ("get",)}
            allowed["exec"] = ("get", "create")
        if served.resource.qualified == "serviceaccounts":
            allowed["token"] = ("create",)
        if served.resource.qualified == "namespaces":
            allowed["finalize"] = ("update",)
        return allowed

    def _verb(self, served: ServedResource, call: Call) -> Response:
        verb: Verb | None = getattr(self.endpoints, call.verb) if call.verb else None
        if call.verb == "deletecollection" and served.resource == NAMESPACES:
            raise status.method_not_allowed()
        # Nothing is created in all namespaces at once.
        if verb is None or (
            call.verb == "create"
            and (call.target.name or (served.resource.namespaced and not call.target.namespace))
        ):
            raise status.method_not_allowed()
        return verb(served, call)

    def _scale(self, served: ServedResource, call: Call) -> Reply:
        paths, objects = served.scale or {}, self.endpoints.objects
        if call.verb == "get":
            stored = objects.get(served, call.target.key)
            check_scale(stored.decoded(served.resource), paths)
        else:

            def change(obj: JSON) -> JSON:
                if call.verb == "patch":
                    edit = bodies.patch(call.body, call.content_type, served)
                    sent = edit(scale_of(obj, paths))
                else:
                    sent = bodies.parsed(call.body, call.content_type, "Scale")
                    bodies.check_name(sent, call.target)
                check_place(sent, call.target.namespace)
                return scaled(obj, sent, served.resource, paths)

            dry_run = bool(call.dry_run)
            stored = objects.update(served, call.target.key, change, dry_run=dry_run)
        return Reply(msgspec.json.encode(scale_of(stored.decoded(served.resource), paths)))

    def _bind(self, served: ServedResource, call: Call) -> Reply:
        binding = bodies.parsed(call.body, call.content_type)
        node = ((binding if isinstance(binding, dict) else {}).get("target") or {}).get("name")
        if not node:
            raise status.StatusError(500, "", "target.name: Required value")
        if (binding.get("metadata") or {}).get("name") != call.target.name:
            raise status.bad_request("name in URL does not match name in Binding object")
        now = timestamp(self.endpoints.objects.clock.now())
        dry_run = bool(call.dry_run)

        def bound(pod: JSON) -> JSON:
            taken = (pod.get("spec") or {}).get("nodeName")
            message = f'pod {call.target.name} is already assigned to node "{taken}"'
            if gated := (pod.get("spec") or {}).get("schedulingGates"):
                message = f"pod {call.target.name} has non-empty .spec.schedulingGates"
            if taken or gated:
                raise status.conflict(
                    attrs.evolve(served.resource, plural="pods/binding"), call.target.name, message
                )
            spec = (pod.get("spec") or {}) | {"nodeName": node}
            scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
            scheduled["lastTransitionTime"] = now
            state = dict(pod.get("status") or {})
            others = [c for c in state.get("conditions", ()) if c["type"] != "PodScheduled"]
            state["conditions"] = [*others, scheduled]
            return {**pod, "spec": spec, "status": state}

        self.endpoints.objects.rewrite(served, call.target.key, bound, dry_run=dry_run)
        return Reply(msgspec.json.encode(_CREATED), 201)

    def _evict(self, served: ServedResource, call: Call) -> Reply:
        sent = bodies.parsed(call.body, call.content_type)
        options = msgspec.json.encode((sent or {}).get("deleteOptions") or {})
        read = DeleteOptions.read({}, call.dry_run, options)
        deletion.delete(self.endpoints.objects, served, call.target.key, read)
        return Reply(msgspec.json.encode(_CREATED), 201)

    def _log(self, served: ServedResource, call: Call) -> Stream:
        stored = self.endpoints.objects.get(served, call.target.key)
        pod = stored.decoded(served.resource)
        query = call.query
        container = _container(pod, query.get("container", ""))
        if self.log_source is None:
            raise status.bad_request(f"no node serves the logs of pod {call.target.name}")
        request = LogRequest(
            namespace=call.target.namespace,
            pod=call.target.name,
            container=container,
            previous=bool(flag(query, "previous")),
            follow=bool(flag(query, "follow")),
            tail_lines=integer(query, "tailLines"),
            timestamps=bool(flag(query, "timestamps")),
            since_s=integer(query, "sinceSeconds"),
            limit_bytes=integer(query, "limitBytes"),
        )
        return Stream(self.log_source(request), "text/plain")

    def _token(self, served: ServedResource, call: Call) -> Reply:
        account = self.endpoints.objects.get(served, call.target.key)
        return Reply(msgspec.json.encode(self.tokens.answer(account, call)), 201)

    def _exec(self, served: ServedResource, call: Call) -> Conversation:
        pod = self.endpoints.objects.get(served, call.target.key).decoded(served.resource)
        container = _container(pod, call.query.get("container", ""))
        if not pod["spec"].get("nodeName"):
            raise status.bad_request(f"pod {call.target.name} does not have a host assigned")
        if self.exec_source is None:
            raise status.bad_request(f"no node runs commands in pod {call.target.name}")
        return conversation(execs.request(call, container), self.exec_source)


def _container(pod: JSON, wanted: str) -> str:
    spec: Mapping[str, Any] = pod.get("spec") or {}
    name = pod["metadata"]["name"]
    main = [each["name"] for each in spec.get("containers") or ()]
    init = [each["name"] for each in spec.get("initContainers") or ()]
    if wanted:
        if wanted not in (*main, *init):
            raise status.bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    if len(main) != 1:
        message = (
            f"a container name must be specified for pod {name}, choose one of: [{' '.join(main)}]"
        )
        if init:
            message += f" or one of the init containers: [{' '.join(init)}]"
        raise status.bad_request(message)
    return str(main[0])
