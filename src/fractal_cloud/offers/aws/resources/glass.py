"""The commands that break the glass of a resource whose ARN nobody knows, by Cloud Control: the tagging API wants one.

They patch the tags alone, behind a `test` of the tags as they were read a moment before: nobody's tags are lost (T10).
"""

from __future__ import annotations

import json
from typing import Final

from fractal_cloud.model.catalog import GlassCommands
from fractal_cloud.model.commands import Command, output, run, value, word
from fractal_cloud.model.tags import MANAGED_BY, OURS, RECONCILE, RECONCILE_VALUE
from fractal_cloud.offers.aws.resources.patch import pointer
from fractal_cloud.offers.aws.resources.schema import AwsType, Tagging
from fractal_cloud.offers.aws.resources.tags import written

_HANDSHAKE: Final = {MANAGED_BY: OURS, RECONCILE: RECONCILE_VALUE}


def by_cloud_control(kind: AwsType) -> GlassCommands:
    """The commands for one type; none where a patch would have to bring what no read shows."""
    if kind.tags is None or kind.needs_what_is_never_read:
        return GlassCommands()
    without, handed_back = _without(kind.tags, [MANAGED_BY]), _without(kind.tags, list(_HANDSHAKE))
    added = json.dumps(written(kind.tags, _HANDSHAKE))
    return GlassCommands(
        break_glass=[_patched(kind.name, kind.tags, without)],
        readopt=[_patched(kind.name, kind.tags, f"{handed_back} + {added}")],
    )


def _without(tagging: Tagging, keys: list[str]) -> str:
    """How jq writes the tags without some of them."""
    empty = "{}" if tagging.shape == "map" else "[]"
    held = f"(.{tagging.property} // {empty})"
    if tagging.shape == "map":
        return f"({held} | del({', '.join(f'.[{json.dumps(key)}]' for key in keys)}))"
    others = " and ".join(f".{tagging.key} != {json.dumps(key)}" for key in keys)
    return f"({held} | map(select({others})))"


def _patched(type_name: str, tagging: Tagging, tags: str) -> Command:
    """The command that puts these tags in the place of those that are there, unless somebody was faster."""
    at, property_ = json.dumps(pointer("", tagging.property)), tagging.property
    test = f'(if .{property_} then [{{op: "test", path: {at}, value: .{property_}}}] else [] end)'
    program = f'{test} + [{{op: "add", path: {at}, value: ({tags})}}]'
    where = [word("--region=", value("region")), f"--type-name={type_name}", word("--identifier=", value("resourceId"))]
    read = ["aws", "cloudcontrol", "get-resource", *where, "--query=ResourceDescription.Properties", "--output=text"]
    patch = output(read, ["jq", "-c", program])
    return [run(["aws", "cloudcontrol", "update-resource", *where, word("--patch-document=", patch)])]
