"""The verbs of the API on resources: a request as a value in, a reply as a value out.

Nothing here is asynchronous but the streams that watches and logs reply with.
"""

import enum
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import attrs
import msgspec

from dlctl.api.meta import Resource
from dlctl.local.apiserver import bodies, deletion, lists, selectors, status, traits
from dlctl.local.apiserver.changes import JSON, Stored
from dlctl.local.apiserver.metadata import cannot_decode
from dlctl.local.apiserver.objects import Objects
from dlctl.local.apiserver.options import DeleteOptions, ListOptions, WriteOptions
from dlctl.local.apiserver.representations import Presenter, Tables, wanted
from dlctl.local.apiserver.resources import ServedResource
from dlctl.local.apiserver.status import Cause
from dlctl.local.apiserver.targets import Target
from dlctl.local.apiserver.watches import BOOKMARK_INTERVAL_S, Watch


@attrs.frozen
class Call:
    """One request, as far as verbs are concerned."""

    verb: str
    target: Target
    query: Mapping[str, str]
    dry_run: Sequence[str] = ()
    body: bytes = b""
    content_type: str = ""
    accept: str = ""
    user_agent: str = ""
    # Only by a fault: how many revisions ago a list that need not be fresh is from.
    stale_by: int = 0


@attrs.frozen
class Reply:
    """A body that is sent at once."""

    body: bytes
    code: int = 200
    content_type: str = "application/json"


@attrs.frozen
class Stream:
    """A body that is sent as it comes about."""

    chunks: AsyncIterator[bytes]
    content_type: str = "application/json"


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
        obj = bodies.sent_object(bodies.parsed(call.body, call.content_type), served)
        _check_fields(served, obj, options)
        stored = self.objects.create(served, call.target.namespace, obj, dry_run=options.dry_run)
        return Reply(presenter.one(stored), 201)

    def update(self, served: ServedResource, call: Call) -> Reply:
        options, presenter = _write_options(call, _Kind.UPDATE), self._presenter(served, call)
        obj = bodies.sent_object(bodies.parsed(call.body, call.content_type), served)
        bodies.check_name(obj, call.target)
        _check_fields(served, obj, options)
        key, resource = call.target.key, served.resource
        absent = self.objects.storage.get(resource, key) is None
        if absent and traits.created_on_update(resource) and not call.target.subresource:
            stored = self.objects.create(served, key.namespace, obj, dry_run=options.dry_run)
            return Reply(presenter.one(stored), 201)
        return Reply(presenter.one(self._changed(served, call, lambda _: obj, options)))

    def patch(self, served: ServedResource, call: Call) -> Reply:
        options, presenter = _write_options(call, _Kind.PATCH), self._presenter(served, call)
        change = bodies.patch(call.body, call.content_type, served)

        def checked(obj: JSON) -> JSON:
            result = bodies.sent_object(change(obj), served)
            bodies.check_name(result, call.target)
            _check_patched_fields(served, result, options)
            return result

        return Reply(presenter.one(self._changed(served, call, checked, options)))

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
        self, served: ServedResource, call: Call, change: Any, options: WriteOptions
    ) -> Stored:
        target = call.target
        return self.objects.update(
            served,
            target.key,
            change,
            subresource=target.subresource,
            dry_run=options.dry_run,
        )

    def _presenter(self, served: ServedResource, call: Call) -> Presenter:
        include = call.query.get("includeObject") or "Metadata"
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
    return ", ".join(f'unknown field "{path}"' for path in unknown(obj))


def _check_fields(served: ServedResource, obj: JSON, options: WriteOptions) -> None:
    if unknown := _unknown_fields(served, obj, options):
        raise cannot_decode(served.resource, f"strict decoding error: {unknown}")


def _check_patched_fields(served: ServedResource, obj: JSON, options: WriteOptions) -> None:
    if unknown := _unknown_fields(served, obj, options):
        text = msgspec.json.encode(obj).decode()
        cause = Cause.invalid("patch", text, f"strict decoding error: {unknown}")
        # The real server names no kind here.
        raise status.invalid(Resource("", "", "", ""), "", [cause])
