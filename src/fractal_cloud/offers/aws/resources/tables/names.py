"""Which property of a type is its name: what AWS calls ``Name``, or after the type itself or the end of its name."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

# Where the rule below would take a wrong property, or none: the schemas' descriptions of these properties.
NAMES: Final[Mapping[str, str]] = {
    "AWS::ApiGateway::DomainNameV2": "DomainName",
    "AWS::ApplicationInsights::Application": "ResourceGroupName",
    "AWS::ODB::CloudVmCluster": "",  # `ClusterName` is that of the grid software inside
    "AWS::RDS::DBProxyTargetGroup": "",  # `TargetGroupName` is always «default»
    "AWS::ServiceCatalog::CloudFormationProvisionedProduct": "ProvisionedProductName",
    "AWS::Redshift::SnapshotSchedule": "ScheduleIdentifier",
    "AWS::RDS::ClusterSnapshot": "DBClusterSnapshotIdentifier",
}
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[a-z0-9]+")


def name_property(name: str, properties: Collection[str]) -> str:
    """The property among these that names a resource of this type; empty where none does.

    ``QueueName``, ``Name``, ``DBInstanceIdentifier`` and ``…Id`` in this order; then the name of the type's own last
    words (``RuleName`` of an ``AutomationRule``), the longest of them; then one that ends with the type's own word
    (``AgentRuntimeName`` of a ``Runtime``).
    """
    if name in NAMES:
        return NAMES[name] if NAMES[name] in properties else ""
    noun = name.rpartition("::")[2]
    by_form = {one.casefold(): one for one in properties}
    words = _WORDS.findall(noun)
    tails = ["".join(words[start:]) for start in range(1, len(words))]
    wanted = [f"{noun}Name", "Name", f"{noun}Identifier", f"{noun}Id", *(f"{tail}Name" for tail in tails)]
    found = next((by_form[one.casefold()] for one in wanted if one.casefold() in by_form), "")
    if found:
        return found
    longer = sorted(one for one in properties if one.casefold().endswith(f"{noun}name".casefold()))
    return longer[0] if len(longer) == 1 else ""
