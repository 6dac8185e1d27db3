"""What a person does to the resources of one type of AWS, with AWS's own tools; who is there says the sandbox itself.

Values change by Cloud Control. Tags change as people change them: by the tagging API, and where that does not serve a
type by the calls of its service, or by Cloud Control.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fractal_cloud.testing import Found
from fractal_sandbox.aws.cloudcontrol.schemas import TypeSchema, catalog
from fractal_sandbox.aws.cloudcontrol.store import STORE
from fractal_sandbox.aws.cloudcontrol.values import arn_of, is_global
from tests import world

_NOT_SERVED: Final = frozenset({"AutoScaling", "Budgets", "CE", "IAM", "Organizations", "SSO"})
# https://docs.aws.amazon.com/IAM/latest/APIReference/API_TagPolicy.html and API_TagInstanceProfile.html
_BY_IAM: Final = {
    "AWS::IAM::ManagedPolicy": ("policy", "PolicyArn"),
    "AWS::IAM::InstanceProfile": ("instance_profile", "InstanceProfileName"),
}

Names = Callable[[str], Mapping[str, Any]]
"""The properties that a resource of some name is known by."""


@dataclass(frozen=True)
class Person:
    """What a person does to resources of one type. ``names``: what their names are in; nothing of it is the tag."""

    name: str
    person: world.Person
    names: Names

    @property
    def _schema(self) -> TypeSchema:
        found = catalog().find(self.name)
        assert found is not None, self.name
        return found

    def find(self, name: str) -> list[Found]:
        """All living resources of that name."""
        return [found for found, model in self._all() if self._is_called(name, found, model)]

    def _is_called(self, name: str, found: Found, model: Mapping[str, Any]) -> bool:
        own = self.names(name)
        if not own:
            return found.tags.get("Name") == name
        return all(model.get(key) == value for key, value in own.items())

    def _all(self) -> Iterator[tuple[Found, Mapping[str, Any]]]:
        schema, region = self._schema, self.person.region
        for identifier, model in STORE.all(schema, region):
            tags = STORE.tags(schema, identifier, region) or {}
            arn = arn_of(schema, identifier, model, "" if is_global(self.name) else region)
            yield Found(identifier, tags, arn), model

    def edit(self, resource_id: str, parameter: str, value: Any) -> None:
        """Change one parameter."""
        self._patch(resource_id, parameter, value)

    def _patch(self, resource_id: str, name: str, value: Any) -> None:
        values = {**self._unread(resource_id), name: value}
        change = json.dumps([{"op": "add", "path": f"/{key}", "value": one} for key, one in values.items()])
        control = self.person.client("cloudcontrol")
        made = control.update_resource(TypeName=self.name, Identifier=resource_id, PatchDocument=change)
        self._done(control, made)

    def _unread(self, resource_id: str) -> Mapping[str, Any]:
        """What every patch must bring since it is required and never shown: people have it in their own files."""
        schema = self._schema
        model = STORE.find(schema, resource_id, self.person.region) or {}
        shown = STORE.shown(schema, model)
        return {key: model[key] for key in schema.document.get("required") or () if key in model and key not in shown}

    def tag(self, found: Found, tags: Mapping[str, str]) -> None:
        """Put tags on it, leaving the others."""
        if self.name in _BY_IAM:
            noun, parameter = _BY_IAM[self.name]
            pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
            getattr(self.person.client("iam"), f"tag_{noun}")(**{parameter: found.resource_id}, Tags=pairs)
        elif self._is_served:
            self._tagged("tag_resources", found, Tags=dict(tags))
        else:
            self._write_tags(found, {**self._tags(found), **tags})

    def untag(self, found: Found, *keys: str) -> None:
        """Take tags off it, leaving the others."""
        if self.name in _BY_IAM:
            noun, parameter = _BY_IAM[self.name]
            getattr(self.person.client("iam"), f"untag_{noun}")(**{parameter: found.resource_id}, TagKeys=list(keys))
        elif self._is_served:
            self._tagged("untag_resources", found, TagKeys=list(keys))
        else:
            self._write_tags(found, {key: value for key, value in self._tags(found).items() if key not in keys})

    @property
    def _is_served(self) -> bool:
        return self.name.split("::")[1] not in _NOT_SERVED

    def _tagged(self, call: str, found: Found, **parameters: Any) -> None:
        tagging = self.person.client("resourcegroupstaggingapi")
        failed = getattr(tagging, call)(ResourceARNList=[found.handle], **parameters)["FailedResourcesMap"]
        assert not failed, failed

    def _tags(self, found: Found) -> Mapping[str, str]:
        return next(one.tags for one, _ in self._all() if one.resource_id == found.resource_id)

    def _write_tags(self, found: Found, tags: Mapping[str, str]) -> None:
        schema = self._schema
        written = STORE.find(schema, found.resource_id, self.person.region) or {}
        names = schema.tag_names
        held = (
            dict(tags)
            if names is None
            else [{**_more(written, schema), names[0]: key, names[1]: value} for key, value in tags.items()]
        )
        self._patch(found.resource_id, schema.tag_property, held)

    def delete(self, found: Found) -> None:
        """Delete it."""
        control = self.person.client("cloudcontrol")
        self._done(control, control.delete_resource(TypeName=self.name, Identifier=found.resource_id))

    def make_anew(self, found: Found) -> None:
        """Delete it and make another with its properties, its name, and nobody's tags but that name."""
        schema, region = self._schema, self.person.region
        model = dict(STORE.find(schema, found.resource_id, region) or {})
        model.pop(schema.tag_property, None)
        for path in schema.read_only:
            model.pop(path[0], None)
        self.delete(found)
        named = {"Name": found.tags["Name"]} if "Name" in found.tags else {}
        names = schema.tag_names
        if schema.tag_property and named:
            pairs = [{names[0]: key, names[1]: value} for key, value in named.items()] if names else named
            model[schema.tag_property] = pairs
        control = self.person.client("cloudcontrol")
        self._done(control, control.create_resource(TypeName=self.name, DesiredState=json.dumps(model)))

    def _done(self, control: Any, made: Any) -> None:
        token = made["ProgressEvent"]["RequestToken"]
        event = control.get_resource_request_status(RequestToken=token)["ProgressEvent"]
        assert event["OperationStatus"] == "SUCCESS", event


def _more(model: Mapping[str, Any], schema: TypeSchema) -> Mapping[str, Any]:
    """What an entry of the list of tags says beside key and value, as the ones that are there say it."""
    names = schema.tag_names or ()
    entry: Mapping[str, Any] = next(iter(model.get(schema.tag_property) or ()), {})
    return {name: value for name, value in entry.items() if name not in names}
