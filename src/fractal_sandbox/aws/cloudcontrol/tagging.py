"""The Resource Groups Tagging API over what Cloud Control made: its resources beside those that moto shows.

Pages are cut elsewhere, from the whole. What moto has too, moto shows; only tags are written through Cloud Control's
own handling, since moto's cannot write those of every service.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fractal_sandbox.aws.answer import Answer, read, written
from fractal_sandbox.aws.cloudcontrol import handling
from fractal_sandbox.aws.cloudcontrol.refs import ref_from_arn
from fractal_sandbox.aws.cloudcontrol.schemas import TypeSchema, catalog
from fractal_sandbox.aws.cloudcontrol.store import STORE, Model, tags_in
from fractal_sandbox.aws.cloudcontrol.twins import Refused, Twin, all_twins, find_twin
from fractal_sandbox.aws.cloudcontrol.values import arn_of
from fractal_sandbox.aws.descriptors import Ref
from fractal_sandbox.aws.moto_fixes.registry import FixContext, fix
from fractal_sandbox.aws.request import AwsRequest, with_parameters
from fractal_sandbox.calls import Call

__all__ = ["resource_type"]

_SERVICE: Final = "resourcegroupstaggingapi"
# Their tags change by their own calls alone.
_NOT_SERVED: Final = frozenset({"AutoScaling", "Budgets", "IAM", "Organizations", "SSO"})
_HOME: Final = "us-east-1"


def resource_type(arn: str) -> str:
    """Return what a filter calls the type of a resource: its service, and the noun in its ARN where there is one."""
    _, _, service, _, _, rest = arn.split(":", 5)
    nouns = [rest.partition(sign)[0] for sign in "/:" if sign in rest]
    return f"{service}:{min(nouns, key=len)}" if nouns else service


@fix(_SERVICE, "GetResources")
def get_resources(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    answer = context.dispatch(request)
    if not answer.is_success or call.parameters.get("PaginationToken"):
        return answer  # what is ours stands on the first page
    ours = [{"ResourceARN": arn, "Tags": _pairs(tags)} for arn, tags in _ours(context, call)]
    if not ours:
        return answer
    data = read(request, answer)
    data["ResourceTagMappingList"] = [*data.get("ResourceTagMappingList", []), *ours]
    return written(request, data, answer)


@fix(_SERVICE, "TagResources", "UntagResources")
def write_tags(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    arns = call.parameters.get("ResourceARNList") or []
    ours = {arn: ref for arn in arns if (ref := ref_from_arn(arn)) is not None and catalog().find(ref.kind)}
    others = [arn for arn in arns if arn not in ours]
    failed: dict[str, Any] = {}
    if others:
        rest = request if not ours else with_parameters(request, {**call.parameters, "ResourceARNList": others})
        answer = context.dispatch(rest)
        if not answer.is_success or not ours:
            return answer
        failed |= read(rest, answer).get("FailedResourcesMap") or {}
    for arn, ref in ours.items():
        why = _retag(ref, call.parameters)
        if why:
            failed[arn] = {"StatusCode": 400, "ErrorCode": "InvalidParameterException", "ErrorMessage": why}
    return written(request, {"FailedResourcesMap": failed})


def _retag(ref: Ref, parameters: Mapping[str, Any]) -> str:
    """Change the tags of one resource; return why not, where that is so."""
    schema = catalog().find(ref.kind)
    assert schema is not None  # only resources of known types get here
    tags = STORE.tags(schema, ref.id, ref.region)
    gone = set(parameters.get("TagKeys") or ())
    twin = find_twin(schema.name)
    if twin is not None and not schema.tag_property and schema.name.split("::")[1] not in _NOT_SERVED:
        return _retag_there(twin, ref, tags, gone, dict(parameters.get("Tags") or {}))
    if not _is_served(schema) or not (schema.document.get("tagging") or {}).get("tagUpdatable", True):
        return f"The tags of {schema.name} cannot be changed by this service"
    if tags is None:
        return _gone(ref)
    after = {key: value for key, value in tags.items() if key not in gone} | dict(parameters.get("Tags") or {})
    try:
        handling.retag(schema, ref.id, after, ref.region)
    except Refused as refused:
        return refused.message
    return ""


def _retag_there(twin: Twin, ref: Ref, tags: Mapping[str, str] | None, gone: set[str], added: dict[str, str]) -> str:
    """Change single tags that the schema does not have and the type's own service has."""
    if tags is None:
        return _gone(ref)
    try:
        twin.write_tags(ref.id, added, [key for key in gone if key in tags], ref.region)
    except Refused as refused:
        return refused.message
    return ""


def _gone(ref: Ref) -> str:
    return f"Resource with identifier {ref.id} does not exist"


def _ours(context: FixContext, call: Call) -> Iterator[tuple[str, dict[str, str]]]:
    from moto.core.resource_tagging import make_tag_matcher, match_resource_type

    parameters = call.parameters
    fits = make_tag_matcher(parameters.get("TagFilters"))
    kinds, wanted = parameters.get("ResourceTypeFilters"), parameters.get("ResourceARNList")
    for schema, identifier, region, model in [*STORE.plain(), *_unlisted(call.region)]:
        if not _is_served(schema) or (region or _HOME) != call.region:
            continue
        tags = tags_in(schema, model)
        arn = arn_of(schema, identifier, model, region)
        is_wanted = tags and fits(tags) and match_resource_type(resource_type(arn), kinds)
        if is_wanted and (not wanted or arn in wanted):
            ref = Ref(schema.name, identifier, region)
            if context.lifecycle.is_hidden(ref):
                context.lifecycle.count_hidden_read(ref)
            else:
                yield arn, tags


def _unlisted(region: str) -> Iterator[tuple[TypeSchema, str, str, Model]]:
    """What another service has too, and moto's tagging API leaves out."""
    for name in all_twins():
        twin, schema = find_twin(name), catalog().find(name)
        if twin is None or twin.is_listed or schema is None or region not in twin.regions:
            continue
        for identifier, model in STORE.all(schema, region):
            yield schema, identifier, region, model


def _is_served(schema: TypeSchema) -> bool:
    return schema.name.split("::")[1] not in _NOT_SERVED and bool(schema.tag_property)


def _pairs(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]
