"""The calls of the Cloud Control API, and `cloudformation:DescribeType`, in moto's place: it has neither.

Each reads its parameters, asks the handlers, and answers with a request's event. Requests take no time unless the
knobs say so; even then the first answer says that one is under way, as AWS's always does.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from fractal_sandbox.aws import accounts
from fractal_sandbox.aws.answer import Answer, AwsError, written
from fractal_sandbox.aws.authorization import handler_denial
from fractal_sandbox.aws.cloudcontrol import handling, references
from fractal_sandbox.aws.cloudcontrol.refs import SERVICE
from fractal_sandbox.aws.cloudcontrol.requests import Request, Requests
from fractal_sandbox.aws.cloudcontrol.rights import HandlerAct
from fractal_sandbox.aws.cloudcontrol.schemas import TypeSchema, Verb, catalog
from fractal_sandbox.aws.cloudcontrol.shapes import reshaped
from fractal_sandbox.aws.cloudcontrol.store import STORE, Model
from fractal_sandbox.aws.cloudcontrol.twins import Refused
from fractal_sandbox.aws.cloudcontrol.values import identifier_of
from fractal_sandbox.aws.descriptors import Ref
from fractal_sandbox.aws.moto_fixes.registry import FixContext, fix
from fractal_sandbox.aws.request import AwsRequest
from fractal_sandbox.calls import Call

__all__ = ["model_shown", "requests_of", "settle"]

_MEMORY: Final = "cloudcontrol requests"
_HANDLERS: Final = {"CREATE": "slow_creation", "UPDATE": "slow_modification", "DELETE": "slow_deletion"}


def requests_of(context: FixContext) -> Requests:
    """The requests of this cloud, which a reset forgets."""
    found: Requests = context.memory.setdefault(_MEMORY, Requests())
    return found


def settle(context: FixContext) -> None:
    """End the requests whose time is over."""
    if _MEMORY in context.memory:
        requests_of(context).settle()


def model_shown(context: FixContext, schema: TypeSchema, identifier: str, region: str) -> Model | None:
    """Return what a read shows of a resource; None where there is none."""
    model = STORE.find(schema, identifier, region)
    if model is None:
        return None
    knobs = context.knobs
    return reshaped(schema, identifier, STORE.shown(schema, model), region, knobs.reshape, knobs.reshape_only)


@fix(SERVICE, "CreateResource")
def create_resource(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    schema = handling.supported(call.parameters["TypeName"], "create")
    repeated = _repeated(context, call)
    if repeated is not None:
        return _answered(request, repeated, is_replay=True)
    model = handling.desired(schema, call.parameters["DesiredState"])
    known = identifier_of(schema, model)
    made = _request(context, call, "CREATE", known)

    def make() -> None:
        if context.knobs.checks_references:
            references.refuse_missing(schema, model, call.region)
        made.identifier = handling.create(schema, model, call.region)
        made.is_identifier_known = bool(known)

    _run(context, made, make, _denial(call, schema, "create", known, model))
    return _answered(request, made)


@fix(SERVICE, "UpdateResource")
def update_resource(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    schema = handling.supported(call.parameters["TypeName"], "read")
    repeated = _repeated(context, call)
    if repeated is not None:
        return _answered(request, repeated, is_replay=True)
    identifier = STORE.primary(schema, call.parameters["Identifier"], call.region)
    shown = model_shown(context, schema, identifier, call.region)
    if shown is None or _is_hidden(context, schema, identifier, call.region):
        raise handling.not_found(schema, call.parameters["Identifier"])
    handling.supported(schema.name, "update")
    after = handling.updated(schema, shown, call.parameters["PatchDocument"])
    made = _request(context, call, "UPDATE", identifier)
    denied = _denial(call, schema, "update", identifier, after)

    def change() -> None:
        if context.knobs.checks_references:
            came = {name: value for name, value in after.items() if shown.get(name) != value}
            references.refuse_missing(schema, came, call.region)
        handling.update(schema, identifier, shown, after, call.region)

    _run(context, made, change, denied)
    return _answered(request, made)


@fix(SERVICE, "DeleteResource")
def delete_resource(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    schema = handling.supported(call.parameters["TypeName"], "delete")
    repeated = _repeated(context, call)
    if repeated is not None:
        return _answered(request, repeated, is_replay=True)
    identifier = STORE.primary(schema, call.parameters["Identifier"], call.region)
    made = _request(context, call, "DELETE", identifier)

    def remove() -> None:
        references.refuse_used(schema, identifier, call.region)
        references.drop_parts(schema, identifier, call.region)
        handling.delete(schema, identifier, call.region)

    denied = _denial(call, schema, "delete", identifier, {})
    if made.countdown is None or denied:
        _run(context, made, remove, denied)
    elif STORE.find(schema, identifier, call.region) is None:
        made.fail("NotFound", handling.not_found(schema, identifier).message)
    else:
        made.finish = lambda: _run_late(made, remove)
    return _answered(request, made)


@fix(SERVICE, "GetResource")
def get_resource(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    schema = handling.supported(call.parameters["TypeName"], "read")
    identifier = STORE.primary(schema, call.parameters["Identifier"], call.region)
    shown = model_shown(context, schema, identifier, call.region)
    if shown is None or _is_hidden(context, schema, identifier, call.region, is_read=True):
        raise handling.not_found(schema, call.parameters["Identifier"])
    _count_read(context, schema, identifier, call.region)
    description = {"Identifier": identifier, "Properties": json.dumps(shown)}
    return written(request, {"TypeName": schema.name, "ResourceDescription": description})


@fix(SERVICE, "ListResources")
def list_resources(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    schema = handling.supported(call.parameters["TypeName"], "list")
    wanted = _list_model(schema, call)
    found = []
    for identifier in STORE.identifiers(schema, call.region):
        if _is_hidden(context, schema, identifier, call.region, is_read=True):
            continue
        shown = _partial(schema, identifier, call.region)
        if all(shown.get(name) == value for name, value in wanted.items() if name in schema.list_parents):
            found.append({"Identifier": identifier, "Properties": json.dumps(shown)})
    return written(request, {"TypeName": schema.name, "ResourceDescriptions": found})


@fix(SERVICE, "GetResourceRequestStatus")
def get_request_status(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    found = _named_request(context, call)
    if found.countdown is not None:
        found.countdown.count_read()
    content: dict[str, Any] = {"ProgressEvent": found.event()}
    if found.hook:
        hook = {
            "HookTypeName": found.hook,
            "HookTypeVersionId": "00000001",
            "InvocationPoint": "PRE_PROVISION",
            "HookStatus": "HOOK_COMPLETE_FAILED" if found.status == "FAILED" else "HOOK_IN_PROGRESS",
            "HookEventTime": found.started,
            "HookStatusMessage": found.message,
            "FailureMode": "FAIL",
        }
        content["HooksProgressEvent"] = [hook]
    return written(request, content)


@fix(SERVICE, "ListResourceRequests")
def list_requests(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    wanted = call.parameters.get("ResourceRequestStatusFilter") or {}
    operations, statuses = wanted.get("Operations"), wanted.get("OperationStatuses")
    found = [
        one.event()
        for one in requests_of(context).all(accounts.current(), call.region)
        if (not operations or one.operation in operations) and (not statuses or one.status in statuses)
    ]
    return written(request, {"ResourceRequestStatusSummaries": found[::-1]})


@fix(SERVICE, "CancelResourceRequest")
def cancel_request(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    found = _named_request(context, call)
    if not found.is_under_way:
        message = f"Request with token {found.token} cannot be cancelled: its status is {found.status}"
        raise AwsError("ConcurrentModificationException", message)
    found.status = "CANCEL_IN_PROGRESS"
    found.finish = None
    return _answered(request, found)


@fix("cloudformation", "DescribeType")
def describe_type(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    del context
    name = call.parameters.get("TypeName") or _name_in_arn(str(call.parameters.get("Arn") or ""))
    schema = catalog().find(name)
    if schema is None or call.parameters.get("Type", "RESOURCE") != "RESOURCE":
        raise AwsError("TypeNotFoundException", f"The type '{name}' cannot be found.", 404)
    owner = accounts.current() if schema.is_private else ""
    mutable = "FULLY_MUTABLE" if schema.can("update") else "IMMUTABLE"
    return written(
        request,
        {
            "Arn": f"arn:aws:cloudformation:{call.region}:{owner}:type/resource/{name.replace('::', '-')}",
            "Type": "RESOURCE",
            "TypeName": name,
            "Description": str(schema.document.get("description") or ""),
            "Schema": json.dumps(schema.document),
            "ProvisioningType": mutable,
            "DeprecatedStatus": "LIVE",
            "Visibility": "PRIVATE" if schema.is_private else "PUBLIC",
        },
    )


def _name_in_arn(arn: str) -> str:
    return arn.rpartition("/")[2].replace("-", "::")


def _request(context: FixContext, call: Call, operation: str, identifier: str) -> Request:
    """Take a request, unless its resource is busy with another."""
    requests, type_name = requests_of(context), call.parameters["TypeName"]
    busy = requests.under_way(type_name, identifier, accounts.current(), call.region)
    if busy is not None:
        message = (
            f"Another resource operation with request token {busy.token} is in progress for "
            f"{type_name} with identifier '{identifier}'"
        )
        raise AwsError("ConcurrentOperationException", message)
    made = Request(
        operation,  # type: ignore[arg-type]  # one of three, by the calls of this module
        type_name,
        identifier,
        accounts.current(),
        call.region,
        str(call.parameters.get("ClientToken") or ""),
        _body(call),
        requests.clock(),
        countdown=context.knobs.countdown(_HANDLERS[operation], type_name),  # type: ignore[arg-type]
    )
    requests.add(made)
    return made


def _repeated(context: FixContext, call: Call) -> Request | None:
    """Return the request that a call repeats by its client token; raises where the token was given to another."""
    token = str(call.parameters.get("ClientToken") or "")
    found = requests_of(context).of_client(token, accounts.current(), call.region)
    if found is None or found.body == _body(call):
        return found
    message = f"The ClientToken {token} was already used in a different request."
    raise AwsError("ClientTokenConflictException", message)


def _body(call: Call) -> str:
    content = {name: value for name, value in call.parameters.items() if name != "ClientToken"}
    return f"{call.operation} {json.dumps(content, sort_keys=True, default=str)}"


def _denial(call: Call, schema: TypeSchema, verb: Verb, identifier: str, after: Model) -> str:
    """Say why a handler may not do it as the caller; empty where it may."""
    before = (STORE.find(schema, identifier, call.region) if identifier and verb != "create" else None) or {}
    return handler_denial(call, HandlerAct(schema, verb, identifier, call.region, before, after)) or ""


def _run(context: FixContext, made: Request, act: Callable[[], None], denied: str) -> None:
    """Let a handler act at once; what it refuses is the failure of its request."""
    if denied:
        made.fail("AccessDenied", denied)
        return
    refusal = context.knobs.refused_request(made.type_name, made.operation)
    if refusal is not None:
        made.hook = refusal.hook
        words = f"The following hook(s) failed: [{refusal.hook}]" if refusal.hook else refusal.message
        made.fail(refusal.code, words)
        return
    try:
        act()
    except Refused as refused:
        made.fail(refused.code, refused.message)
    else:
        if made.operation == "CREATE":
            context.lifecycle.hide(Ref(made.type_name, made.identifier, made.region))


def _run_late(made: Request, act: Callable[[], None]) -> None:
    try:
        act()
    except Refused as refused:
        made.status = "FAILED"
        made.fail(refused.code, refused.message)


def _answered(request: AwsRequest, made: Request, *, is_replay: bool = False) -> Answer:
    answer = written(request, {"ProgressEvent": made.event()})
    return Answer(answer.status, answer.headers, answer.body, is_replay=is_replay)


def _named_request(context: FixContext, call: Call) -> Request:
    token = str(call.parameters["RequestToken"])
    found = requests_of(context).find(token, accounts.current(), call.region)
    if found is None:
        raise AwsError("RequestTokenNotFoundException", f"Request with token {token} was not found.")
    return found


def _is_hidden(context: FixContext, schema: TypeSchema, identifier: str, region: str, *, is_read: bool = False) -> bool:
    ref = Ref(schema.name, identifier, region)
    if not context.lifecycle.is_hidden(ref):
        return False
    if is_read:
        context.lifecycle.count_hidden_read(ref)
    return True


def _count_read(context: FixContext, schema: TypeSchema, identifier: str, region: str) -> None:
    busy = requests_of(context).under_way(schema.name, identifier, accounts.current(), region)
    if busy is not None and busy.countdown is not None:
        busy.countdown.count_read()


def _list_model(schema: TypeSchema, call: Call) -> Model:
    """Return what a listing is limited to; raises where the type wants its parent and none is named."""
    try:
        model = json.loads(call.parameters.get("ResourceModel") or "{}")
    except ValueError:
        raise AwsError("InvalidRequestException", "ResourceModel is not valid JSON") from None
    missing = [name for name in schema.list_parents if name not in model]
    if missing:
        lines = "\n".join(f"#: required key [{name}] not found" for name in missing)
        raise AwsError(
            "InvalidRequestException",
            f"Missing or invalid ResourceModel property in {schema.name} list handler request input."
            f"Required property: ({lines})",
        )
    return dict(model)


def _partial(schema: TypeSchema, identifier: str, region: str) -> Model:
    """Return what a listing shows of a resource: what identifies it, and what its parent is."""
    if not schema.list_parents:
        return dict(zip((path[-1] for path in schema.identifier), identifier.split("|"), strict=False))
    kept = {path[0] for path in schema.identifier} | set(schema.list_parents)
    model = STORE.find(schema, identifier, region) or {}
    return {name: value for name, value in model.items() if name in kept}
