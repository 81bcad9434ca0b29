"""The verbs of the API on resources: a request value in, a response value out.

Nothing is asynchronous except the streams of watches and logs.
"""

import enum
import itertools
from collections.abc import AsyncIterator, Callable, Iterator

import attrs

from dlctl.api.json_types import JSON
from dlctl.clock import timestamp
from dlctl.local.apiserver import request_bodies, resource_traits, status
from dlctl.local.apiserver.endpoints import field_validation, lists, selectors
from dlctl.local.apiserver.endpoints.representations import Presenter, negotiate
from dlctl.local.apiserver.endpoints.watches import BOOKMARK_INTERVAL_S, Watch
from dlctl.local.apiserver.fieldmanager.field_manager import FieldManager, tracker_of
from dlctl.local.apiserver.fieldmanager.managers import APPLY, UPDATE, ManagerIdentifier
from dlctl.local.apiserver.fieldmanager.merge_schemas import MergeSchemas
from dlctl.local.apiserver.request_info import RequestInfo
from dlctl.local.apiserver.request_options import (
    DeleteRequestOptions,
    ListRequestOptions,
    WriteRequestOptions,
    parse_object_version,
)
from dlctl.local.apiserver.requests import ApiRequest, BufferedResponse, StreamedResponse
from dlctl.local.apiserver.resources import ServedResource
from dlctl.local.apiserver.serialization.nesting_depth import DeepCalls
from dlctl.local.apiserver.status import FieldError, StatusError
from dlctl.local.apiserver.storage import deletion
from dlctl.local.apiserver.storage.objects import Objects
from dlctl.local.apiserver.storage.stored_objects import StoredObject

_INCLUDED = ("None", "Metadata", "Object")
_INCLUDED_DETAIL = "must be 'Metadata', 'Object', 'None', or empty"


class _OptionsKind(enum.StrEnum):
    CREATE = "CreateOptions"
    UPDATE = "UpdateOptions"
    PATCH = "PatchOptions"


@attrs.define
class Endpoints:
    """The verbs, for all resources that are currently served."""

    objects: Objects
    bookmark_interval_s: float = BOOKMARK_INTERVAL_S
    merge_schemas: MergeSchemas = attrs.field(factory=MergeSchemas)

    def get(self, served: ServedResource, request: ApiRequest) -> BufferedResponse:
        wanted = parse_object_version(request.query.get("resourceVersion", ""), "resourceVersion")
        if wanted > self.objects.storage.revision:
            raise status.too_large_version(wanted, self.objects.storage.revision)
        stored = self.objects.get(served, request.info.key)
        return BufferedResponse(self._presenter(served, request).one(stored))

    def list(
        self, served: ServedResource, request: ApiRequest
    ) -> BufferedResponse | StreamedResponse:
        options = ListRequestOptions.read(request.query)
        selector = _selector(served, options)
        page = lists.list_page(
            self.objects.storage,
            request.info.namespace,
            selector,
            options,
            stale_by=request.stale_by,
        )
        return _list_response(self._presenter(served, request).many(page.items, page.meta))

    def watch(self, served: ServedResource, request: ApiRequest) -> StreamedResponse:
        options = ListRequestOptions.read(request.query)
        watch = Watch(
            self.objects.storage,
            self._presenter(served, request),
            request.info.namespace,
            _selector(served, options),
            options,
            self.bookmark_interval_s,
        )
        return StreamedResponse(watch.lines())

    def create(self, served: ServedResource, request: ApiRequest) -> BufferedResponse:
        options = _write_options(request, _OptionsKind.CREATE)
        presenter = self._presenter(served, request)
        obj = _sent_object(served, request)
        field_validation.check_sent(served, request, obj, options)
        stored = self.objects.create(
            served,
            request.info.namespace,
            obj,
            track=self._field_manager(served, request, options).track,
            dry_run=options.dry_run,
        )
        return BufferedResponse(presenter.one(stored), 201)

    def update(self, served: ServedResource, request: ApiRequest) -> BufferedResponse:
        options = _write_options(request, _OptionsKind.UPDATE)
        presenter = self._presenter(served, request)
        obj = _sent_object(served, request)
        request_bodies.check_name(obj, request.info)
        field_validation.check_sent(served, request, obj, options)
        key, resource = request.info.key, served.resource
        absent = self.objects.storage.get(resource, key) is None
        if (
            absent
            and resource_traits.allows_create_on_update(resource)
            and not request.info.subresource
        ):
            track = self._field_manager(served, request, options).track
            stored = self.objects.create_by_update(
                served, key, obj, track=track, dry_run=options.dry_run
            )
            return BufferedResponse(presenter.one(stored), 201)
        return BufferedResponse(
            presenter.one(self._update(served, request, lambda _: obj, options))
        )

    def patch(self, served: ServedResource, request: ApiRequest) -> BufferedResponse:
        if request_bodies.applies(request.content_type):
            return self._apply(served, request)
        options = _write_options(request, _OptionsKind.PATCH)
        presenter = self._presenter(served, request)
        change = request_bodies.patch(request.body, request.content_type, served)

        patched: JSON = {}

        def checked(obj: JSON) -> JSON:
            patched.update(change(obj))
            result = request_bodies.decode_object(patched, served.resource)
            request_bodies.check_name(result, request.info)
            field_validation.check_patched(served, request, result, options)
            return result

        try:
            stored = self._update(served, request, checked, options, guarded_by_uid=False)
        except StatusError as error:
            raise (
                field_validation.undecodable_patch_result(patched, error.problem)
                if error.problem
                else error
            ) from None
        return BufferedResponse(presenter.one(stored))

    def _apply(self, served: ServedResource, request: ApiRequest) -> BufferedResponse:
        """Serve a server-side apply, which may create the object."""
        target = request.info
        options = WriteRequestOptions.read(
            request.query, request.dry_run, _OptionsKind.PATCH, applies=True
        )
        presenter = self._presenter(served, request)
        request.repeated_keys.clear()
        config = request_bodies.configuration(request.body, served, request.repeated_keys.append)
        manager = self._field_manager(served, request, options, applies=True)
        if target.subresource or self.objects.storage.get(served.resource, target.key):

            def applied(obj: JSON) -> JSON:
                result = manager.apply(obj, config, force=options.force)
                field_validation.check_applied(request, options)
                request_bodies.check_name(result, target)
                return result

            stored = self.objects.update(
                served,
                target.key,
                applied,
                subresource=target.subresource,
                dry_run=options.dry_run,
            )
            return BufferedResponse(presenter.one(stored))
        obj = manager.apply({}, _for_creation(config, served, target), force=options.force)
        field_validation.check_applied(request, options)
        stored = self.objects.create(served, target.namespace, obj, dry_run=options.dry_run)
        return BufferedResponse(presenter.one(stored), 201)

    def delete(self, served: ServedResource, request: ApiRequest) -> BufferedResponse:
        options = _delete_options(request)
        deleted = deletion.delete(self.objects, served, request.info.key, options)
        return BufferedResponse(deletion.delete_response(served, deleted))

    def deletecollection(
        self, served: ServedResource, request: ApiRequest
    ) -> BufferedResponse | StreamedResponse:
        chosen, presenter = ListRequestOptions.read(request.query), self._presenter(served, request)
        selector, options = _selector(served, chosen), _delete_options(request)
        page = lists.list_page(self.objects.storage, request.info.namespace, selector, chosen)
        for stored in page.items:
            # As in the real server, by name: a list of an older version may be outdated.
            if self.objects.storage.get(served.resource, stored.key) is not None:
                deletion.delete(self.objects, served, stored.key, options)
        return _list_response(presenter.many(page.items, page.meta))

    def _update(
        self,
        served: ServedResource,
        request: ApiRequest,
        change: Callable[[JSON], JSON],
        options: WriteRequestOptions,
        *,
        guarded_by_uid: bool = True,
    ) -> StoredObject:
        target = request.info
        return self.objects.update(
            served,
            target.key,
            change,
            subresource=target.subresource,
            guarded_by_uid=guarded_by_uid,
            track=self._field_manager(served, request, options).track,
            dry_run=options.dry_run,
        )

    def _field_manager(
        self,
        served: ServedResource,
        request: ApiRequest,
        options: WriteRequestOptions,
        *,
        applies: bool = False,
    ) -> FieldManager:
        name = options.field_manager or request.user_agent.partition("/")[0] or "unknown"
        now = timestamp(self.objects.clock.now())
        subresource, operation = request.info.subresource, APPLY if applies else UPDATE
        return FieldManager(
            tracker_of(served, subresource, self.merge_schemas[served]),
            ManagerIdentifier(name, operation, served.resource.api_version, subresource),
            now,
        )

    def _presenter(self, served: ServedResource, request: ApiRequest) -> Presenter:
        include = request.query.get("includeObject") or "Metadata"
        if include not in _INCLUDED:
            shown = FieldError.invalid("includeObject", include, _INCLUDED_DETAIL).message
            message = f"Unable to convert to Table as requested: includeObject: {shown}"
            raise status.bad_request(message)
        return Presenter(served, negotiate(request.accept), self.objects.clock, include)


def _list_response(parts: Iterator[bytes]) -> BufferedResponse | StreamedResponse:
    """Return a list: at once if it has a single part, as most have."""
    first, second = next(parts), next(parts, b"")
    if not second:
        return BufferedResponse(first)
    return StreamedResponse(_in_turn(itertools.chain((first, second), parts)))


async def _in_turn(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    while True:
        # Entered for each part: the server does other things in between.
        with DeepCalls():
            part = next(parts, b"")
        if not part:
            return
        yield part


def _for_creation(config: JSON, served: ServedResource, target: RequestInfo) -> JSON:
    """Return the configuration of a new object, without a resource version."""
    request_bodies.check_name(config, target)
    meta = config["metadata"]
    if uid := meta.get("uid"):
        message = (
            f"uid mismatch: the provided object specified uid {uid}, and no existing object was "
            "found"
        )
        raise status.conflict(served.resource, target.name, message)
    return {**config, "metadata": {k: v for k, v in meta.items() if k != "resourceVersion"}}


def _selector(served: ServedResource, options: ListRequestOptions) -> selectors.Selector:
    return selectors.parse(
        served.resource,
        options.label_selector,
        options.field_selector,
        served.selectable_fields,
    )


def _write_options(request: ApiRequest, kind: _OptionsKind) -> WriteRequestOptions:
    return WriteRequestOptions.read(request.query, request.dry_run, kind)


def _delete_options(request: ApiRequest) -> DeleteRequestOptions:
    sent = None
    if request.body:
        sent = request_bodies.parse(request.body, request.content_type)
        if sent is None:
            raise status.bad_request("cannot read DeleteOptions: the body is null")
    return DeleteRequestOptions.read(request.query, request.dry_run, sent)


def _sent_object(served: ServedResource, request: ApiRequest) -> JSON:
    request.repeated_keys.clear()
    value = request_bodies.parse(
        request.body, request.content_type, served.resource.kind, request.repeated_keys.append
    )
    return request_bodies.decode_object(value, served.resource, request.body)
