"""The vendor's own commands to break the glass and to re-adopt, with this resource's values filled in (G12)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fractal_cloud.control.store.components import require
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.parents import parent_of
from fractal_cloud.control.store.records import ComponentRecord, Json, records_of
from fractal_cloud.model.catalog import GlassCommands, TypeFacts
from fractal_cloud.model.commands import Command, Filling, NotPrintable, filled_text, shell_text
from fractal_cloud.model.host import host_of
from fractal_cloud.model.visible_text import visible

FROM_AN_AGENT: Final = (
    "These commands were registered by an agent, and not by a package installed at the control plane: read them before "
    "you run them"
)


@dataclass(slots=True)
class _Printer:
    """Prints commands; ``missing``: values that are not known yet, ``refused``: why some are not printed (A6)."""

    missing: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def printed(self, commands: Sequence[Command], values: Mapping[str, Any]) -> list[str]:
        """All of them, or none: a part of what belongs together would do something else."""
        filling = Filling(values, self.missing)
        try:
            return [shell_text(command, filling) for command in commands]
        except NotPrintable as error:
            self.refused.append(str(error))
            return []


def commands(
    tx: Tx, live_system_id: str, component_id: str, catalog: Mapping[str, TypeFacts], installed: Collection[str]
) -> Json:
    """The commands for one component; what is not known yet stays in angle brackets, and is named.

    Those for a part are those for what it is a part of, whose tags count for it (S25).
    ``installed``: the types of packages that are installed here; the commands of others are an agent's words.
    """
    record = require(tx, live_system_id, component_id)
    facts = catalog.get(record.type)
    parent = parent_of(record, facts)
    if parent and parent in {one.component_id for one in records_of(tx, live_system_id)}:
        return _of_part(record, parent, commands(tx, live_system_id, parent, catalog, installed))
    templates = facts.glass if facts is not None else GlassCommands()
    values = _values(record, facts)
    printer = _Printer()
    entry = _entry(tx, record, catalog, values, printer)
    found = {
        "break": [*entry, *printer.printed(templates.break_glass, values)],
        "readopt": [*entry, *printer.printed(templates.readopt, values)],
    }
    if printer.refused:
        found = {"break": [], "readopt": []}
    return {
        "liveSystemId": live_system_id,
        "componentId": component_id,
        "provider": record.provider,
        "resourceId": record.resource_id,
        "status": record.status,
        **found,
        "caveat": _caveat(record, templates, installed),
        "tagsFrozen": facts is not None and facts.tags_frozen,
        "missing": sorted(set(printer.missing)),
        "message": _message(record, templates, printer),
        "override": record.override,
    }


def _of_part(record: ComponentRecord, parent: str, found: Json) -> Json:
    said = f"it is a part of {parent!r}, whose tags count for it: these are the commands for {parent!r}"
    own = {"componentId": record.component_id, "resourceId": record.resource_id, "status": record.status}
    return {**found, **own, "message": f"{said}; {found['message']}" if found["message"] else said}


def _values(record: ComponentRecord, facts: TypeFacts | None) -> dict[str, Any]:
    """What may stand in a template: output fields before parameters before the words of the scope."""
    words = dict(zip(facts.place, record.place.split("/"), strict=False)) if facts is not None else {}
    if facts is not None and facts.realm is not None:
        words[facts.realm] = record.realm_name
    values = {**words, **record.declaration.get("parameters", {}), **record.output_fields}
    values.update({"name": record.name, "realm": record.realm})
    values.update({"liveSystemId": record.live_system_id, "componentId": record.component_id})
    if record.resource_id is not None:
        values["resourceId"] = record.resource_id
    return {name: value for name, value in values.items() if isinstance(value, str | int) and value != ""}


def _entry(
    tx: Tx, record: ComponentRecord, catalog: Mapping[str, TypeFacts], values: dict[str, Any], printer: _Printer
) -> list[str]:
    """How a person first gets into the declared cluster (or the like) it is in; ``context``: what it is called then."""
    host = host_of(record.realm_name)
    if host is None or not record.output_fields:
        return []
    found = [one for one in records_of(tx, host.live_system_id) if one.component_id == host.component_id]
    facts = catalog.get(host.type)
    if not found or facts is None or not facts.entry.commands:
        return []
    inside = _values(found[0], facts)
    try:
        values["context"] = filled_text(facts.entry.context, Filling(inside))
    except NotPrintable as error:
        printer.refused.append(str(error))
    return printer.printed(facts.entry.commands, inside)


def _caveat(record: ComponentRecord, templates: GlassCommands, installed: Collection[str]) -> str:
    said = visible(templates.caveat)
    host = host_of(record.realm_name)
    if record.type in installed and (host is None or host.type in installed):
        return said
    return f"{FROM_AN_AGENT}. {said}" if said else FROM_AN_AGENT


def _message(record: ComponentRecord, templates: GlassCommands, printer: _Printer) -> str:
    if not templates.break_glass:
        return f"{record.type} has no commands of its own: it carries no tags, or its agent named none"
    if printer.refused:
        own = f"fractal glass {record.live_system_id} {record.component_id}"
        return f"not printed: {printer.refused[0]}; use `{own} --break` and `{own} --readopt` instead"
    if printer.missing:
        names = ", ".join(sorted(set(printer.missing)))
        return f"not known yet: {names}; the commands work once an agent has seen the resource"
    return ""
