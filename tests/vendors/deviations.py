"""The differences from the vendors' contracts that are known to be harmless, each with its reason.

The suite fails on a difference that is not here, and on one that is here and no longer seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from tests.vendors.contract import Problem


@dataclass(frozen=True)
class Deviation:
    """Problems that are known: of one cloud and one side, with patterns of ``fnmatch`` for the rest."""

    cloud: str
    side: str
    operation: str
    where: str
    what: str
    reason: str

    def covers(self, problem: Problem) -> bool:
        """Whether a problem is this one."""
        return (
            (self.cloud, self.side) == (problem.cloud, problem.side)
            and fnmatchcase(problem.operation, self.operation)
            and fnmatchcase(problem.where, self.where)
            and fnmatchcase(problem.what, self.what)
        )


DEVIATIONS = (
    Deviation(
        "aruba",
        "answer",
        "container-provider.* /{projectId}/providers/Aruba.Container/kaas*",
        "*properties.nodesPool",
        "unknown field",
        "the vendor's SDK reads pools under this name, its documents call them nodePools: the product reads both",
    ),
    Deviation(
        "aws",
        "answer",
        "ec2.*",
        "*.[].Platform",
        "'windows' is no value of it",
        "EC2 itself answers it in small letters, of machines and images, as moto does; the product does not read it",
    ),
    Deviation(
        "aws",
        "request",
        "s3control.*agResource",
        "ResourceArn",
        "breaks pattern*",
        "the pattern wants a region, which the ARN of a bucket has not; AWS documents the call with such an ARN",
    ),
    Deviation(
        "azure",
        "answer",
        "resource.subscriptions.*.SubscriptionsOperations.list",
        "nextLink",
        "missing",
        "the package says that it is always there; the service leaves it out where nothing follows",
    ),
    Deviation(
        "vsphere",
        "answer",
        "SessionManager.*",
        "returnval.userAgent",
        "missing",
        "the vendor's simulator does not keep it; the product does not read it",
    ),
    Deviation(
        "vsphere",
        "answer",
        "VirtualMachine.Fetch.runtime",
        "returnval.*",
        "missing",
        "the vendor's simulator has no recording and no fault tolerance; the product reads the power state alone",
    ),
    Deviation(
        "vsphere",
        "answer",
        "*.get",
        "value.*",
        "missing",
        "the vendor's simulator leaves out what is empty, and used_by; the product reads ids and names alone",
    ),
    Deviation(
        "vsphere",
        "answer",
        "*.create",
        "value.messages",
        "missing",
        "the vendor's simulator refuses without words; the product goes by the type of the error",
    ),
    Deviation(
        "vsphere",
        "answer",
        "tag-association.attach-multiple-tags-to-object",
        "value.error_messages",
        "missing",
        "the vendor's simulator leaves out what is empty; the product reads it where there is an error",
    ),
)
