"""Links: what two components that are wired to each other publish for each other, and what is remembered of it.

A link has two halves that meet only in published output fields (L3, L4). The inbound half runs where the target is
owned; the outbound half where the source is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from fractal_cloud.model.declaration import Scalar, Wire
from fractal_cloud.model.errors import LinkSettingsError
from fractal_cloud.model.sealing import fingerprint
from fractal_cloud.model.status import Status

INBOUND_PREFIX: Final = "linkedCredentials"
ANY_TYPE: Final = "*"
_LINK_TYPE: Final = re.compile(r"[a-z][A-Za-z0-9]*")
_KEY: Final = re.compile(r"[a-z][A-Za-z0-9]*")

Half = Literal["inbound", "outbound"]
IfMissing = Literal["retry", "fail"]
"""What it means that the target has published nothing for a source: to wait for it, or that the source is Failed."""


def is_link_type(text: str) -> bool:
    """Whether a text may name a link type (L3)."""
    return _LINK_TYPE.fullmatch(text) is not None and text != INBOUND_PREFIX


def is_link_key(text: str) -> bool:
    """Whether a text may be the last part of a published key: one word, so the parts before it cannot be forged."""
    return _KEY.fullmatch(text) is not None


class LinkSettings(BaseModel):
    """The settings contract of a link type (L7): required keys, and optional ones with their defaults."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, hide_input_in_errors=True
    )

    def declared(self) -> dict[str, Scalar]:
        """The settings as they stand in a declaration: only what was given."""
        given = self.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return {name: value for name, value in given.items() if value is not None}


class LinkSettingsValidator:
    """The plain form of a settings contract: nothing but the keys that must be there."""

    @staticmethod
    def validate(
        settings: Mapping[str, Any], required_keys: Collection[str], source_id: str, target_id: str
    ) -> Mapping[str, Any]:
        """Give the settings back, or raise ``LinkSettingsError`` naming source, target and every missing key (L7)."""
        missing = [key for key in required_keys if settings.get(key) in (None, "")]
        if missing:
            keys = ", ".join(missing)
            raise LinkSettingsError(
                f"the link from {source_id!r} to {target_id!r} lacks {keys}: add it to the link's settings"
            )
        return settings


class LinkContract(Wire):
    """One half of a link type as plain data, so that it can travel to validation, ``GET /offers`` and the docs."""

    half: Half
    source: str
    target: str
    link_type: str
    settings_schema: dict[str, Any] = Field(default_factory=dict)
    required: list[str] = Field(default_factory=list)
    if_missing: IfMissing = "retry"
    description: str = ""


class LinkState(Wire, frozen=True):
    """What is remembered of one half of one link.

    ``digest`` stands for all it was made from; empty: not known to be done. ``fields`` are the keys it publishes,
    without their prefix. ``waits``: why nothing can be done yet, for people. ``failed``: it never can be as it is
    declared. ``begun``: the half ran, or was about to, so there may be something to take back. ``own``: the id the
    component had then. ``settings``: those it was last provided with; ``tried``: others under which it was tried since,
    and nobody knows how far that got. ``sealed_to``: all keys to which secrets that are valid were sealed, by
    their fingerprints; None: nobody noted it (A5). ``seen_keys``: those that it was last tried with, or that can open
    what is published, where something hangs on them. ``revoked``: taken back for a key that was withdrawn, and not
    provided anew yet.
    """

    link_type: str
    other_type: str
    other_provider: str
    settings: dict[str, Scalar] = Field(default_factory=dict)
    digest: str = ""
    fields: dict[str, Scalar] = Field(default_factory=dict)
    waits: str = ""
    failed: bool = False
    begun: bool = False
    own: str = ""
    tried: list[dict[str, Scalar]] = Field(default_factory=list)
    sealed_to: list[str] | None = Field(default_factory=list)
    seen_keys: list[str] | None = None
    revoked: bool = False

    @model_validator(mode="before")
    @classmethod
    def _of_one_key(cls, given: Any) -> Any:
        """Read what was stored when a value was sealed to one key alone, which was kept whole while it mattered."""
        if not isinstance(given, dict):
            return given
        sealed_to = given.get("sealedTo")
        if not isinstance(sealed_to, str):
            return given
        keys = [fingerprint(sealed_to)] if sealed_to else []
        return {**given, "sealedTo": keys, "seenKeys": keys}


class LinkStates(Wire, frozen=True):
    """What is remembered of all links of a component: inbound by source id, outbound by target id."""

    inbound: dict[str, LinkState] = Field(default_factory=dict)
    outbound: dict[str, LinkState] = Field(default_factory=dict)

    def waiting(self) -> list[str]:
        """The links that still wait, and why (C8)."""
        inbound = [f"from {other!r}: {state.waits}" for other, state in self.inbound.items() if state.waits]
        return inbound + [f"to {other!r}: {state.waits}" for other, state in self.outbound.items() if state.waits]


class LinkWork(Wire):
    """One link as the agent of one side needs it.

    ``other``: how the other side is called in keys; ``ls-team-a/producer`` where it belongs to another LiveSystem.
    ``outputs``: the other side's own output fields; ``published``: what its half of this link published, by key.
    ``keys``: the public keys of the realm in which the other side lives, where values must travel sealed (L9, A5);
    ``withdrawn``: the fingerprints of those that were its keys and are withdrawn.
    ``refused``: why this link must not be served, or not yet (L12). ``failed``: why the target's half cannot be carried
    out as the source declares it (L7).
    """

    other: str
    type: str
    provider: str
    settings: dict[str, Scalar] = Field(default_factory=dict)
    status: Status = Status.INSTANTIATING
    outputs: dict[str, Any] = Field(default_factory=dict)
    published: dict[str, Scalar] = Field(default_factory=dict)
    keys: list[str] = Field(default_factory=list)
    withdrawn: list[str] = Field(default_factory=list)
    refused: str = ""
    failed: str = ""


def inbound_key(source_id: str, key: str) -> str:
    """Under which output field the target publishes something for a source (L3)."""
    return f"{INBOUND_PREFIX}.{source_id}.{key}"


def outbound_key(link_type: str, target_id: str, key: str) -> str:
    """Under which output field the source publishes something of a link to a target (L3)."""
    return f"{link_type}.{target_id}.{key}"


def published_fields(states: LinkStates) -> dict[str, Scalar]:
    """All output fields that follow from links."""
    fields = {inbound_key(other, k): v for other, state in states.inbound.items() for k, v in state.fields.items()}
    for other, state in states.outbound.items():
        fields |= {outbound_key(state.link_type, other, k): v for k, v in state.fields.items()}
    return fields


def own_outputs(output_fields: Mapping[str, Any]) -> dict[str, Any]:
    """A component's output fields without those of its links: names of parameters and outputs have no dot."""
    return {name: value for name, value in output_fields.items() if "." not in name and name != "drift"}


NO_LINKS: Final = LinkStates()
