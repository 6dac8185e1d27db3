"""How the resources of any type of AWS are read and changed: by Cloud Control, by the type's published schema.

No name of a type stands here: what a type needs beyond its schema stands in the tables. What is under way when a verb
returns is read again by the agent; nothing here waits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from fractal_cloud.model.errors import CloudError, Invalid, NotFound, Overtaken, UnderWay
from fractal_cloud.model.generic_component import GenericComponent
from fractal_cloud.model.sighting import Condition, Sighting, UnreadItem
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.resources import calls, tags
from fractal_cloud.offers.aws.resources.adapters import Adapted
from fractal_cloud.offers.aws.resources.calls import Progress, Properties
from fractal_cloud.offers.aws.resources.facts import NAME, REALM, REGION, Described
from fractal_cloud.offers.aws.resources.known import Memory
from fractal_cloud.offers.aws.resources.located import Located
from fractal_cloud.offers.aws.resources.patch import Operation, patch
from fractal_cloud.offers.aws.resources.reading import Search
from fractal_cloud.offers.aws.resources.sighting import Shown
from fractal_cloud.offers.aws.resources.spellings import as_declared
from fractal_cloud.offers.aws.resources.tables.places import home_region
from fractal_cloud.offers.aws.resources.tables.tagging import FIRST_TAGS
from fractal_cloud.offers.aws.tags import NAME as NAME_TAG
from fractal_cloud.offers.aws.tags import one_way
from fractal_cloud.offers.family import FamilyOffer
from fractal_cloud.offers.offer import Query, Recognition, Wanted
from fractal_cloud.rules.nested.correct import corrected

_AT_WORK: Final = "AWS has begun to make it, and does not say its identifier yet"


class AwsTypeOffer(FamilyOffer[Aws]):
    """How every type of AWS is read and changed."""

    described: ClassVar[Described]
    service = calls.SERVICE
    recognition = Recognition.TOKEN
    reads_what_is_declared = True

    @classmethod
    def of_type(cls, described: Described) -> AwsTypeOffer:
        """The offer of one type."""
        part = described.type.part
        return cls.of(
            described.facts(),
            described=described,
            key=described.key,
            reads_by_parent=described.is_in_several,
            ids_return=described.ids_return,
            blocks_parent_deletion=part is not None and part.blocks_parent,
            predicted={},
            unguarded=described.unguarded,
            unlisted=described.unlisted,
        )

    # --- reading

    def sightings(self, cloud: Aws, query: Query) -> Iterator[Sighting | UnreadItem]:
        """What is declared of this type, and what else LiveSystems of the scope own of it."""
        located = Located.of(self.described.type, cloud)
        if located is None:
            yield from Search(self.described, self._there(cloud), query).run()
            return
        for here, asked in located.by_region(query):
            yield from Search(self.described, here, asked).run()

    def read(self, cloud: Aws, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One resource, whole."""
        del sweep  # one call shows all there is
        located = Located.of(self.described.type, cloud)
        here = self._there(cloud) if located is None else located.there(resource_id)
        return None if here is None else Shown(self.described, here).read(resource_id)

    def sweep(self, cloud: Aws, sighting: Sighting, names: Collection[str]) -> Mapping[str, Any]:
        """These values, in one call for all of them; none where the resource was just read whole."""
        if all(name in sighting.actual for name in names):
            return {name: sighting.actual[name] for name in names}
        found = self.read(cloud, sighting.resource_id)
        if found is None:
            raise NotFound(f"{sighting.resource_id!r} is listed, but not there any more: it is looked for again")
        return {name: found.actual.get(name) for name in names}

    def sweep_calls(self, names: Collection[str]) -> int:
        """One call shows all."""
        return 1 if names else 0

    def as_declared(self, sighting: Sighting, declared: Mapping[str, Any], published: Mapping[str, Any]) -> Sighting:
        """The same resource, its values spelled as they are declared where they mean the same."""
        del published
        actual = as_declared(self.type, sighting.actual, declared)
        return sighting if actual is sighting.actual else replace(sighting, actual=actual)

    def managed_elsewhere(self, sighting: Sighting) -> str:
        """The stack that it belongs to (T7)."""
        stack = tags.stack(sighting.tags)
        return "" if stack is None else f"the CloudFormation stack {stack!r}"

    # --- writing

    def create(self, cloud: Aws, wanted: Wanted[GenericComponent], tags: ProtocolTags) -> Sighting:
        """Have it made, its tags with it; the same token never makes a second one."""
        here = self._to_write(cloud, wanted.parent_id or "")
        memory = Memory.of(here)
        progress = calls.create(here, self.type, self._desired(wanted, tags), wanted.token)
        if not progress.identifier and progress.is_under_way:
            progress = calls.status(here, progress.token) or progress
        if progress.has_failed:
            found = self._remains(here, progress, tags)
            if found is None:
                raise progress.error()
            return found
        if not progress.identifier:
            raise UnderWay(f"{_AT_WORK}: it is asked for again by the same token, which makes no second one")
        identifier = progress.identifier
        name = self._name(wanted)
        memory.types[self.type].assigned[identifier] = name, wanted.parent_id
        memory.requests.add(progress, wanted.token)
        if self._tags_follow:
            self.predicted[wanted.token] = identifier
        shown = Shown(self.described, here)
        return replace(shown.beginning(identifier, progress), name=name, parent_id=wanted.parent_id, protocol=tags)

    def _remains(self, here: Aws, progress: Progress, tags: ProtocolTags) -> Sighting | None:
        """What a creation left that failed after it had made something of ours: it is taken as made, and corrected."""
        if not progress.identifier or progress.code == "AlreadyExists":
            return None
        found = Shown(self.described, here).read(progress.identifier)
        is_own = found is not None and tags.owner is not None and found.protocol.owner == tags.owner
        return replace(found, condition=Condition.BROKEN, detail=progress.message) if found and is_own else None

    def update(self, cloud: Aws, sighting: Sighting, wanted: Wanted[GenericComponent], drift: Collection[str]) -> None:
        """Patch what drifted, and nothing else, under the condition that the tags are as they were read."""
        here = self._to_write(cloud, sighting.resource_id)
        schema = self.said.parameter_schema
        declared = self._declared(wanted)
        before = {name: sighting.actual[name] for name in self.described.declarable if _is_there(sighting, name)}
        after = corrected(before, declared, schema, drift, wanted.ignored)
        operations = patch(before, {**after, **self._said_again(sighting, declared, drift, wanted)})
        if operations:
            self._patch(here, sighting, operations)

    def delete(self, cloud: Aws, sighting: Sighting) -> None:
        """Have it deleted; AWS names what blocks it once it has tried."""
        located = Located.of(self.described.type, cloud)
        here = self._there(cloud) if located is None else located.there(sighting.resource_id)
        if here is None:
            return  # it went with its parent
        requests = Memory.of(here).requests
        requests.raise_failure(self.type, sighting.resource_id, calls.DELETE, "delete")
        progress = calls.delete(here, self.type, sighting.resource_id)
        if progress is None:
            return
        if progress.has_failed:
            error = progress.error()
            if not isinstance(error, NotFound):
                raise error
            return
        requests.add(progress if progress.identifier else _of(progress, sighting), "delete")

    def tag(self, cloud: Aws, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> None:
        """Change single tags: by a patch under the condition that nobody changed any since they were read."""
        here = self._there(cloud)
        adding, removing = one_way(add, remove)
        kind = self.described.type
        if kind.tags is None:
            assert kind.adapter is not None, "what carries no tags is never tagged"
            self._tag_by_adapter(here, sighting, adding, removing)
            return
        raw = json.loads(sighting.revision or "null")
        is_untested = raw is None and bool(adding)  # nothing is there that could be tested
        if self.described.is_listed_by_tags and (is_untested or self._unread(sighting)):
            given = {one: text for key, text in adding.items() for one in tags.spelled(kind.tags, raw, [key])}
            self._tag_by_tagging_api(here, sighting, given, tags.spelled(kind.tags, raw, removing))
            return
        if is_untested and kind.name in FIRST_TAGS:
            Adapted(FIRST_TAGS[kind.name]).add(here, {**sighting.actual, **sighting.outputs}, adding)
            return
        operations = tags.changes(kind.tags, raw, adding, removing)
        if operations:
            self._patch(here, sighting, operations)

    def has_creation_failed(self, cloud: Aws, token: str, resource_id: str) -> bool:
        """Whether the last read of what it was to make found that its request has failed."""
        requests = Memory.of(self._as_last(cloud, resource_id)).requests
        return requests.has_failed(self.type, resource_id, calls.CREATE, token)

    def why_refused(self, cloud: Aws, resource_id: str) -> CloudError | None:
        """What became of the last change, where its request has failed."""
        return Memory.of(self._as_last(cloud, resource_id)).requests.failed_change(self.type, resource_id)

    # --- creations whose tags follow

    predicted: ClassVar[dict[str, str]]

    def tags_follow(self, cloud: Aws) -> bool:
        """Whether nothing of this type takes tags in the create call (S17)."""
        del cloud
        return self._tags_follow

    def predicted_id(self, token: str) -> str | None:
        """What a creation of this process made, where its tags follow; after a restart nobody knows it (S7)."""
        return self.predicted.get(token) if self._tags_follow else None

    @property
    def _tags_follow(self) -> bool:
        adapter = self.described.type.adapter
        return adapter is not None and not adapter.at_creation

    # --- how

    def _there(self, cloud: Aws) -> Aws:
        """The cloud in the region where the type is called: its home, where it is in none."""
        kind = self.described.type
        return cloud if kind.place else cloud.elsewhere(home_region(kind.name, cloud.region))

    def _to_write(self, cloud: Aws, parent_id: str) -> Aws:
        """Where a resource is written: of a part that is observed for all regions, that of its parent (`located`)."""
        located = Located.of(self.described.type, cloud)
        return self._there(cloud) if located is None else located.to_write(parent_id)

    def _as_last(self, cloud: Aws, resource_id: str) -> Aws:
        located = Located.of(self.described.type, cloud)
        return self._there(cloud) if located is None else located.as_last(resource_id)

    def _name(self, wanted: Wanted[GenericComponent]) -> str:
        described = self.described
        if described.key or described.is_only_part:
            return described.name_of(wanted.component.parameters(), {})
        return wanted.component.name

    def _declared(self, wanted: Wanted[GenericComponent]) -> Properties:
        """The declared properties, without the words of this product that no schema has."""
        own = {REALM, REGION, *((NAME,) if self.described.is_named_by_tag else ())}
        return {name: value for name, value in wanted.component.parameters().items() if name not in own}

    def _desired(self, wanted: Wanted[GenericComponent], protocol: ProtocolTags) -> Properties:
        """What is to be made: what is declared, its name, and its tags."""
        kind, described = self.described.type, self.described
        state = self._declared(wanted)
        if described.name_parameter:
            state.setdefault(described.name_parameter, wanted.component.name)
        stamped = protocol.to_mapping()
        if described.is_named_by_tag:
            stamped = {NAME_TAG: wanted.component.name, **stamped}
        if kind.tags is not None:
            state[kind.tags.property] = tags.written(kind.tags, stamped)
        elif kind.adapter is not None and kind.adapter.at_creation:
            at = kind.adapter.at_creation
            others = [one for one in state.get(at) or () if one.get("ResourceType") != kind.adapter.kind]
            pairs = [{"Key": key, "Value": value} for key, value in stamped.items()]
            state[at] = [*others, {"ResourceType": kind.adapter.kind, "Tags": pairs}]
        return state

    def _said_again(
        self, sighting: Sighting, declared: Properties, drift: Collection[str], wanted: Wanted[GenericComponent]
    ) -> Properties:
        """What AWS never reads back and yet wants with every change: the required properties among it (A8)."""
        kind = self.described.type
        needed = self._unread(sighting) - set(wanted.ignored)
        written = {name for name in kind.write_only if name in drift}
        return {name: declared[name] for name in sorted(needed | written) if name in declared}

    def _unread(self, sighting: Sighting) -> set[str]:
        """The required properties that no read shows, whole or with all that is in them: no patch passes without."""
        return {name for name in self.described.type.unread_requirements if not _is_there(sighting, name)}

    def _patch(self, here: Aws, sighting: Sighting, operations: list[Operation]) -> None:
        kind = self.described.type
        requests = Memory.of(here).requests
        about = hashlib.sha256(json.dumps(operations, sort_keys=True).encode()).hexdigest()
        requests.raise_failure(self.type, sighting.resource_id, calls.UPDATE, about)
        raw = json.loads(sighting.revision or "null")
        test = tags.guard(kind.tags, raw) if kind.tags is not None else []
        try:
            progress = calls.update(here, self.type, sighting.resource_id, [*test, *operations])
        except Invalid as refused:
            if test and self._is_overtaken(here, sighting):
                raise _overtaken(sighting, refused) from refused
            raise
        if progress.has_failed:
            raise progress.error()
        requests.add(progress if progress.identifier else _of(progress, sighting), about)

    def _is_overtaken(self, here: Aws, sighting: Sighting) -> bool:
        """Whether the tags have changed since they were read: AWS refuses a failed test like any other bad patch."""
        now = Shown(self.described, here).read(sighting.resource_id)
        return now is None or now.revision != sighting.revision

    def _tag_by_tagging_api(
        self, here: Aws, sighting: Sighting, adding: Mapping[str, str], removing: Collection[str]
    ) -> None:
        """Single tags, where a patch cannot change them alone: under no condition but the guard's own read."""
        arn = str(sighting.outputs[self.described.arn_output])
        if adding:
            calls.write_tags(here, "tag_resources", arn, Tags=dict(adding))
        elif removing:
            calls.write_tags(here, "untag_resources", arn, TagKeys=list(removing))

    def _tag_by_adapter(
        self, here: Aws, sighting: Sighting, adding: Mapping[str, str], removing: Mapping[str, str]
    ) -> None:
        adapter = self.described.type.adapter
        assert adapter is not None, "asked only where there is one"
        adapted, values = Adapted(adapter), {**sighting.actual, **sighting.outputs}
        if adding:
            adapted.add(here, values, adding)
        elif removing:
            adapted.remove(here, values, removing)


def _is_there(sighting: Sighting, name: str) -> bool:
    return sighting.actual.get(name) is not None


def _of(progress: Progress, sighting: Sighting) -> Progress:
    return replace(progress, identifier=sighting.resource_id, type_name=sighting.type)


def _overtaken(sighting: Sighting, refused: CloudError) -> Overtaken:
    return Overtaken(
        f"the tags of {sighting.resource_id!r} changed right before the write ({refused.code}): nothing was written, "
        "and it is tried again",
        code=refused.code,
        request_id=refused.request_id,
    )
