"""What a person does to every type of Google Cloud, and the cases of the contract: plain requests, no line of the
offers.

The contract's tags of others may be any text. Labels may not, so keys and values are written in hexadecimal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.error import HTTPError

from fractal_cloud.model.component import Component
from fractal_cloud.model.tags import MANAGED_BY, OWNER, RECONCILE
from fractal_cloud.offers.gcp.bucket import GcpGcsBucket
from fractal_cloud.offers.gcp.cloud_run import GcpCloudRun
from fractal_cloud.offers.gcp.gke import GcpGke
from fractal_cloud.offers.gcp.postgres import GcpPostgresDbms
from fractal_cloud.offers.gcp.vm import GcpVm
from fractal_cloud.testing import MINE, Found, Hazard, Obstacle, OfferExample
from tests.offers.gcp.examples import EXAMPLES, Example
from tests.offers.gcp.person import GcpPerson, Raw

PROTOCOL = {MANAGED_BY, OWNER, RECONCILE, *MINE}
"""The keys that are labels as they are."""
OTHERS = "o-"


def label(text: str) -> str:
    return f"{OTHERS}{text.encode().hex()}"


def tag_of(text: str) -> str:
    return bytes.fromhex(text.removeprefix(OTHERS)).decode()


def _labels(tags: Mapping[str, str]) -> dict[str, str]:
    return {
        (key if key in PROTOCOL else label(key)): (value if key in PROTOCOL else label(value))
        for key, value in tags.items()
    }


# --- how each type keeps its labels

Read = Callable[[Raw], Mapping[str, str]]
Write = Callable[[GcpPerson, str, Raw, dict[str, str]], None]


def _label_machine(person: GcpPerson, here: str, raw: Raw, labels: dict[str, str]) -> None:
    person.call("POST", f"{here}/setLabels", {"labels": labels, "labelFingerprint": raw["labelFingerprint"]})


def _label_service(person: GcpPerson, here: str, raw: Raw, labels: dict[str, str]) -> None:
    person.call("PATCH", here, {"labels": labels, "etag": raw["etag"]}, updateMask="labels")


def _label_bucket(person: GcpPerson, here: str, raw: Raw, labels: dict[str, str]) -> None:
    gone = dict.fromkeys(set(raw.get("labels") or {}) - set(labels))
    person.call("PATCH", here, {"labels": {**labels, **gone}})


def _label_cluster(person: GcpPerson, here: str, raw: Raw, labels: dict[str, str]) -> None:
    body = {"resourceLabels": labels, "labelFingerprint": raw["labelFingerprint"]}
    person.call("POST", f"{here}:setResourceLabels", body)


def _label_database(person: GcpPerson, here: str, raw: Raw, labels: dict[str, str]) -> None:
    gone = dict.fromkeys(set(raw["settings"].get("userLabels") or {}) - set(labels))
    person.call("PATCH", here, {"settings": {"userLabels": {**labels, **gone}}})


@dataclass(frozen=True)
class Kept:
    """Where a type is, and how its labels are read and written as a whole."""

    path: Callable[[GcpPerson, str], str]
    read: Read
    write: Write
    number: str


KEPT: dict[type[Component], Kept] = {
    GcpVm: Kept(GcpPerson.instance, lambda raw: raw.get("labels") or {}, _label_machine, "id"),
    GcpCloudRun: Kept(GcpPerson.service, lambda raw: raw.get("labels") or {}, _label_service, "uid"),
    GcpGcsBucket: Kept(GcpPerson.bucket, lambda raw: raw.get("labels") or {}, _label_bucket, "timeCreated"),
    GcpGke: Kept(GcpPerson.cluster, lambda raw: raw.get("resourceLabels") or {}, _label_cluster, "id"),
    GcpPostgresDbms: Kept(
        GcpPerson.database, lambda raw: raw["settings"].get("userLabels") or {}, _label_database, "createTime"
    ),
}


class GcpActions:
    """What a person does to resources of one type."""

    def __init__(self, person: GcpPerson, kind: type[Component], example: Example) -> None:
        self._person = person
        self._kept = KEPT[kind]
        self._example = example

    def find(self, name: str) -> list[Found]:
        raw = self._person.get(self._kept.path(self._person, name))
        if raw is None or _is_dying(raw):
            return []
        labels = self._kept.read(raw)
        tags = {key: value for key, value in labels.items() if key in PROTOCOL}
        tags |= {tag_of(key): tag_of(value) for key, value in labels.items() if key.startswith(OTHERS)}
        return [Found(f"{name}/{raw[self._kept.number]}", tags, name)]

    def edit(self, resource_id: str, parameter: str, value: Any) -> None:
        self._example.edit(self._person, resource_id.partition("/")[0], parameter, value)

    def tag(self, found: Found, tags: Mapping[str, str]) -> None:
        here, raw = self._raw(found)
        self._kept.write(self._person, here, raw, {**self._kept.read(raw), **_labels(tags)})

    def untag(self, found: Found, *keys: str) -> None:
        here, raw = self._raw(found)
        gone = {key if key in PROTOCOL else label(key) for key in keys}
        kept = {key: value for key, value in self._kept.read(raw).items() if key not in gone}
        self._kept.write(self._person, here, raw, kept)

    def delete(self, found: Found) -> None:
        with suppress(HTTPError):
            self._person.call("DELETE", self._kept.path(self._person, found.handle))

    def _raw(self, found: Found) -> tuple[str, Raw]:
        here = self._kept.path(self._person, found.handle)
        raw = self._person.get(here)
        assert raw is not None, f"{here} is not there"
        return here, raw


def _is_dying(raw: Raw) -> bool:
    word = raw.get("status") or raw.get("state") or ""
    return bool(raw.get("deleteTime")) or word in ("STOPPING", "PENDING_DELETE")


# --- what blocks a deletion

Arrange = Callable[[GcpPerson, Found], Obstacle]


@dataclass(frozen=True)
class Case:
    """What the suite must know of one type beside its example; ``effects``: how many its life has at least."""

    is_slow: bool = False
    only_up: frozenset[str] = frozenset()
    hazards: dict[str, tuple[str, Arrange]] = field(default_factory=dict)
    effects: int = 21


def _protected_machine(person: GcpPerson, found: Found) -> Obstacle:
    here = f"{person.instance(found.handle)}/setDeletionProtection"
    person.call("POST", here, deletionProtection="true")
    return Obstacle(("deletionProtection",), lambda: person.call("POST", here, deletionProtection="false"))


def _protected_database(person: GcpPerson, found: Found) -> Obstacle:
    def protect(*, on: bool) -> None:
        person.call("PATCH", person.database(found.handle), {"settings": {"deletionProtectionEnabled": on}})

    protect(on=True)
    return Obstacle(("deletionProtection",), lambda: protect(on=False))


def _full_bucket(person: GcpPerson, found: Found) -> Obstacle:
    upload = f"/upload/storage/v1/b/{found.handle}/o"
    person.call("POST", upload, b"a picture", uploadType="media", name="one.png")
    return Obstacle(
        ("not empty", "never emptied"), lambda: person.call("DELETE", f"{person.bucket(found.handle)}/o/one.png")
    )


CASES: dict[type[Component], Case] = {
    GcpVm: Case(is_slow=True, hazards={"deletion protection": ("Failed", _protected_machine)}, effects=33),
    GcpCloudRun: Case(is_slow=True),
    GcpGcsBucket: Case(hazards={"an object in it": ("Failed", _full_bucket)}),
    GcpGke: Case(is_slow=True, only_up=frozenset({"version"}), effects=28),
    GcpPostgresDbms: Case(
        is_slow=True,
        only_up=frozenset({"diskSizeGb"}),
        hazards={"deletion protection": ("Failed", _protected_database)},
    ),
}


def example_of(kind: type[Component], person: GcpPerson) -> OfferExample:
    """The example of one type, with the actions of a person on it."""
    example, case = EXAMPLES[kind], CASES[kind]

    def hazard(title: str, status: str, arrange: Arrange) -> Hazard:
        return Hazard(title, status, lambda found: arrange(person, found))

    return OfferExample(
        components=example.components,
        changes=example.changes,
        immutable_changes=example.immutable_changes,
        operator=GcpActions(person, kind, example),
        only_up=case.only_up,
        is_slow=case.is_slow,
        hazards=[hazard(title, status, arrange) for title, (status, arrange) in case.hazards.items()],
    )
