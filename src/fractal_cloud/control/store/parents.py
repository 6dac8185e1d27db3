"""What a part is part of, as its declaration says (S25)."""

from __future__ import annotations

from fractal_cloud.control.store.records import ComponentRecord
from fractal_cloud.model.catalog import TypeFacts, as_word
from fractal_cloud.model.reference import output_reference


def parent_of(record: ComponentRecord, facts: TypeFacts | None) -> str:
    """The component that a component is a part of; empty where it is no part."""
    if facts is None or not facts.is_part or facts.parent is None:
        return ""
    value = record.declaration.get("parameters", {}).get(facts.parent)
    reference = output_reference(value)
    return as_word(value) if reference is None else reference.component
