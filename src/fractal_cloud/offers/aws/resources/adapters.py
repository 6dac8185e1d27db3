"""The tags of types whose schema has none, by the calls of their own service, as a table names these."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from fractal_cloud.model.errors import NotFound, Unreadable
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.resources.tables.tagging import Adapter
from fractal_cloud.offers.aws.tags import from_list


@dataclass(frozen=True, slots=True)
class Adapted:
    """Reads and writes single tags by an adapter; none of its calls replaces a set."""

    adapter: Adapter

    def read(self, cloud: Aws, values: Mapping[str, Any]) -> Mapping[str, str]:
        """The tags of the resource with these properties, to the end of the list."""
        adapter = self.adapter
        pages = cloud.pages(adapter.client, adapter.list_call, "Tags", **self._asked(values))
        try:
            return from_list([one for page in pages for one in page])
        except NotFound as error:  # Cloud Control has just shown it: which of the two is right shows the next time
            raise Unreadable(f"its tags cannot be read: {error.message}", code=error.code) from error

    def add(self, cloud: Aws, values: Mapping[str, Any], tags: Mapping[str, str]) -> None:
        """Put on these tags."""
        pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
        cloud.call(self.adapter.client, self.adapter.tag_call, **self._about(values), Tags=pairs)

    def remove(self, cloud: Aws, values: Mapping[str, Any], tags: Mapping[str, str]) -> None:
        """Take off these tags; where the service takes pairs, only while they have these values."""
        adapter = self.adapter
        pairs: Collection[Any] = list(tags)
        name = "TagKeys"
        if adapter.removes_pairs:
            name, pairs = "Tags", [{"Key": key, "Value": value} for key, value in tags.items()]
        cloud.call(adapter.client, adapter.untag_call, **self._about(values), **{name: pairs})

    def _target(self, values: Mapping[str, Any]) -> str:
        target = values.get(self.adapter.property)
        if not target:
            raise Unreadable(f"AWS does not say the {self.adapter.property}, by which its tags are read")
        return str(target)

    def _about(self, values: Mapping[str, Any]) -> dict[str, Any]:
        target = self._target(values)
        return {self.adapter.parameter: [target] if self.adapter.parameter_is_list else target}

    def _asked(self, values: Mapping[str, Any]) -> dict[str, Any]:
        if not self.adapter.list_filter:
            return self._about(values)
        return {"Filters": [{"Name": self.adapter.list_filter, "Values": [self._target(values)]}]}
