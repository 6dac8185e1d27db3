"""How AcmeDB is read and changed for a database: single calls that return. Nothing here decides, and nothing waits."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar

from acmedb.cloud import Acme
from acmedb.component import AcmeDb
from fractal_cloud.model.catalog import GlassCommands
from fractal_cloud.model.commands import run, value, variable, word
from fractal_cloud.model.sighting import Condition, Sighting, UnreadItem
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.items import parse_each, text_at
from fractal_cloud.offers.offer import Offer, Query, Wanted

# What a person types. Commands of plain words are one text, `"acmectl untag {resourceId}"`; this one has more in it.
PATCH = [
    *("curl", "-s", "-X", "PATCH", "-H", word("Authorization: Bearer ", variable("ACMEDB_TOKEN"))),
    word(variable("ACMEDB_URL"), "/databases/", value("resourceId", "url")),
]
PARAMETERS = ("version", "size", "maxConnections", "deletionProtection")


class AcmeDbOffer(Offer[AcmeDb, Acme]):
    """How databases are read and changed."""

    component = AcmeDb
    title = "AcmeDB database"
    holds_data = True
    outputs: ClassVar[Mapping[str, str]] = {
        "databaseId": "id of the database",
        "host": "where it is reached",
        "port": "the port it listens on",
        "state": "creating or available",
    }
    glass = GlassCommands(
        break_glass=[[run([*PATCH, "-d", '{"labels": {"managed-by": null}}'])]],
        readopt=[[run([*PATCH, "-d", '{"labels": {"managed-by": "fractal-cloud", "fractal-cloud": "reconcile"}}'])]],
    )
    guard = "atomic: every change and the deletion carry the etag of the guard's read; whoever was faster wins, always"

    def sightings(self, cloud: Acme, query: Query) -> Iterator[Sighting | UnreadItem]:
        """All databases of the account, a hundred a call."""
        del query
        yield from parse_each(
            cloud.databases(), _sighting, lambda found: (text_at(found, "id"), text_at(found, "name"))
        )

    def read(self, cloud: Acme, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One database by its id."""
        del sweep
        found = cloud.database(resource_id)
        return None if found is None else _sighting(found)

    def create(self, cloud: Acme, wanted: Wanted[AcmeDb], tags: ProtocolTags) -> Sighting:
        """Create it, labels and parameters in one call; its name is unique, so a second try makes no second one."""
        declared = wanted.component
        body = {
            "name": declared.name,
            "version": declared.version,
            "size": declared.size,
            "maxConnections": declared.max_connections,
            "deletionProtection": declared.deletion_protection,
            "labels": tags.to_mapping(),
        }
        return _sighting(cloud.create(body))

    def update(self, cloud: Acme, sighting: Sighting, wanted: Wanted[AcmeDb], drift: Collection[str]) -> None:
        """Change all that differs in one call."""
        declared = wanted.component.parameters()
        cloud.change(sighting.resource_id, sighting.revision, {name: declared[name] for name in sorted(drift)})

    def delete(self, cloud: Acme, sighting: Sighting) -> None:
        """Delete it, leaving a last backup (O15); AcmeDB refuses where it is protected."""
        cloud.delete(sighting.resource_id, sighting.revision)

    def tag(self, cloud: Acme, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> None:
        """Merge labels: only those named are touched."""
        labels = {**add.to_mapping(), **dict.fromkeys(remove.to_mapping())}
        cloud.change(sighting.resource_id, sighting.revision, {"labels": labels})


def _sighting(found: Mapping[str, Any]) -> Sighting:
    labels = found["labels"]
    return Sighting(
        type=AcmeDb.type,
        name=found["name"],
        resource_id=found["id"],
        protocol=ProtocolTags.from_mapping(labels),
        tags=labels,
        actual={name: found[name] for name in PARAMETERS},
        outputs={
            "databaseId": found["id"],
            "host": found["host"],
            "port": found["port"],
            "state": found["state"],
        },
        condition=Condition.SETTLED if found["state"] == "available" else Condition.CREATING,
        revision=found["etag"],
    )
