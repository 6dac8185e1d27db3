"""What all AWS offers share, taken from the descriptor of their resource: guard, glass commands, single tags."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from fractal_cloud.model.component import Component
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.descriptors import Resource
from fractal_cloud.offers.aws.tags import GUARD, glass_commands, write_tags
from fractal_cloud.offers.offer import Offer

C = TypeVar("C", bound=Component)


class AwsOffer(Offer[C, Aws]):
    """An offer whose resource is described by ``resource``; ``arn_output`` is the output field with its ARN."""

    resource: ClassVar[Resource]
    arn_output: ClassVar[str] = ""
    guard = GUARD

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
