"""Readers are total: whatever the vendor's schema allows is a sighting, or unreadable; never another error.

A resource of each type stands in its sandbox. What the cloud answers about it is replaced by variants of the vendor's
schema on its way to the offer, as lists and as direct reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from botocore.endpoint import Endpoint
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from fractal_cloud.agent.isolation import isolated
from fractal_cloud.agent.watchdog import Watchdog
from fractal_cloud.model.errors import CloudError
from fractal_cloud.model.sighting import Sighting, UnreadItem
from fractal_cloud.offers.offer import AnyOffer, Query
from fractal_cloud.offers.registry import installed
from fractal_cloud.rules.drift import ComparedType, find_drift
from fractal_sandbox import Sandbox
from fractal_sandbox.http_server import Environ, StartResponse
from tests.offers.suites import kinds
from tests.offers.test_identity import reads_of
from tests.vendors.clouds import CLOUDS, PREFIX, contract
from tests.vendors.interposing import interposed
from tests.vendors.soap import Soap, rest_path
from tests.vendors.variants import WAYS, Variants, Way, text_of

Count = Callable[[str, str, int], None]
LIVE_SYSTEM = "ls-readers"
SEEDS = 6
CONFORMING: tuple[Way, ...] = ("required", "some", "all")
"""The ways that stay within the schema; the others go beyond it in one respect."""
READABLE: tuple[Way, ...] = ("extra", "all", "enums")
"""The ways that leave everything in its place: not even unreadable is good enough there."""
VERSIONED = ("vsphere",)
"""The clouds that answer in the version they are asked in: a client need not read what is newer."""
UNCHANGED: tuple[Way, ...] = ("extra",)
"""The ways in which what was declared is answered unchanged: nothing has drifted."""
READS = re.compile(r"\.(RetrieveProperties|ContinueRetrieveProperties|Fetch\.|FindBy)")
"""The SOAP calls by which resources are read; the others open a session."""
EVERY_KIND = [
    pytest.param(name, id=name, marks=[pytest.mark.xdist_group(f"readers {suite.provider}"), *suite.marks()])
    for name, (suite, _) in kinds().items()
    if suite.provider in CLOUDS and not suite.variant
]


@dataclass
class Changer:
    """Changes answers on their way, while it has a way and a seed.

    ``made``: the variants so far, each once; ``wrong``: what the vendor's schema does not allow after all.
    """

    way: Way | None = None
    seed: int = 0
    made: set[str] = field(default_factory=set)
    wrong: list[tuple[str, str]] = field(default_factory=list)

    def changed(self, cloud: str, method: str, path: str, answer: Any) -> Any:
        """Return a variant of an answer; the answer itself where the contract does not know it."""
        found = contract(cloud).operation_of(method, path)
        schema = found["answers"].get("200") if found else None
        if self.way is None or found is None or schema is None:
            return answer
        is_envelope = isinstance(answer, dict) and (len(answer) == 1 or not found["path"].endswith("}"))
        variants = Variants(contract(cloud).schemas, self.way, Random(f"{self.seed} {path}"))
        variant = variants.of(schema, answer, is_envelope=is_envelope)
        if self.way in CONFORMING and text_of(variant) not in self.made:
            before, after = (
                contract(cloud).faults(schema, json.loads(json.dumps(one, default=str))) for one in (answer, variant)
            )
            self.wrong += [one for one in after if one not in before]
        self.made.add(text_of(variant))
        return variant


@pytest.fixture(scope="session")
def changer() -> Changer:
    return Changer()


@pytest.fixture(scope="session")
def changing_sandbox(changer: Changer) -> Iterator[Sandbox]:
    """A sandbox whose answers to reads go through the changer."""

    def wrap(cloud: str, app: Any) -> Any:
        name = cloud.partition("-")[0]
        return app if name not in CLOUDS or name == "aws" else _wrapped(changer, name, app)

    sends = Endpoint.make_request

    def sending(endpoint: Endpoint, operation: Any, request: Any) -> Any:
        http, parsed = sends(endpoint, operation, request)
        if http.status_code != 200 or changer.way is None:
            return http, parsed
        kept = parsed.pop("ResponseMetadata")
        path = f"/{operation.service_model.service_name}.{operation.name}"
        return http, {**changer.changed("aws", "POST", path, parsed), "ResponseMetadata": kept}

    with pytest.MonkeyPatch.context() as patch, interposed(wrap):
        patch.setattr(Endpoint, "make_request", sending)
        with Sandbox(port=0) as sandbox:
            yield sandbox


def _wrapped(changer: Changer, cloud: str, app: Any) -> Any:
    def answering(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        seen: list[Any] = []
        sent = environ["wsgi.input"].read()
        environ["wsgi.input"].seek(0)
        answer = app(environ, lambda status, headers: seen.extend([status, headers]))
        if changer.way is not None and isinstance(answer, list) and seen[0].startswith("200"):
            changed = _changed_soap if environ["PATH_INFO"] == "/sdk" else _changed_json
            if (text := changed(changer, cloud, environ, sent, b"".join(answer))) is not None:
                answer = [text.encode()]
                seen[1] = [pair for pair in seen[1] if pair[0].lower() != "content-length"]
        start_response(*seen)
        found: Iterable[bytes] = answer
        return found

    return answering


def _changed_json(changer: Changer, cloud: str, environ: Environ, sent: bytes, answer: bytes) -> str | None:
    del sent
    path = PREFIX.sub("", environ["PATH_INFO"])
    if cloud == "vsphere":
        path = rest_path(f"{path}?{environ['QUERY_STRING']}")
    try:
        body = json.loads(answer)
    except ValueError:
        return None
    return json.dumps(changer.changed(cloud, environ["REQUEST_METHOD"], path, body))


def _changed_soap(changer: Changer, cloud: str, environ: Environ, sent: bytes, answer: bytes) -> str | None:
    soap = Soap(contract(cloud))
    path, _ = soap.request(sent.decode())
    if not contract(cloud).operation_of("POST", path) or not READS.search(path):
        return None
    return soap.written(
        path, changer.changed(cloud, environ["REQUEST_METHOD"], path, soap.answer(path, answer.decode()))
    )


@dataclass(frozen=True)
class Subject:
    """One resource that stands, and the offer's own reads of it."""

    provider: str
    type: str
    offer: AnyOffer
    cloud: Any
    query: Query
    resource_id: str
    declared: Mapping[str, Any]

    def read(self) -> Sighting | None:
        return self.offer.read(self.cloud, self.resource_id)

    def listed(self) -> list[Sighting | UnreadItem]:
        asked = Query(self.query.names, self.query.parent_ids, live_systems=self.query.live_systems)
        return list(self.offer.sightings(self.cloud, asked))


@pytest.fixture
def subject(
    request: pytest.FixtureRequest, changing_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Subject]:
    suite, kind = kinds()[request.param]
    with suite.stage(changing_sandbox, tmp_path, kind) as stage:
        offer = installed()[kind.type]
        stage.world.deploy(LIVE_SYSTEM, *stage.example.components)
        with reads_of(offer, monkeypatch) as reads:
            stage.world.settle()
        cloud, query = reads.asked[-1]
        shown = stage.world.component(LIVE_SYSTEM, str(stage.example.declaration["id"]))
        declared = stage.example.declaration["parameters"]
        watched = isolated(offer, Watchdog(60.0))
        yield Subject(suite.provider, kind.type, watched, cloud, query, shown["resourceId"], declared)


@pytest.mark.timeout(300)
@pytest.mark.rule("S0", "S24")
@pytest.mark.parametrize("subject", EVERY_KIND, indirect=True)
def test_what_the_schema_allows_is_read_or_unreadable(subject: Subject, changer: Changer, count: Count) -> None:
    changer.made.clear()
    changer.wrong.clear()
    before = subject.read()
    assert before is not None

    def read_variants(way: Way) -> None:
        @settings(max_examples=SEEDS, derandomize=True, database=None, deadline=None, phases=[Phase.generate])
        @given(seed=st.integers(0, 2**32))
        def read(seed: int) -> None:
            changer.way, changer.seed = way, seed
            try:
                _read_both_ways(subject, way, before)
            finally:
                changer.way = None

        read()

    for way in WAYS:
        read_variants(way)
    assert changer.made, "no answer was changed: the contract does not know what this type reads"
    assert not changer.wrong, "the generator makes what the schema does not allow"
    count(subject.provider, f"generated resources.{subject.offer.type}", len(changer.made))


def _read_both_ways(subject: Subject, way: Way, before: Sighting) -> None:
    for read in (subject.listed, subject.read):
        found, error = _outcome(read)
        assert all(one is None or isinstance(one, Sighting | UnreadItem) for one in found)
        if way in READABLE and (way in CONFORMING or subject.provider not in VERSIONED):
            errors = [str(one.error) for one in found if isinstance(one, UnreadItem)]
            same = [one for one in found if isinstance(one, Sighting) and one.resource_id == before.resource_id]
            assert len(same) == 1, f"{way}: {errors or error}"
            assert way not in UNCHANGED or _drift(subject, same[0], before) == _drift(subject, before, same[0])


def _outcome(read: Callable[[], Any]) -> tuple[list[Any], str]:
    """What was read; nothing, and why, where it is unreadable. Any other error is raised."""
    try:
        found = read()
    except CloudError as error:
        return [], str(error)
    return found if isinstance(found, list) else [found], ""


def _drift(subject: Subject, sighting: Sighting, other: Sighting) -> dict[str, Any]:
    """What of the declaration has drifted, as far as both have it: lists leave some out."""
    offer = installed()[subject.type]
    shown, known = (offer.as_declared(one, subject.declared, {}).actual for one in (sighting, other))
    compared = ComparedType(offer.facts())
    return find_drift(compared, subject.declared, {name: one for name, one in shown.items() if name in known})
