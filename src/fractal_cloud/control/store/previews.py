"""Gathers what a preview of a deletion needs to know (O7, O14); what follows from it, ``rules.preview`` decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from sqlalchemy import and_, select

from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import chunks
from fractal_cloud.control.store.livesystems import require
from fractal_cloud.control.store.parents import parent_of
from fractal_cloud.control.store.records import ComponentRecord, Json, records_of
from fractal_cloud.control.store.resources import declarers
from fractal_cloud.control.store.schema import components, refers
from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.status import Stance
from fractal_cloud.rules.preview import Deletable, Ended, Ending, missed, preview, warning

__all__ = ["endings", "missed", "previewed", "warning", "why_read_only"]


def previewed(tx: Tx, live_system_id: str, catalog: Mapping[str, TypeFacts]) -> tuple[list[str], Json]:
    """The warnings of a deletion, and what becomes of every component."""
    require(tx, live_system_id)
    ended = endings(tx, live_system_id, records_of(tx, live_system_id), catalog)
    said = warning(ended)
    return [said] if said else [], _described(ended)


def endings(
    tx: Tx, live_system_id: str, rows: Sequence[ComponentRecord], catalog: Mapping[str, TypeFacts]
) -> list[Ended]:
    """What becomes of components of a LiveSystem when they are deleted."""
    importers = _importers(tx, live_system_id, rows)
    links = _links(tx, live_system_id, rows)
    return preview(live_system_id, [_component(row, catalog, importers, links) for row in rows])


def why_read_only(row: ComponentRecord, catalog: Mapping[str, TypeFacts]) -> str:
    """Why a component is never created, changed or deleted; empty where it may be."""
    facts = catalog.get(row.type)
    if row.declaration.get("importOnly"):
        return "importOnly"
    if row.declaration.get("createOnce"):
        return ""
    return "its type cannot carry tags" if facts is not None and not (facts.taggable or facts.is_part) else ""


def _component(
    row: ComponentRecord,
    catalog: Mapping[str, TypeFacts],
    importers: Mapping[str, tuple[str, ...]],
    links: Mapping[str, tuple[str, ...]],
) -> Deletable:
    facts = catalog.get(row.type)
    key = row.identity_key or ""
    return Deletable(
        component_id=row.component_id,
        type=row.type,
        stance=Stance(row.stance),
        owner=row.owner,
        resource_id=row.resource_id,
        is_absent=row.absent_since is not None,
        was_observed=row.observed_generation > 0 or row.established or row.absent_since is not None,
        untouchable=bool(why_read_only(row, catalog)),
        created_once=bool(row.declaration.get("createOnce")),
        part_of=parent_of(row, facts),
        holds_data=facts is not None and facts.holds_data,
        dependencies=tuple(row.declaration.get("dependencies", ())),
        importers=importers.get(key, ()),
        links=links.get(key, ()),
    )


def _importers(tx: Tx, live_system_id: str, rows: Sequence[ComponentRecord]) -> dict[str, tuple[str, ...]]:
    found = declarers(tx, [row.identity_key for row in rows if row.identity_key is not None])
    return {
        key: tuple(
            sorted({d.live_system_id for d in declared if d.live_system_id != live_system_id and not d.deleting})
        )
        for key, declared in found.items()
    }


def _links(tx: Tx, live_system_id: str, rows: Sequence[ComponentRecord]) -> dict[str, tuple[str, ...]]:
    """Components of other LiveSystems whose links lead to something declared here too."""
    c = components.c
    found: dict[str, list[str]] = {}
    for some in chunks([row.identity_key for row in rows if row.identity_key is not None]):
        query = (
            select(c.identity_key, c.live_system_id, refers.c.source)
            .join(
                refers,
                and_(
                    refers.c.live_system_id == c.live_system_id,
                    refers.c.target == c.component_id,
                    refers.c.kind == "link",
                ),
            )
            .where(c.identity_key.in_(some), c.live_system_id != live_system_id)
            .order_by(c.live_system_id, refers.c.source)
        )
        for row in tx.connection.execute(query):
            found.setdefault(row.identity_key, []).append(f"{row.live_system_id}/{row.source}")
    return {key: tuple(sources) for key, sources in found.items()}


def _described(endings: Sequence[Ended]) -> Json:
    counts = Counter(end.ending for end in endings)
    return {
        "components": [
            {
                "componentId": end.component.component_id,
                "type": end.component.type,
                "resourceId": end.component.resource_id,
                "ending": end.ending.value,
                "message": end.message,
                "holdsData": end.component.holds_data and end.ending is Ending.DELETED,
                "importers": list(end.component.importers) if end.ending is Ending.DELETED else [],
                "brokenLinks": list(end.component.links) if end.ending is Ending.DELETED else [],
            }
            for end in endings
        ],
        "summary": {ending.value: counts[ending] for ending in Ending},
    }
