"""Kinds of values that several Hetzner types share, checked when they are declared and so before anything is called."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network, ip_network
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from fractal_cloud.model.component import Component, parameter

_HOST: Final = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9-]{1,63})*\Z")
PROTECTION: Final = "Whether Hetzner refuses to delete it, also to us; Hetzner starts with false."


class Part(BaseModel):
    """One entry of a list parameter: a subnet, a route, a rule, a service. Compared in one spelling."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", hide_input_in_errors=True
    )

    def flat(self) -> dict[str, Any]:
        """The entry as it is compared: what says nothing is left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def flattened(parts: Iterable[Part] | None) -> list[dict[str, Any]] | None:
    """The entries of a list as they are compared."""
    return None if parts is None else [part.flat() for part in parts]


def sent(flat: Mapping[str, Any], names: Collection[str] = ()) -> dict[str, Any]:
    """A flat entry as a request has it: the vendor's names, only those asked for where any are."""
    return {snake(name): value for name, value in flat.items() if not names or name in names}


def snake(name: str) -> str:
    """A declared name in the vendor's spelling."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: f"_{found[1].lower()}", name)


def ids(items: Iterable[Any]) -> list[str]:
    """Hetzner's ids, which are numbers there and text in declarations."""
    return sorted((str(item) for item in items), key=int)


def host_name(name: str) -> str:
    """A name Hetzner takes for a server: a host name; raises where it is none."""
    if not _HOST.match(name):
        raise ValueError(f"{name!r} is no name for a server: take a host name of letters, digits, - and dots")
    return name


def _network(text: str) -> str:
    try:
        network = ip_network(text, strict=False)
    except ValueError as error:
        raise ValueError(f"{text!r} is no network: write it like '10.0.0.0/8' or '::/0'") from error
    if str(network) != text:
        raise ValueError(f"{text!r} is compared as Hetzner spells it: write {str(network)!r}")
    return text


def _private(text: str) -> str:
    if not isinstance(ip_network(_network(text)), IPv4Network):
        raise ValueError(f"{text!r} is not an IPv4 network: private networks have no other")
    return text


def _address(text: str) -> str:
    try:
        return str(IPv4Address(text))
    except ValueError as error:
        raise ValueError(f"{text!r} is no IPv4 address: write it like '10.0.1.1'") from error


AnyNetwork = Annotated[str, AfterValidator(_network)]
"""Any network, IPv4 or IPv6."""

Block = Annotated[str, AfterValidator(_private), Field(examples=["10.0.0.0/16"])]
"""A block of private addresses."""

Address = Annotated[str, AfterValidator(_address)]
"""One IPv4 address."""

Location = Annotated[str, Field(pattern=r"^[a-z]{2,5}\d*$", examples=["fsn1"])]
"""A place such as ``fsn1``, ``nbg1``, ``hel1``, ``ash``, ``hil``, ``sin``."""

Zone = Annotated[str, Field(pattern=r"^[a-z]{2}-[a-z]+$", examples=["eu-central"])]
"""A zone of several places."""

Port = Annotated[int, Field(ge=1, le=65535)]
"""A port."""


class HetznerComponent(Component):
    """What all components of Hetzner Cloud declare."""

    provider = "hetzner"

    project: str | None = parameter(
        default=None,
        immutable=True,
        description="The project it is in, as the agent's file of realms calls it; the agent's own if not given.",
    )
