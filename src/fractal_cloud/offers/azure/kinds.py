"""Kinds of resources and of values that the Azure types share; values are checked when they are declared.

Azure compares the names of groups and resources without regard to case. Here they are written in small letters, in
declarations and in what is seen, so that one resource never has two identities.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

Item = dict[str, Any]
"""One resource as Azure answers it."""

_STORAGE: Final = re.compile(r"[a-z0-9]{3,24}\Z")
_SERVER: Final = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]\Z")
_CLUSTER: Final = re.compile(r"[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?\Z")
_MACHINE: Final = re.compile(r"[a-z0-9]([a-z0-9_.-]{0,62}[a-z0-9_])?\Z")
_NETWORK: Final = re.compile(r"[a-z0-9]([a-z0-9_.-]{0,78}[a-z0-9_])?\Z")


# The one spelling of each word in an id, by the word in small letters. Every kind adds its own: a kind of which there
# is a type stands in that type's file, and the registry has loaded all of them before any id is read.
_SPELLED: Final = {word.lower(): word for word in ("resourceGroups", "subscriptions", "providers", "subnets")}


@dataclass(frozen=True, slots=True)
class ResourceKind:
    """One kind of resource: who provides it, what its collection is called, and the version of the API we speak."""

    namespace: str
    plural: str
    version: str

    def __post_init__(self) -> None:
        _SPELLED.update({word.lower(): word for word in (self.namespace, self.plural)})

    @property
    def type(self) -> str:
        """As Azure writes it: ``Microsoft.Network/virtualNetworks``."""
        return f"{self.namespace}/{self.plural}"


DISK: Final = ResourceKind("Microsoft.Compute", "disks", "2024-03-02")


def canonical_id(resource_id: str) -> str:
    """An id in the one spelling that is compared: Azure's own casing differs from answer to answer."""
    return "/".join(_SPELLED.get(part, part) for part in resource_id.lower().split("/"))


def name_in(resource_id: str) -> str:
    """The last name in an id."""
    return resource_id.rstrip("/").rpartition("/")[2].lower()


def group_in(resource_id: str) -> str:
    """The resource group in an id."""
    parts = resource_id.lower().split("/")
    return parts[parts.index("resourcegroups") + 1] if "resourcegroups" in parts else ""


def same_place(location: str | None) -> str:
    """A location in its short spelling: ``West Europe`` is ``westeurope``."""
    return (location or "").replace(" ", "").lower()


def _in_small_letters(name: str) -> str:
    if name != name.lower():
        raise ValueError(f"{name!r} has capitals, which Azure ignores: write {name.lower()!r}")
    return name


def _canonical_block(text: str) -> str:
    try:
        block = str(ip_network(text, strict=False))
    except ValueError as error:
        raise ValueError(f"{text!r} is no network: write it like '10.0.0.0/16'") from error
    if block != text:
        raise ValueError(f"{text!r} is written {block!r} by Azure: write it so")
    return text


def _named(pattern: re.Pattern[str], name: str, rule: str) -> str:
    if not pattern.match(name):
        raise ValueError(f"{name!r} is no name for {rule}")
    return name


def network_name(name: str) -> str:
    """A name Azure takes for a network or a security group; raises where it is none."""
    return _named(_NETWORK, name, "a network resource: take up to 80 of a-z, 0-9, _, . and -, a letter or digit first")


def machine_name(name: str) -> str:
    """A name Azure takes for a machine; raises where it is none."""
    return _named(_MACHINE, name, "a machine: take up to 64 of a-z, 0-9, _, . and -, a letter or digit first")


def storage_name(name: str) -> str:
    """A name Azure takes for a storage account; raises where it is none."""
    return _named(_STORAGE, name, "a storage account: take 3 to 24 of a-z and 0-9, which nobody in the world has yet")


def server_name(name: str) -> str:
    """A name Azure takes for a database server; raises where it is none."""
    return _named(_SERVER, name, "a database server: take 3 to 63 of a-z, 0-9 and -, with - neither first nor last")


def cluster_name(name: str) -> str:
    """A name Azure takes for a cluster; raises where it is none."""
    return _named(_CLUSTER, name, "a cluster: take up to 63 of a-z, 0-9, - and _, beginning and ending with the former")


ResourceGroup = Annotated[
    str,
    Field(pattern=r"^[a-zA-Z0-9_().-]{0,89}[a-zA-Z0-9_()-]$", examples=["shop"]),
    AfterValidator(_in_small_letters),
]
Location = Annotated[str, Field(pattern=r"^[a-z0-9]+$", examples=["westeurope"])]
Block = Annotated[str, AfterValidator(_canonical_block), Field(examples=["10.0.0.0/16"])]
