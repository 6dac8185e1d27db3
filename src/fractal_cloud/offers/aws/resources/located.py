"""In which region a part is called whose parent is observed for all regions at once: in that of its parent.

Such a part bears the parent's id, so that what it is called by is known wherever the part itself is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from fractal_cloud.model.catalog import GLOBAL_PLACE
from fractal_cloud.model.errors import NotFound
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.resources.schema import AwsType
from fractal_cloud.offers.aws.s3 import bucket_regions, region_of_bucket
from fractal_cloud.offers.offer import DeclaredResource, Query


@dataclass(frozen=True, slots=True)
class _Finder:
    """``all``: the regions of all parents, by their ids; ``one``: that of one, fresh, None where it is not there."""

    all: Callable[[Aws], Mapping[str, str]]
    one: Callable[[Aws, str], str | None]


_FINDERS: Final[Mapping[str, _Finder]] = {"AWS::S3::Bucket": _Finder(bucket_regions, region_of_bucket)}


@dataclass(slots=True)
class _Last:
    """Where parents were when they were last looked for, for what is asked without a call."""

    regions: dict[str, str] = field(default_factory=dict)


class Located:
    """The parts of one type in a scope of all regions."""

    def __init__(self, kind: AwsType, cloud: Aws) -> None:
        assert kind.part is not None, "asked of parts only"
        self._find = _FINDERS[kind.part.parent_type]
        self._cloud = cloud
        self._last = cloud.memory(_Last).regions

    @classmethod
    def of(cls, kind: AwsType, cloud: Aws) -> Located | None:
        """Those of a type, where the scope is of all regions though the type is not."""
        return cls(kind, cloud) if kind.place and cloud.scope.place == GLOBAL_PLACE else None

    def by_region(self, query: Query) -> Iterator[tuple[Aws, Query]]:
        """What is asked of each region; of a parent that is not there, nothing is there either."""
        if not query.declared:
            return
        regions = self._find.all(self._cloud)
        self._last.update(regions)
        declared: dict[str, list[DeclaredResource]] = defaultdict(list)
        for item in query.declared:
            region = regions.get(item.parent_id or "")
            if region:
                declared[region].append(item)
        for region, items in sorted(declared.items()):
            yield self._cloud.elsewhere(region), replace(query, declared=tuple(items))

    def there(self, parent_id: str) -> Aws | None:
        """The cloud in the region of a parent, fresh; None where that does not exist."""
        region = self._find.one(self._cloud, parent_id)
        if region is None:
            return None
        self._last[parent_id] = region
        return self._cloud.elsewhere(region)

    def to_write(self, parent_id: str) -> Aws:
        """The same, for a write: without its parent there is nothing to write in."""
        found = self.there(parent_id)
        if found is None:
            raise NotFound(f"{parent_id!r}, which it is a part of, does not exist: it is looked for again")
        return found

    def as_last(self, parent_id: str) -> Aws:
        """The cloud in the region where a parent was seen last, without a call."""
        return self._cloud.elsewhere(self._last.get(parent_id, self._cloud.region))
