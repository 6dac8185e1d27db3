"""What all AWS offers share, taken from the descriptor of their resource: guard, glass commands, single tags."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any, ClassVar, Final, TypeVar

from fractal_cloud.model.component import Component
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.descriptors import Resource
from fractal_cloud.offers.aws.history import CLOUDTRAIL, FARTHEST_BACK, SLACK, Event, authors
from fractal_cloud.offers.aws.tags import GUARD, RULES, glass_commands, write_tags
from fractal_cloud.offers.history import Asked, Author
from fractal_cloud.offers.offer import Offer, Wanted

C = TypeVar("C", bound=Component)
_MOST_PAGES: Final = 2


class AwsOffer(Offer[C, Aws]):
    """An offer whose resource is described by ``resource``; ``arn_output`` is the output field with its ARN."""

    resource: ClassVar[Resource]
    arn_output: ClassVar[str] = ""
    tag_rules = RULES
    realm = "account"
    guard = GUARD
    record = CLOUDTRAIL

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        described = cls.__dict__.get("resource")
        if described is None:
            return
        cls.service = described.service.name
        if "glass" not in cls.__dict__ and described.service.tagging is not None:
            cls.glass = glass_commands(described.service, cls.arn_output)

    def tag(self, cloud: Aws, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> None:
        """Change single tags, by the two operations of the service."""
        service = self.resource.service
        target = sighting.resource_id
        if service.tagging is not None and not service.tagging.is_by_id:
            target = sighting.outputs[self.arn_output]
        write_tags(cloud, service, target, add, remove)

    def changed_by(
        self, cloud: Aws, sighting: Sighting, wanted: Wanted[C], asked: Collection[Asked]
    ) -> Mapping[str, Author]:
        """Who set these parameters, as CloudTrail records it: by the id of the resource, then by its ARN.

        At most ``_MOST_PAGES`` calls for each of the two, newest events first.
        """
        del wanted
        region = str(sighting.outputs.get("region") or cloud.region)
        arn = str(sighting.outputs.get(self.arn_output) or "")
        here, name = cloud.elsewhere(region), sighting.resource_id.rpartition("/")[2]
        begin = min(one.after if one.after is not None else one.seen - FARTHEST_BACK for one in asked)
        times = {"StartTime": begin - SLACK, "EndTime": max(one.seen for one in asked) + SLACK}
        events = [event for known in dict.fromkeys((name, arn)) if known for event in _events(here, known, times)]
        if not events:
            return {}
        events.sort(key=lambda event: event.at, reverse=True)
        caller = str(here.call("sts", "get_caller_identity").get("Arn") or "")
        return authors(self.resource, {name, sighting.resource_id, sighting.name, arn}, events, caller, asked)


def _events(cloud: Aws, name: str, times: Mapping[str, Any]) -> Iterator[Event]:
    """What CloudTrail shows of calls that named a resource, the newest first, as far as it is asked."""
    attributes = [{"AttributeKey": "ResourceName", "AttributeValue": name}]
    pages = cloud.pages("cloudtrail", "lookup_events", "Events", LookupAttributes=attributes, MaxResults=50, **times)
    for page in islice(pages, _MOST_PAGES):
        yield from (event for event in map(Event.read, page) if event is not None)
