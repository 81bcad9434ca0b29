"""Subresources: status and scale; for pods also binding, eviction, log, and streams.

Only the paths of built-in and scaled resources differ; the rest goes to the ordinary verbs.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs
import msgspec

from dlctl.api.json_types import JSON
from dlctl.api.meta import NAMESPACES, Resource
from dlctl.clock import timestamp
from dlctl.local.apiserver import request_bodies, resource_traits, status
from dlctl.local.apiserver.auth.token_requests import TokenRequests
from dlctl.local.apiserver.discovery.subresources import subresources
from dlctl.local.apiserver.endpoints import execs
from dlctl.local.apiserver.endpoints.attachments import attach_response
from dlctl.local.apiserver.endpoints.execs import ExecSource, exec_response
from dlctl.local.apiserver.endpoints.log_requests import LogRequest, LogSource
from dlctl.local.apiserver.endpoints.port_forwards import (
    PortForwardSource,
    port_forward_response,
)
from dlctl.local.apiserver.endpoints.resource_endpoints import Endpoints
from dlctl.local.apiserver.endpoints.scales import apply_scale, check_scale, scale_of
from dlctl.local.apiserver.request_options import DeleteRequestOptions
from dlctl.local.apiserver.requests import (
    ApiRequest,
    ApiResponse,
    BufferedResponse,
    StreamedResponse,
    UpgradeResponse,
    VerbHandler,
)
from dlctl.local.apiserver.resources import ServedResource
from dlctl.local.apiserver.storage import deletion
from dlctl.local.apiserver.storage.objects import check_namespace_match
from dlctl.local.conditions import with_condition

_BINDING: Final = Resource("", "v1", "", "Binding")
_EVICTION: Final = Resource("policy", "v1", "", "Eviction")
_CREATED: Final = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Success",
    "code": 201,
}


@attrs.define
class Subresources:
    """The endpoints below objects; the node provides the sources."""

    endpoints: Endpoints
    tokens: TokenRequests
    log_source: LogSource | None = None
    exec_source: ExecSource | None = None
    port_forward_source: PortForwardSource | None = None

    def serve(self, served: ServedResource, request: ApiRequest) -> ApiResponse:
        """Serve a request for an object or one of its subresources."""
        subresource = request.info.subresource
        if not subresource:
            return self._serve_verb(served, request)
        verbs = {each.name: each.verbs for each in subresources(served)}
        if subresource not in verbs:
            raise status.unknown_path()
        if request.verb not in verbs[subresource]:
            if request.verb and not resource_traits.is_built_in(served.resource):
                raise status.not_supported(served.resource, request.verb)
            raise status.method_not_allowed()
        handlers: dict[str, VerbHandler] = {
            "attach": self._attach,
            "binding": self._bind,
            "eviction": self._evict,
            "exec": self._exec,
            "log": self._log,
            "portforward": self._port_forward,
            "scale": self._scale,
            "token": self._token,
        }
        return handlers.get(subresource, self._serve_verb)(served, request)

    def _serve_verb(self, served: ServedResource, request: ApiRequest) -> ApiResponse:
        verb: VerbHandler | None = getattr(self.endpoints, request.verb) if request.verb else None
        if request.verb == "deletecollection" and served.resource == NAMESPACES:
            raise status.method_not_allowed()
        # Nothing is created in all namespaces at once.
        if verb is None or (
            request.verb == "create"
            and (request.info.name or (served.resource.namespaced and not request.info.namespace))
        ):
            raise status.method_not_allowed()
        return verb(served, request)

    def _scale(self, served: ServedResource, request: ApiRequest) -> BufferedResponse:
        paths, objects = served.scale or {}, self.endpoints.objects
        if request.verb == "get":
            stored = objects.get(served, request.info.key)
            check_scale(stored.decoded(served.resource), paths)
        else:

            def change(obj: JSON) -> JSON:
                if request.verb == "patch":
                    edit = request_bodies.patch(request.body, request.content_type, served)
                    sent = edit(scale_of(obj, paths))
                else:
                    sent = request_bodies.parse(request.body, request.content_type, "Scale")
                    request_bodies.check_name(sent, request.info)
                check_namespace_match(sent, request.info.namespace)
                return apply_scale(obj, sent, served.resource, paths)

            dry_run = bool(request.dry_run)
            stored = objects.update(served, request.info.key, change, dry_run=dry_run)
        return BufferedResponse(
            msgspec.json.encode(scale_of(stored.decoded(served.resource), paths))
        )

    def _bind(self, served: ServedResource, request: ApiRequest) -> BufferedResponse:
        binding = request_bodies.parse_typed(request.body, request.content_type, _BINDING)
        node = (binding.get("target") or {}).get("name")
        if not node:
            raise status.StatusError(500, "", "target.name: Required value")
        _check_name(binding, request)
        now = timestamp(self.endpoints.objects.clock.now())
        dry_run = bool(request.dry_run)

        def bound(pod: JSON) -> JSON:
            taken = (pod.get("spec") or {}).get("nodeName")
            message = f'pod {request.info.name} is already assigned to node "{taken}"'
            if gated := (pod.get("spec") or {}).get("schedulingGates"):
                message = f"pod {request.info.name} has non-empty .spec.schedulingGates"
            if taken or gated:
                raise status.conflict(
                    attrs.evolve(served.resource, plural="pods/binding"), request.info.name, message
                )
            spec = (pod.get("spec") or {}) | {"nodeName": node}
            scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
            scheduled["lastTransitionTime"] = now
            return {**_pod_with_condition(pod, scheduled), "spec": spec}

        self.endpoints.objects.rewrite(served, request.info.key, bound, dry_run=dry_run)
        return BufferedResponse(msgspec.json.encode(_CREATED), 201)

    def _evict(self, served: ServedResource, request: ApiRequest) -> BufferedResponse:
        sent = request_bodies.parse_typed(
            request.body, request.content_type, _EVICTION, former_version="policy/v1beta1"
        )
        _check_name(sent, request)
        options = sent.get("deleteOptions") or {}
        read = DeleteRequestOptions.read({}, request.dry_run, options)
        disrupted = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
            "lastTransitionTime": timestamp(self.endpoints.objects.clock.now()),
        }
        self.endpoints.objects.rewrite(
            served,
            request.info.key,
            lambda pod: _pod_with_condition(pod, disrupted),
            dry_run=bool(request.dry_run),
        )
        deletion.delete(self.endpoints.objects, served, request.info.key, read)
        return BufferedResponse(msgspec.json.encode(_CREATED), 201)

    def _log(self, served: ServedResource, api_request: ApiRequest) -> StreamedResponse:
        request = LogRequest.read(api_request)
        pod = self._pod(served, api_request)
        container = _container(pod, api_request.query.get("container", ""))
        if self.log_source is None:
            raise status.bad_request(f"no node serves the logs of pod {api_request.info.name}")
        request = attrs.evolve(request, container=container)
        return StreamedResponse(self.log_source(request), "text/plain")

    def _attach(self, served: ServedResource, request: ApiRequest) -> UpgradeResponse:
        pod = self._pod(served, request)
        container = _container(pod, request.query.get("container", ""))
        _check_assigned(pod)
        if self.log_source is None:
            raise status.bad_request(f"no node shows the output of pod {request.info.name}")
        streams = execs.requested_streams(request)
        target = request.info
        output = LogRequest(target.namespace, target.name, container, follow=True, tail_lines=0)
        return attach_response(output, streams, self.log_source)

    def _token(self, served: ServedResource, request: ApiRequest) -> BufferedResponse:
        account = self.endpoints.objects.get(served, request.info.key)
        return BufferedResponse(msgspec.json.encode(self.tokens.create(account, request)), 201)

    def _exec(self, served: ServedResource, request: ApiRequest) -> UpgradeResponse:
        pod = self._pod(served, request)
        container = _container(pod, request.query.get("container", ""))
        _check_assigned(pod)
        if self.exec_source is None:
            raise status.bad_request(f"no node runs commands in pod {request.info.name}")
        return exec_response(execs.parse_request(request, container), self.exec_source)

    def _port_forward(self, served: ServedResource, request: ApiRequest) -> UpgradeResponse:
        _check_assigned(self._pod(served, request))
        if self.port_forward_source is None:
            raise status.bad_request(f"no node reaches the ports of pod {request.info.name}")
        return port_forward_response(request, self.port_forward_source)

    def _pod(self, served: ServedResource, request: ApiRequest) -> JSON:
        return self.endpoints.objects.get(served, request.info.key).decoded(served.resource)


def _check_name(sent: JSON, request: ApiRequest) -> None:
    if sent["metadata"].get("name") != request.info.name:
        raise status.bad_request(f"name in URL does not match name in {sent['kind']} object")


def _pod_with_condition(pod: JSON, condition: JSON) -> JSON:
    state = pod.get("status") or {}
    return {**pod, "status": {**state, "conditions": with_condition(state, condition)}}


def _check_assigned(pod: JSON) -> None:
    if not pod["spec"].get("nodeName"):
        name = pod["metadata"]["name"]
        raise status.bad_request(f"pod {name} does not have a host assigned")


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
