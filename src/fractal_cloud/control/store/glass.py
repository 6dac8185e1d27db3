"""The vendor's own commands to break the glass and to re-adopt, with this resource's values filled in (G12)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from fractal_cloud.control.store.components import require
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.records import ComponentRecord, Json, records_of
from fractal_cloud.model.catalog import GlassCommands, TypeFacts
from fractal_cloud.model.host import host_of

_BLANK = re.compile(r"\{([A-Za-z][A-Za-z0-9]*)\}")


def commands(tx: Tx, live_system_id: str, component_id: str, catalog: Mapping[str, TypeFacts]) -> Json:
    """The commands for one component; what is not known yet stays in angle brackets, and is named."""
    record = require(tx, live_system_id, component_id)
    facts = catalog.get(record.type)
    templates = facts.glass if facts is not None else GlassCommands()
    values = _values(record, facts)
    missing: list[str] = []
    entry = _entry(tx, record, catalog, values, missing)
    return {
        "liveSystemId": live_system_id,
        "componentId": component_id,
        "provider": record.provider,
        "resourceId": record.resource_id,
        "status": record.status,
        "break": [*entry, *(_filled(command, values, missing) for command in templates.break_glass)],
        "readopt": [*entry, *(_filled(command, values, missing) for command in templates.readopt)],
        "caveat": templates.caveat,
        "tagsFrozen": facts is not None and facts.tags_frozen,
        "missing": sorted(set(missing)),
        "message": _message(record, templates, missing),
        "override": record.override,
    }


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
    tx: Tx, record: ComponentRecord, catalog: Mapping[str, TypeFacts], values: dict[str, Any], missing: list[str]
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
    values["context"] = _BLANK.sub(lambda blank: str(inside.get(blank[1], f"<{blank[1]}>")), facts.entry.context)
    return [_filled(command, inside, missing) for command in facts.entry.commands]


def _filled(command: str, values: Mapping[str, Any], missing: list[str]) -> str:
    def fill(blank: re.Match[str]) -> str:
        name = blank[1]
        if name in values:
            return shlex.quote(str(values[name]))
        missing.append(name)
        return f"<{name}>"

    return _BLANK.sub(fill, command)


def _message(record: ComponentRecord, templates: GlassCommands, missing: list[str]) -> str:
    if not templates.break_glass:
        return f"{record.type} has no commands of its own: it carries no tags, or its agent named none"
    if missing:
        names = ", ".join(sorted(set(missing)))
        return f"not known yet: {names}; the commands work once an agent has seen the resource"
    return ""
