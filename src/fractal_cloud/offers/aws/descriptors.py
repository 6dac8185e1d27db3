"""The shape of a descriptor: a service of AWS, and a resource in it, each as one plain value.

What AWS itself defines stands in such a value, once: how lists are paged, how tags are written, which operations
create, change and delete a resource, which error codes mean what. Calls, error handling, the IAM policy and the glass
commands derive from it; the sandbox reads the same values from a file that `make docs` writes. The values themselves
stand in ``services`` and beside each offer; nothing here makes a call or decides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def method(operation: str) -> str:
    """An operation as the SDK spells its method: ``DescribeDBInstances`` is ``describe_db_instances``."""
    return _WORD.sub("_", operation).lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Paging:
    """How the lists of a service are cut: the parameter with the size, if any, the sizes allowed, and the default."""

    limit: str = "MaxResults"
    default: int | None = None
    smallest: int = 1
    largest: int = 1000
    bad_size: str = "InvalidParameterValue"
    bad_token: str = "InvalidNextToken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagging:
    """The two operations that change single tags, and the one that reads them.

    ``target``: the parameter that names the resource, a list of ids where ``is_by_id``, else one ARN. ``pair``: how a
    tag is spelled in a list, None where tags are a map. ``keys``: the parameter of a removal; empty where it takes
    pairs.
    """

    add: str = "TagResource"
    remove: str = "UntagResource"
    read: str = "ListTagsForResource"
    target: str = "ResourceArn"
    is_by_id: bool = False
    tags: str = "Tags"
    keys: str = "TagKeys"
    pair: tuple[str, str] | None = ("Key", "Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One service of AWS.

    ``name``: the SDK's client. ``cursor``: how the continuation of a list is spelled, in the request and in the answer.
    ``arn``: what every ARN begins with. ``not_found``, ``conflict``, ``invalid``, ``limit``: error codes whose meaning
    does not follow from their endings. ``iam``: the prefix of its actions, where it is not the name;
    ``actions``: operations whose action has another name; ``reads``: reading operations that the offers share.
    ``noun``: the singular that names its own statements in the policy; without one it shares the common statements.
    ``scope``: the resources of its own statements, where the same calls touch other resources too.
    ``needs_abac``: conditions on tags hold only where a resource has them switched on. ``roles_of``: the principals to
    which a role is passed that its resources are given. ``lists``: lists of what no offer is about, each with its items
    and their key. ``event_names``: operations that CloudTrail calls otherwise.
    """

    name: str
    cursor: tuple[str, str] = ("NextToken", "NextToken")
    paging: Paging = Paging()
    tagging: Tagging | None = None
    arn: str = "arn:{partition}:{service}:{region}:{account}:"
    not_found: tuple[str, ...] = ()
    conflict: tuple[str, ...] = ()
    invalid: tuple[str, ...] = ()
    limit: tuple[str, ...] = ()
    iam: str = ""
    actions: Mapping[str, str] = field(default_factory=dict)
    reads: tuple[str, ...] = ()
    noun: str | None = None
    scope: tuple[str, ...] = ()
    needs_abac: bool = False
    roles_of: tuple[str, ...] = ()
    lists: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    event_names: Mapping[str, str] = field(default_factory=dict)

    def action(self, operation: str) -> str:
        """The IAM action that allows an operation."""
        return f"{self.iam or self.name}:{self.actions.get(operation, operation)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """An operation that shows resources: where its answer holds them, and what says which each one is.

    ``id``: the key of an item's id or ARN; empty where the item itself is that. ``tags``: whether it shows them;
    ``asked`` is only where the parameter ``include`` says so. ``is_by_name``: it shows what it is asked for by id, and
    has no pages. ``page_key``: what identifies an item of a page where that is not its id. ``page_size``: how many it
    shows unasked, where that differs from the service's other lists.
    """

    operation: str
    path: str
    id: str = ""
    tags: Literal["always", "never", "asked"] = "always"
    is_by_name: bool = False
    page_key: str = ""
    page_size: int | None = None

    @property
    def key(self) -> str:
        """The member of the answer that holds the list."""
        return self.path.partition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One kind of resource, as AWS's own operations show it.

    ``named_by``: the parameters that hold its id or its ARN, one or a list. ``arn``: what stands behind the account.
    ``creates``: the operations that make one, with the path of its id in their answers; empty where the request names
    it. ``modifies``, ``deletes``: what the offer calls to change and to delete it; ``also_modifies``: what only people
    call. ``held_by_tags``: of what the offer calls, what takes or shows so much that it is allowed only where
    conditions on tags hold, or an operator names the resource. ``replaces_tags``: operations that write all tags at
    once. ``shown_by``: further writes whose answers show it.
    ``listings``: the last one is the one that shows everything. ``reads``: reading operations beside these. ``needs``:
    actions that AWS asks for beside those called. ``touches``: what else a call has to do with, by operation.
    ``not_found``: code, status and text where there is none. ``name_key``: the key of its name in an item; empty where
    its name is the tag ``Name``, of which there may be several equal ones. ``phases``: what an item shows while AWS
    works on it; None is a member that is absent. ``is_lower_case``: its id is compared in small letters.
    ``set_by``: of parameters that requests do not spell as they are declared, the operations that set nothing else, or
    the member of a request that holds it, as CloudTrail spells it (``history``).
    """

    service: Service
    kind: str
    named_by: tuple[str, ...]
    arn: str = "{id}"
    id_prefix: str = ""
    creates: Mapping[str, str]
    modifies: tuple[str, ...] = ()
    deletes: tuple[str, ...] = ()
    also_modifies: tuple[str, ...] = ()
    held_by_tags: tuple[str, ...] = ()
    replaces_tags: tuple[str, ...] = ()
    shown_by: Mapping[str, str] = field(default_factory=dict)
    listings: tuple[Listing, ...]
    reads: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    touches: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    not_found: tuple[str, int, str]
    name_key: str = ""
    phases: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    is_lower_case: bool = False
    set_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def listing(self) -> Listing:
        """The operation by which it is observed."""
        return self.listings[-1]
