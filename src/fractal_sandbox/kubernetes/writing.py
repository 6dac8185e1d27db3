"""Planning a write, and carrying it out: what an object would become, with every refusal the real server knows.

Planning changes nothing, so that the monitor can check a write by its whole effect before it happens; both run under
the cloud's lock. How a patch is applied, what is filled in and what is refused have files of their own.
"""

from __future__ import annotations

import copy
import secrets
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from fractal_sandbox.kubernetes import errors
from fractal_sandbox.kubernetes.admission import Admission
from fractal_sandbox.kubernetes.applying import applied
from fractal_sandbox.kubernetes.controllers import Controllers
from fractal_sandbox.kubernetes.converting import in_version
from fractal_sandbox.kubernetes.decoding import read_object
from fractal_sandbox.kubernetes.defaults import complete
from fractal_sandbox.kubernetes.errors import ApiError, Cause
from fractal_sandbox.kubernetes.kinds import NAMESPACE, Kind, Object
from fractal_sandbox.kubernetes.managed_fields import Writer, applied_fields, fields_of, owned, with_entries
from fractal_sandbox.kubernetes.networking import Addresses
from fractal_sandbox.kubernetes.patching import json_patch, merge_patch, strategic_merge_patch
from fractal_sandbox.kubernetes.request import KubeRequest, Target
from fractal_sandbox.kubernetes.scaling import scale_of, scaled
from fractal_sandbox.kubernetes.store import Store, now
from fractal_sandbox.kubernetes.validating import validate, validate_change

__all__ = ["Plan", "Writing"]

_JSON_PATCH: Final = "application/json-patch+json"
_MERGE_PATCH: Final = "application/merge-patch+json"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_APPLY: Final = "application/apply-patch+yaml"
_SHOWN_WHEN_DELETED: Final = ("CustomResourceDefinition", "PersistentVolumeClaim", "Pod", "ServiceAccount")
# The status that the server gives a new object, before any controller has seen it.
_NEW: Final[dict[str, Object]] = {
    "Deployment": {},
    "Namespace": {"phase": "Active"},
    "PersistentVolumeClaim": {"phase": "Pending"},
    "Service": {"loadBalancer": {}},
}
# What only the server writes.
_OF_THE_SERVER: Final = ("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "uid")


@dataclass(frozen=True)
class Plan:
    """What a write would do: the object before (None: there is none) and after (None: it is gone)."""

    kind: Kind
    verb: Literal["create", "update", "delete"]
    before: Object | None
    after: Object | None
    is_guarded: bool = True
    managed: list[Object] | None = None  # by a server-side apply: who owns what then

    @property
    def is_idle(self) -> bool:
        return self.before is not None and self.after is not None and _same(self.before, self.after)


class Writing:
    """Plans the calls that change something, and carries plans out."""

    def __init__(self, store: Store, controllers: Controllers, addresses: Addresses, admission: Admission) -> None:
        self._admission = admission
        self._store = store
        self._controllers = controllers
        self._addresses = addresses
        self._planners: dict[str, Callable[[KubeRequest], Plan]] = {
            "create": self._plan_create,
            "update": self._plan_update,
            "patch": self._plan_patch,
            "delete": self._plan_delete,
        }

    def plan(self, request: KubeRequest) -> Plan:
        """Return what the call would do; raises ApiError where the server would refuse it."""
        plan = self._planners[request.verb](request)
        if plan.after is None:
            return plan
        if plan.managed is not None:
            return replace(plan, after=with_entries(plan.after, plan.managed))
        manager = request.query.get("fieldManager") or request.call.user_agent.split("/")[0]
        writer = Writer(manager, "Update", request.target.subresource)
        return replace(plan, after=owned(plan.before, plan.after, writer, now(), plan.kind))

    def carry_out(self, plan: Plan) -> tuple[int, Object]:
        """Do it; returns the status and the object that the answer shows."""
        kept = in_version(plan.kind.stored, plan.after) if plan.after is not None else None
        if plan.verb == "create":
            assert kept is not None
            item = self._store.add(plan.kind, kept)
            self._controllers.created(plan.kind, item)
            return 201, item
        assert plan.before is not None
        if plan.verb == "delete":
            return 200, self._delete(plan.kind, plan.before)
        assert kept is not None
        if plan.is_idle:
            return 200, plan.before
        if kept["metadata"].get("deletionTimestamp") and not kept["metadata"].get("finalizers"):
            last = self._store.remove(plan.kind.resource, self._store.replace(plan.kind.resource, kept))
            self._controllers.removed(plan.kind, last)
            return 200, last
        item = self._store.replace(plan.kind.resource, kept)
        self._controllers.modified(plan.kind, item, plan.before)
        return 200, item

    def rehearsed(self, plan: Plan) -> Object:
        """Return the object that the answer to a dry run shows; nothing is kept."""
        if plan.after is None:
            assert plan.before is not None
            return _success(plan.kind, plan.before)
        if plan.before is not None:
            return plan.after
        metadata = {**plan.after["metadata"], "uid": str(uuid.uuid4()), "creationTimestamp": now()}
        return {**plan.after, "metadata": metadata}

    # Create

    def _plan_create(self, request: KubeRequest) -> Plan:
        content = _checked(request, request.content())
        return self._create(request.target, read_object(request.target.kind, content, is_strict=request.is_strict))

    def _create(self, target: Target, content: Object) -> Plan:
        kind, metadata = target.kind, dict(content["metadata"])
        if metadata.get("resourceVersion"):
            raise errors.bad_request("resourceVersion should not be set on objects to be created")
        for name in ("resourceVersion", "managedFields", "selfLink", *_OF_THE_SERVER):
            metadata.pop(name, None)
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"] + secrets.token_hex(4)[:5]
        if not metadata.get("name"):
            raise errors.invalid(kind, "", [Cause.required("metadata.name", "name or generateName is required")])
        if kind.is_namespaced:
            metadata["namespace"] = target.namespace
        if kind.group:
            metadata["generation"] = 1
        item = {"apiVersion": kind.api_version, "kind": kind.kind, **content, "metadata": metadata}
        if kind.has_status:
            item.pop("status", None)
        if not kind.is_custom and kind.kind in _NEW:
            item["status"] = _NEW[kind.kind]
        self._check_namespace(target)
        if self._store.get(kind, target.namespace, metadata["name"]) is not None:
            raise errors.already_exists(kind, metadata["name"])
        item = self._admission.admitted(kind, complete(kind, copy.deepcopy(item), None, self._addresses))
        validate(kind, item)
        used = len(self._store.items(kind, target.namespace))
        if why := self._admission.over_quota(kind, target.namespace, used):
            raise errors.forbidden(kind, metadata["name"], why)
        return Plan(kind, "create", None, item)

    def _check_namespace(self, target: Target) -> None:
        if not target.kind.is_namespaced:
            return
        namespace = self._store.get(NAMESPACE, "", target.namespace)
        if namespace is None:
            raise errors.not_found(NAMESPACE, target.namespace)
        if namespace["metadata"].get("deletionTimestamp"):
            raise errors.terminating(target.kind, target.name, target.namespace)

    # Update and patch

    def _plan_update(self, request: KubeRequest) -> Plan:
        target = request.target
        content = request.content()
        before = self._existing(target)
        if target.subresource == "scale":
            return self._scaled(target, before, content)
        content = _checked(request, content)
        if not content["metadata"].get("name"):
            why = "name must be provided"
            raise errors.bad_request(f"the name of the object ({target.name} based on URL) was undeterminable: {why}")
        metadata = content["metadata"]
        version = metadata.get("resourceVersion")
        if metadata.get("uid") and metadata["uid"] != before["metadata"]["uid"]:
            raise errors.conflict(target.kind, target.name, _wrong_uid(metadata["uid"], before))
        if version and version != before["metadata"]["resourceVersion"]:
            raise errors.stale(target.kind, target.name)
        if not version and target.kind.is_custom:
            why = "must be specified for an update"
            cause = Cause("metadata.resourceVersion", f"Invalid value: 0x0: {why}")
            raise errors.invalid(target.kind, target.name, [cause])
        read = read_object(target.kind, content, is_strict=request.is_strict)
        return replace(self._update(target, before, read), is_guarded=bool(version))

    def _plan_patch(self, request: KubeRequest) -> Plan:
        target, form = request.target, request.content_type
        accepted = [_JSON_PATCH, _MERGE_PATCH, *([] if target.kind.is_custom else [_STRATEGIC]), _APPLY]
        if form not in accepted:
            raise errors.unsupported_patch(accepted)
        patch = request.content()
        if form == _APPLY:
            return self._plan_apply(request, patch)
        before = self._existing(target)
        if target.subresource == "scale":
            return self._scaled(target, before, _apply_patch(form, scale_of(before), patch))
        return self._patched(target, before, _apply_patch(form, before, patch), is_strict=request.is_strict)

    def _scaled(self, target: Target, before: Object, scale: Any) -> Plan:
        wanted = read_object(target.kind, scaled(before, scale), is_patched=True)
        version = (scale.get("metadata") or {}).get("resourceVersion")
        if version and version != before["metadata"]["resourceVersion"]:
            raise errors.stale(target.kind, target.name)
        return self._update(replace(target, subresource=""), before, wanted)

    def _patched(self, target: Target, before: Object, patched: Object, *, is_strict: bool) -> Plan:
        metadata = patched.get("metadata")
        if not isinstance(metadata, dict) or patched.get("kind") != before["kind"]:
            raise errors.unreadable_patch("the patched object is not of the kind it was")
        version = metadata.get("resourceVersion") or before["metadata"]["resourceVersion"]
        if version != before["metadata"]["resourceVersion"]:
            raise errors.stale(target.kind, target.name)
        read = read_object(target.kind, patched, is_strict=is_strict, is_patched=True)
        return self._update(target, before, read)

    def _plan_apply(self, request: KubeRequest, config: Any) -> Plan:
        target = request.target
        manager = request.query.get("fieldManager", "")
        if not manager:
            options = Kind("meta.k8s.io", "v1", "PatchOptions", "patchoptions")
            raise errors.invalid(options, "", [Cause.required("fieldManager", "is required for apply patch")])
        config = _checked(request, config)
        if config["metadata"].get("managedFields"):
            raise errors.bad_request("metadata.managedFields must be nil")
        before = self._found(target)
        if before is None:
            uid = config["metadata"].get("uid")
            if uid:
                why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                raise errors.conflict(target.kind, target.name, why)
            metadata = {key: value for key, value in config["metadata"].items() if key != "resourceVersion"}
            read = read_object(target.kind, {**config, "metadata": {**metadata, "name": target.name}})
            writer = Writer(manager, "Apply", target.subresource)
            entry = writer.entry(target.kind.api_version, dict(applied_fields(config, target.kind)), now())
            return replace(self._create(target, read), managed=[entry])
        _check_amounts(target.kind, config)
        writer = Writer(manager, "Apply", target.subresource)
        is_forced = request.query.get("force") in ("1", "true")
        merged, managed = applied(before, config, writer, now(), target.kind, is_forced=is_forced)
        return replace(self._patched(target, before, merged, is_strict=request.is_strict), managed=managed)

    def _update(self, target: Target, before: Object, content: Object) -> Plan:
        """Return the plan that makes `content` of an object, as far as the one who writes may say it."""
        kind, old = target.kind, before["metadata"]
        metadata = {**content["metadata"]}
        for name in ("managedFields", "selfLink"):
            metadata.pop(name, None)
        causes = []
        if metadata.get("uid", old["uid"]) != old["uid"]:
            causes.append(Cause.wrong("metadata.uid", metadata["uid"], "field is immutable"))
        for name, where in (("name", "URL"), ("namespace", "request")):
            if metadata.get(name, old.get(name)) != old.get(name):
                found = f"the {name} of the object ({metadata[name]})"
                raise errors.bad_request(f"{found} does not match the {name} on the {where} ({old[name]})")
        for name in ("name", "namespace", "resourceVersion", "generateName", *_OF_THE_SERVER):
            metadata.pop(name, None)
            if name in old:
                metadata[name] = old[name]
        item = {**content, "apiVersion": before["apiVersion"], "kind": before["kind"], "metadata": metadata}
        item = self._kept_apart(target, before, item)
        item = self._admission.admitted(kind, complete(kind, copy.deepcopy(item), before, self._addresses))
        validate(kind, item, causes)
        if not target.subresource:
            validate_change(kind, before, item)
        if kind.group and _content(item, kind) != _content(before, kind):
            item["metadata"]["generation"] = old["generation"] + 1
        return Plan(kind, "update", before, item)

    def _kept_apart(self, target: Target, before: Object, item: Object) -> Object:
        """Keep status out of writes to the object, and everything else out of writes to its status."""
        if target.subresource == "status":
            return {**before, **({"status": item["status"]} if "status" in item else {})}
        if target.kind.has_status:
            item.pop("status", None)
            if "status" in before:
                item["status"] = before["status"]
        return item

    def _existing(self, target: Target) -> Object:
        found = self._found(target)
        if found is None:
            raise errors.not_found(target.kind, target.name)
        return found

    def _found(self, target: Target) -> Object | None:
        """What is there, in the version that is asked for."""
        found = self._store.get(target.kind, target.namespace, target.name)
        return None if found is None else in_version(target.kind, found)

    # Delete

    def _plan_delete(self, request: KubeRequest) -> Plan:
        target = request.target
        options = request.content() if request.body.strip() else {}
        before = self._existing(target)
        wanted = (options.get("preconditions") or {}) if isinstance(options, dict) else {}
        refused = errors.failed_precondition(target.kind, target.name, wanted, before["metadata"])
        if refused is not None:
            raise refused
        return Plan(target.kind, "delete", before, None)

    def _delete(self, kind: Kind, before: Object) -> Object:
        stays = self._controllers.deleted(kind, before) or bool(before["metadata"].get("finalizers"))
        if not stays:
            last = self._store.remove(kind.resource, before)
            self._controllers.removed(kind, last)
            return last if kind.kind in _SHOWN_WHEN_DELETED and not kind.is_custom else _success(kind, before)
        if before["metadata"].get("deletionTimestamp"):
            return before
        metadata = {**before["metadata"], "deletionTimestamp": now(), "deletionGracePeriodSeconds": 0}
        if "generation" in metadata:
            metadata["generation"] += 1
        dying = {**before, "metadata": metadata}
        if kind == NAMESPACE:
            dying["status"] = {"phase": "Terminating"}
        return self._store.replace(kind.resource, dying)


def _check_amounts(kind: Kind, config: Object) -> None:
    """Refuse numbers where amounts stand: a create accepts them, an apply insists on text."""
    for path, value in fields_of(config, kind.node):
        node = kind.node
        for step in path:
            node = node.items if step[:2] in ("k:", "v:") else node.child(step[2:])
        if node.name == "Quantity" and not isinstance(value, str):
            where = "".join(f".{step[2:]}" for step in path)
            raise ApiError(500, "", f"failed to create typed patch object: {where}: expected string, got {value!r}")


def _apply_patch(form: str, target: Object, patch: Any) -> Object:
    if form == _JSON_PATCH:
        return json_patch(target, patch)
    if not isinstance(patch, dict):
        raise errors.bad_request("json: cannot unmarshal array into Go value of type map[string]interface {}")
    patched = (merge_patch if form == _MERGE_PATCH else strategic_merge_patch)(target, patch)
    assert isinstance(patched, dict)
    return patched


def _checked(request: KubeRequest, content: Any) -> Object:
    """Return a body that is an object of the kind and name in the path; metadata is always there."""
    target = request.target
    if not isinstance(content, dict):
        raise errors.bad_request("the body of the request is not an object")
    kind = target.kind
    if kind.is_custom and not (content.get("kind") and content.get("apiVersion")):
        raise errors.bad_request("Object 'Kind' is missing in the request's body")
    if content.get("apiVersion", kind.api_version) != kind.api_version:
        raise errors.bad_request(
            f"the API version in the data ({content['apiVersion']}) does not match "
            f"the expected API version ({kind.api_version})"
        )
    if content.get("kind", kind.kind) != kind.kind and kind.is_custom:
        name = str((content.get("metadata") or {}).get("name", ""))
        raise errors.invalid(kind, name, [Cause.wrong("kind", content["kind"], f"must be {kind.kind}")])
    if content.get("kind", kind.kind) != kind.kind:
        raise errors.bad_request(f"{content['kind']} in version {kind.version!r} cannot be handled as a {kind.kind}")
    metadata = content.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise errors.bad_request("json: cannot unmarshal metadata into Go struct field of type v1.ObjectMeta")
    if target.name and metadata.get("name", target.name) != target.name:
        raise errors.bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({target.name})"
        )
    if (metadata.get("namespace") or target.namespace) != target.namespace:
        raise errors.bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return {**content, "metadata": metadata}


def _content(item: Object, kind: Kind) -> Object:
    """Return what generation counts the changes of."""
    apart = ("metadata", "status") if kind.has_status else ("metadata",)
    content = {key: value for key, value in item.items() if key not in apart}
    if kind.resource == "deployments.apps":  # its annotations reach its ReplicaSets
        content["annotations"] = item["metadata"].get("annotations")
    return content


def _same(one: Object, other: Object) -> bool:
    return {**one, "metadata": {**one["metadata"], "resourceVersion": ""}} == {
        **other,
        "metadata": {**other["metadata"], "resourceVersion": ""},
    }


def _wrong_uid(uid: str, before: Object) -> str:
    found = before["metadata"]["uid"]
    return f"Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"


def _success(kind: Kind, item: Object) -> Object:
    metadata = item["metadata"]
    details = {"name": metadata["name"], "kind": kind.plural, "uid": metadata["uid"]}
    if kind.group:
        details["group"] = kind.group
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
