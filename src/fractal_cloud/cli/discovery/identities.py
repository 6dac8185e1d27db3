"""Which of the resources that were read a value stands for: by id or ARN, and by what a part says of its parent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fractal_cloud.cli.discovery.reading import Seen
from fractal_cloud.offers.offer import AnyOffer

Named = tuple[Seen, str]
"""A resource, and the output that has the value."""


def short_type(component_type: str) -> str:
    """The last word of a type of ours; a vendor's own name whole."""
    return component_type if ":" in component_type or "/" in component_type else component_type.rpartition(".")[2]


def noun(offer: AnyOffer) -> str:
    """What a type is called without its provider, such as ``Vpc`` and ``Queue``."""
    word = offer.type.replace("::", ".").replace("/", ".").rpartition(".")[2]
    return word[len(offer.provider) :] if word.casefold().startswith(offer.provider) else word


def each_once(seen: Sequence[Seen]) -> list[Seen]:
    """The resources without those that were read by two names of one type: a class of ours is preferred."""
    ours = [one for one in seen if one.offer.vendor_type not in ("", one.offer.type)]
    ids = {(one.offer.vendor_type, one.sighting.resource_id) for one in ours}
    names = {(one.offer.vendor_type, one.place, one.sighting.name) for one in ours if one.sighting.name}
    return [
        one
        for one in seen
        if (one.offer.type, one.sighting.resource_id) not in ids
        and (one.offer.type, one.place, one.sighting.name) not in names
    ]


class Identities:
    """The resources by what others say of them."""

    def __init__(self, seen: Sequence[Seen]) -> None:
        self._seen = seen
        self._by_value: dict[str, list[Named]] = {}
        for one in seen:
            for output, value in one.sighting.outputs.items():
                if isinstance(value, str) and _identifies(one, output, value):
                    self._by_value.setdefault(value, []).append((one, output))

    def of(self, text: str) -> Named | None:
        """The one resource whose id or ARN a text is; None where it is of none, or of several."""
        found = self._by_value.get(text, [])
        return found[0] if len({id(one) for one, _ in found}) == 1 else None

    def parent(self, child: Seen, target: str, output: str, value: Any) -> Named | None:
        """The resource of a type, or of ours for the same, that has this value: under this name, else under another."""
        for one in self._seen:
            if target not in (one.offer.type, one.offer.vendor_type) or one.place != child.place:
                continue
            known = {**one.sighting.actual, **one.sighting.outputs}
            if str(known.get(output)) == str(value):
                return one, output
            if (
                other := next((name for name, held in one.sighting.outputs.items() if held == value), None)
            ) is not None:
                return one, other
        return None


def _identifies(seen: Seen, output: str, value: str) -> bool:
    """Whether an output is the id that the cloud chose, or the resource's own ARN; a name may be many things'."""
    if value == seen.sighting.resource_id:
        return value != seen.sighting.name
    return value.startswith("arn:") and output.casefold() in ("arn", f"{noun(seen.offer)}arn".casefold())
