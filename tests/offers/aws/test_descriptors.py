"""The descriptors of AWS against AWS's own models, as the SDK brings them: a false fact is found without any agent."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import botocore.session
import pytest
from botocore import xform_name
from botocore.model import OperationModel, Shape

from fractal_cloud.offers.aws.aws_offer import AwsOffer
from fractal_cloud.offers.aws.descriptors import Resource, Service, method
from fractal_cloud.offers.aws.services import services
from fractal_cloud.offers.registry import installed
from fractal_sandbox.aws.classifying import is_read

RESOURCES = [offer.resource for offer in installed().of_provider("aws") if isinstance(offer, AwsOffer)]
every_resource = pytest.mark.parametrize("resource", RESOURCES, ids=lambda one: str(one.kind))
every_service = pytest.mark.parametrize("service", services().values(), ids=lambda one: str(one.name))
# What removes a setting of a resource deletes no resource.
SETTINGS = {
    *("DeleteBucketEncryption", "DeleteBucketLifecycle", "DeleteBucketOwnershipControls", "DeletePublicAccessBlock"),
}


@cache
def _sdk() -> Any:
    return botocore.session.get_session()


@cache
def _operation(service: str, name: str) -> OperationModel:
    found: OperationModel = _sdk().get_service_model(service).operation_model(name)
    return found


def _members(shape: Shape | None) -> dict[str, Shape]:
    return dict(getattr(shape, "members", {}))


def _has(shape: Any, path: str) -> bool:
    """Whether an answer of a shape holds a path of names, going into lists."""
    name, _, rest = path.partition(".")
    while getattr(shape, "type_name", "") == "list":
        shape = shape.member
    return not path or (name in _members(shape) and _has(_members(shape)[name], rest))


def _writes(resource: Resource) -> Iterator[str]:
    yield from (*resource.modifies, *resource.deletes, *resource.also_modifies, *resource.replaces_tags)


BY_ASSOCIATION = dict.fromkeys(
    ("DisassociateIamInstanceProfile", "ReplaceIamInstanceProfileAssociation"), "AssociationId"
)
"""Calls that name what holds a machine and its profile together, and so the machine."""


@every_resource
def test_what_changes_a_resource_names_it(resource: Resource) -> None:
    for name in _writes(resource):
        asked = _members(_operation(resource.service.name, name).input_shape)
        assert set(asked) & {*resource.named_by, BY_ASSOCIATION.get(name)}, name


@every_resource
def test_every_write_is_one_and_does_what_its_name_says(resource: Resource) -> None:
    writes = {*resource.creates, *_writes(resource)}
    assert not [name for name in writes if is_read(resource.service.name, name)]
    assert all(name.startswith(("Create", "Run")) for name in resource.creates)
    assert all(name.startswith(("Delete", "Terminate")) for name in resource.deletes)
    changing = {*resource.modifies, *resource.also_modifies} - SETTINGS
    assert not [name for name in changing if name.startswith(("Create", "Run", "Delete", "Terminate"))]


@every_resource
def test_answers_show_it_where_the_descriptor_says(resource: Resource) -> None:
    service = resource.service.name
    for name, path in {**resource.creates, **resource.shown_by}.items():
        assert _has(_operation(service, name).output_shape, path), name
    for one in resource.listings:
        shape = _operation(service, one.operation).output_shape
        assert _has(shape, ".".join(filter(None, (one.path, one.id)))), one.operation
        assert is_read(service, one.operation)
    assert all(is_read(service, _operation(service, name).name) for name in resource.reads)


@every_resource
def test_lists_are_paged_as_the_sdk_pages_them(resource: Resource) -> None:
    pages = _sdk().get_paginator_model(resource.service.name)
    for one in resource.listings:
        if not one.is_by_name:
            facts = pages.get_paginator(one.operation)
            assert (facts["input_token"], facts["output_token"]) == resource.service.cursor
            assert facts.get("limit_key", "") == resource.service.paging.limit
            assert one.key in facts["result_key"]


@every_service
def test_single_tags_are_written_and_read_as_the_models_say(service: Service) -> None:
    tagging = service.tagging
    if tagging is None:
        return
    add = _members(_operation(service.name, tagging.add).input_shape)
    assert {tagging.target, tagging.tags} <= set(add)
    removed = _members(_operation(service.name, tagging.remove).input_shape)
    assert {tagging.target, tagging.keys or tagging.tags} <= set(removed)
    assert (add[tagging.target].type_name == "list") == tagging.is_by_id
    if tagging.pair is None:
        assert add[tagging.tags].type_name == "map"
    else:
        assert set(tagging.pair) <= set(_members(getattr(add[tagging.tags], "member", None)))
    if not tagging.is_by_id:
        assert tagging.target in _members(_operation(service.name, tagging.read).input_shape)


@every_service
def test_methods_are_spelled_as_the_sdk_spells_them(service: Service) -> None:
    for name in _sdk().get_service_model(service.name).operation_names:
        if method(name) != xform_name(name):
            assert not any(name in {*one.creates, *_writes(one), *one.shown_by} for one in RESOURCES), name


@every_service
def test_no_code_means_two_things(service: Service) -> None:
    codes = [*service.not_found, *service.conflict, *service.invalid, *service.limit]
    assert len(codes) == len(set(codes))


def test_every_kind_has_its_own_name() -> None:
    assert len({one.kind for one in RESOURCES}) == len(RESOURCES)
