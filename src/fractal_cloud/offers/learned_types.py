"""What an account says of a type that its family lacks: bounded, and checked before anything is made of it (A4).

An agent checks what its cloud said, and the control plane checks what an agent said.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.offers.family import Family
from fractal_cloud.offers.type_validation import template_errors, type_errors

MOST_OF_A_TYPE: Final = 512 * 1024
"""How many characters a type may have at most, as JSON: the largest published schema has a third of it."""


def learned_errors(facts: TypeFacts, component_type: str, family: Family) -> Iterator[str]:
    """Everything by which an answer is not the type that was asked about, or could not be used as one."""
    asked = (component_type, family.provider, family.name)
    if (facts.type, facts.provider, facts.family) != asked or not family.covers(facts.type):
        said = f"{facts.type!r} of {facts.provider!r} in {facts.family!r}"
        yield f"it is about {said}, and {component_type!r} of {family.provider!r} in {family.name!r} was asked about"
        return
    if facts.links or facts.vendor_type not in ("", component_type):
        yield "it says what other types are, too"
    if len(json.dumps(facts.to_json())) > MOST_OF_A_TYPE:
        yield f"it is longer than {MOST_OF_A_TYPE} characters"
        return
    yield from map(str, [*type_errors([facts], {}), *template_errors([facts])])
