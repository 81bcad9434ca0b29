"""The verbs of the API on resources: a request as a value in, a reply as a value out.

Nothing here is asynchronous but the streams that watches and logs reply with.
"""

import enum
from collections.abc import Callable

import attrs
import msgspec

from dlctl.api.meta import Resource
from dlctl.local.apiserver import bodies, deletion, lists, selectors, status, traits
from dlctl.local.apiserver.calls import Call, Reply, Stream
from dlctl.local.apiserver.changes import JSON, Stored
from dlctl.local.apiserver.decoding import duplicate_fields
from dlctl.local.apiserver.metadata import cannot_decode
from dlctl.local.apiserver.objects import Objects
from dlctl.local.apiserver.options import (
    DeleteOptions,
    ListOptions,
    WriteOptions,
    object_version,
)
from dlctl.local.apiserver.representations import Presenter, Tables, wanted
from dlctl.local.apiserver.resources import ServedResource
from dlctl.local.apiserver.shaping import Shaping
from dlctl.local.apiserver.status import Cause, StatusError
from dlctl.local.apiserver.watches import BOOKMARK_INTERVAL_S, Watch

_INCLUDED = ("None", "Metadata", "Object")
_INCLUDED_DETAIL = "must be 'Metadata', 'Object', 'None', or empty"


class _Kind(enum.StrEnum):
    CREATE = "CreateOptions"
    UPDATE = "UpdateOptions"
    PATCH = "PatchOptions"


@attrs.define
class Endpoints:
    """The verbs, on whatever resources are served at the time."""

    objects: Objects
    tables: Tables
    bookmark_interval_s: float = BOOKMARK_INTERVAL_S

    def get(self, served: ServedResource, call: Call) -> Reply:
        wanted = object_version(call.query.get("resourceVersion", ""), "resourceVersion")
        if wanted > self.objects.storage.revision:
            raise status.too_large_version(wanted, self.objects.storage.revision)
        stored = self.objects.get(served, call.target.key)
        return Reply(self._presenter(served, call).one(stored))

    def list(self, served: ServedResource, call: Call) -> Reply:
        options = ListOptions.read(call.query)
        selector = _selector(served, options)
        page = lists.page(
            self.objects.storage, call.target.namespace, selector, options, stale_by=call.stale_by
        )
        return Reply(self._presenter(served, call).many(page.items, page.meta))

    def watch(self, served: ServedResource, call: Call) -> Stream:
        options = ListOptions.read(call.query)
        watch = Watch(
            self.objects.storage,
            self._presenter(served, call),
            call.target.namespace,
            _selector(served, options),
            options,
            self.bookmark_interval_s,
        )
        return Stream(watch.lines())

    def create(self, served: ServedResource, call: Call) -> Reply:
        options, presenter = _write_options(call, _Kind.CREATE), self._presenter(served, call)
        obj = _sent_object(served, call)
        _check_fields(served, call, obj, options)
        stored = self.objects.create(served, call.target.namespace, obj, dry_run=options.dry_run)
        return Reply(presenter.one(stored), 201)

    def update(self, served: ServedResource, call: Call) -> Reply:
        options, presenter = _write_options(call, _Kind.UPDATE), self._presenter(served, call)
        obj = _sent_object(served, call)
        bodies.check_name(obj, call.target)
        _check_fields(served, call, obj, options)
        key, resource = call.target.key, served.resource
        absent = self.objects.storage.get(resource, key) is None
        if absent and traits.created_on_update(resource) and not call.target.subresource:
            stored = self.objects.create_by_update(served, key, obj, dry_run=options.dry_run)
            return Reply(presenter.one(stored), 201)
        return Reply(presenter.one(self._changed(served, call, lambda _: obj, options)))

    def patch(self, served: ServedResource, call: Call) -> Reply:
        options, presenter = _write_options(call, _Kind.PATCH), self._presenter(served, call)
        change = bodies.patch(call.body, call.content_type, served)

        patched: JSON = {}

        def checked(obj: JSON) -> JSON:
            patched.update(change(obj))
            result = bodies.sent_object(patched, served)
            bodies.check_name(result, call.target)
            _check_patched_fields(served, result, options)
            return result

        try:
            stored = self._changed(served, call, checked, options, guarded_by_uid=False)
        except StatusError as error:
            raise _unfit(patched, error.problem) if error.problem else error from None
        return Reply(presenter.one(stored))

    def delete(self, served: ServedResource, call: Call) -> Reply:
        options = _delete_options(call)
        deleted = deletion.delete(self.objects, served, call.target.key, options)
        answer = deletion.answer(served, deleted)
        return Reply(answer if isinstance(answer, bytes) else msgspec.json.encode(answer))

    def deletecollection(self, served: ServedResource, call: Call) -> Reply:
        chosen, presenter = ListOptions.read(call.query), self._presenter(served, call)
        selector, options = _selector(served, chosen), _delete_options(call)
        page = lists.page(self.objects.storage, call.target.namespace, selector, chosen)
        deleted = [
            deletion.delete(self.objects, served, stored.key, options).stored
            for stored in page.items
        ]
        return Reply(presenter.many(deleted, page.meta))

    def _changed(
        self,
        served: ServedResource,
        call: Call,
        change: Callable[[JSON], JSON],
        options: WriteOptions,
        *,
        guarded_by_uid: bool = True,
    ) -> Stored:
        target = call.target
        return self.objects.update(
            served,
            target.key,
            change,
            subresource=target.subresource,
            guarded_by_uid=guarded_by_uid,
            dry_run=options.dry_run,
        )

    def _presenter(self, served: ServedResource, call: Call) -> Presenter:
        include = call.query.get("includeObject") or "Metadata"
        if include not in _INCLUDED:
            shown = Cause.invalid("includeObject", include, _INCLUDED_DETAIL).message
            message = f"Unable to convert to Table as requested: includeObject: {shown}"
            raise status.bad_request(message)
        return Presenter(served, wanted(call.accept), self.tables, include)


def _selector(served: ServedResource, options: ListOptions) -> selectors.Selector:
    return selectors.parse(
        served.resource,
        options.label_selector,
        options.field_selector,
        served.selectable_fields,
    )


def _write_options(call: Call, kind: _Kind) -> WriteOptions:
    return WriteOptions.read(call.query, call.dry_run, kind)


def _delete_options(call: Call) -> DeleteOptions:
    body = call.body
    if body:
        body = msgspec.json.encode(bodies.parsed(body, call.content_type))
    return DeleteOptions.read(call.query, call.dry_run, body)


def _unknown_fields(served: ServedResource, obj: JSON, options: WriteOptions) -> str:
    """Return what to say of unknown fields, if it matters and the strategy knows the fields."""
    unknown = getattr(served.strategy, "unknown_fields", None)
    if options.field_validation != "Strict" or unknown is None:
        return ""
    shaping = Shaping(served.resource)
    shaping.metadata(obj.get("metadata"))
    paths = [*shaping.unknown, *unknown(obj)]
    return ", ".join(f'unknown field "{path}"' for path in paths)


def _sent_object(served: ServedResource, call: Call) -> JSON:
    value = bodies.parsed(call.body, call.content_type, served.resource.kind)
    return bodies.sent_object(value, served, call.body)


def _check_fields(served: ServedResource, call: Call, obj: JSON, options: WriteOptions) -> None:
    unknown = _unknown_fields(served, obj, options)
    if options.field_validation == "Strict":
        twice = [f'duplicate field "{path}"' for path in duplicate_fields(call.body)]
        unknown = ", ".join(filter(None, [unknown, *twice]))
    if unknown:
        raise cannot_decode(served.resource, f"strict decoding error: {unknown}")


def _check_patched_fields(served: ServedResource, obj: JSON, options: WriteOptions) -> None:
    if unknown := _unknown_fields(served, obj, options):
        raise _unfit(obj, f"strict decoding error: {unknown}")


def _unfit(patched: JSON, problem: str) -> StatusError:
    """Return the refusal of what a patch has made of an object."""
    cause = Cause.invalid("patch", msgspec.json.encode(patched).decode(), problem)
    # The real server names no kind here.
    return status.invalid(Resource("", "", "", ""), "", [cause])
