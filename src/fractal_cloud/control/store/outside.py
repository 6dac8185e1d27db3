"""What an agent is given of components in scopes that are not its own: only the fields that its own ones refer to (A1).

A reference says which field it means: by itself (``$output``, ``${a.B}``), or by its parameter, whose type says so.
Nothing of links belongs here: what the two sides of a link publish for each other is given with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import chunks
from fractal_cloud.control.store.records import Json
from fractal_cloud.control.store.schema import types
from fractal_cloud.model.link import own_outputs
from fractal_cloud.model.reference import output_references
from fractal_cloud.model.wording import FACTS
from fractal_cloud.rules.identify import referenced


@dataclass(frozen=True, slots=True)
class Source:
    """A component that refers to others, as it is declared."""

    live_system_id: str
    type: str
    parameters: Mapping[str, Any]


class Needs:
    """Which output fields some components refer to, by the component whose they are."""

    def __init__(self, tx: Tx, sources: Collection[Source]) -> None:
        self._fields: dict[tuple[str, str], set[str]] = defaultdict(set)
        by_type = _outputs_of_parameters(tx, {source.type for source in sources})
        for source in sources:
            for name, field in _named(source.parameters, by_type.get(source.type, {})):
                self._fields[source.live_system_id, name].add(field)

    def of(self, live_system_id: str, component_id: str, output_fields: Mapping[str, Any]) -> Json:
        """The fields of a component that are referred to; a field within one is given with the whole of it."""
        wanted = self._fields.get((live_system_id, component_id), set())
        own = own_outputs(output_fields)
        return {name: value for name, value in own.items() if any(_is_in(field, name) for field in wanted)}


def _is_in(field: str, name: str) -> bool:
    return field == name or field.startswith(f"{name}.")


def _named(parameters: Mapping[str, Any], outputs: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    for _, reference in output_references(parameters):
        yield reference.component, reference.field
    for parameter, output in outputs.items():
        for component_id in referenced(parameters.get(parameter)):
            yield component_id, output


def _outputs_of_parameters(tx: Tx, names: Collection[str]) -> dict[str, dict[str, str]]:
    """By type the parameters that name components, each with the output that stands for such a one."""
    found: dict[str, dict[str, str]] = {}
    for some in chunks(sorted(names)):
        for row in tx.connection.execute(select(types.c.type, types.c.facts).where(types.c.type.in_(some))):
            properties = row.facts.get("parameterSchema", {}).get("properties", {})
            references = {name: (one.get(FACTS) or {}).get("reference") for name, one in properties.items()}
            found[row.type] = {name: one["output"] for name, one in references.items() if one}
    return found
