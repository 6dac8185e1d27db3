"""On every cloud: an answer that is none of the vendor's, or not whole, is unreadable: never empty, never gone.

The listing and the direct read of each type are answered, with status 200, by a page of HTML, by nothing, by JSON of
another shape, by half of an answer, and by a list one item of which cannot be understood.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.agent.isolation import isolated
from fractal_cloud.agent.watchdog import Watchdog
from fractal_cloud.model.errors import CloudError
from fractal_cloud.model.sighting import Sighting, UnreadItem
from fractal_cloud.offers.offer import AnyOffer, Query
from fractal_cloud.offers.registry import installed
from fractal_sandbox import Sandbox
from tests.offers.suites import Stage, Suite, kinds
from tests.offers.test_identity import reads_of

LIVE_SYSTEM = "ls-foreign"
HTML = "<!DOCTYPE html>\n<html><body><h1>Please log in to the guest network</h1></body></html>"
TIDY_HTML = '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body/></html>'
BODIES = {
    "html": (HTML, "text/html"),
    "tidy html": (TIDY_HTML, "text/html"),
    "html as json": (HTML, "application/json"),
    "nothing": ("", "application/json"),
    "object": ("{}", "application/json"),
    "list": ("[]", "application/json"),
    "null": ("null", "application/json"),
    "half": ('{"items": [{"name": "a', "application/json"),
    "half of an xml": ("<soapenv:Envelope><soapenv:Body><A", "text/xml"),
}
NONSENSE: tuple[Any, ...] = (None, {}, 42, [])
# How these vendors say that there is nothing at all.
EMPTY = {("OciVcn", "list"), ("OciSubnet", "list"), ("OciInstance", "list"), ("OciBucket", "list")}
EMPTY |= {("GcpCloudRunService", "object"), ("GcpGke", "object"), ("GcpCloudRun", "object")}
SHORT = ("HetznerFirewall", "AzureNsg")
QUICK = [
    pytest.param(
        name,
        id=name,
        marks=[
            pytest.mark.xdist_group(f"foreign {suite.provider}"),
            *suite.marks(),
            *([] if name in suite.always[:1] else [pytest.mark.soak]),
        ],
    )
    for name, (suite, _) in kinds().items()
]


# What follows in a whole cycle is the same code on every cloud: two stand for all in the quick run.
WHOLE = [
    pytest.param(*one.values, id=one.id, marks=one.marks if one.id in SHORT else [*one.marks, pytest.mark.soak])
    for one in QUICK
]


@dataclass
class Subject:
    """One resource that stands, and the offer's own reads of it, as the agent would make them."""

    stage: Stage
    name: str
    offer: AnyOffer
    cloud: Any
    query: Query
    resource_id: str

    @property
    def knobs(self) -> Any:
        return self.stage.world.cloud.knobs

    @property
    def calls(self) -> Any:
        return self.stage.world.cloud.calls

    def listed(self) -> list[Sighting | UnreadItem]:
        query = Query(self.query.names, self.query.parent_ids, live_systems=self.query.live_systems)
        return list(self.offer.sightings(self.cloud, query))

    def asked_by(self, read: Callable[[], object]) -> list[tuple[str, str]]:
        """The calls that a read makes, in their order."""
        self.calls.clear()
        read()
        return list(dict.fromkeys((one.service, one.operation) for one in self.calls.find(actor="agent")))

    @contextmanager
    def answered(self, body: str, content_type: str, service: str, operation: str) -> Iterator[None]:
        where = {"service": service, "operation": operation, "actor": "agent"}
        rule = self.knobs.answer(body, content_type=content_type, **where)
        try:
            yield
        finally:
            self.knobs.remove(rule)

    @contextmanager
    def rewritten(self, rewrite: Callable[[bytes], bytes], service: str, operation: str) -> Iterator[None]:
        rule = self.knobs.rewrite(rewrite, service=service, operation=operation, actor="agent")
        try:
            yield
        finally:
            self.knobs.remove(rule)


@pytest.fixture
def subject(
    request: pytest.FixtureRequest, session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Subject]:
    suite, kind = kinds()[request.param]
    with suite.stage(session_sandbox, tmp_path, kind) as stage:
        offer = installed()[kind.type]
        name = str(stage.example.declaration["id"])
        stage.world.deploy(LIVE_SYSTEM, *stage.example.components)
        with reads_of(offer, monkeypatch) as reads:
            stage.world.settle()
        cloud, query = reads.asked[-1]
        shown = stage.world.component(LIVE_SYSTEM, name)
        assert shown["status"] == "Active", shown
        watched = isolated(offer, Watchdog(60.0))
        yield Subject(stage, kind.__name__, watched, cloud, query, shown["resourceId"])
        stage.world.cloud.knobs.reset()
        stage.world.assert_safe()


@pytest.mark.timeout(300)
@pytest.mark.rule("S0", "S24")
@pytest.mark.parametrize("subject", QUICK, indirect=True)
def test_an_answer_that_is_none_of_the_vendors_is_unreadable(subject: Subject) -> None:
    said: list[str] = []
    for service, operation in subject.asked_by(subject.listed):
        for case, (body, content_type) in BODIES.items():
            with subject.answered(body, content_type, service, operation):
                where = f"{service}:{operation} answered with {case}"
                if (subject.name, case) not in EMPTY and not _is_unreadable(subject, subject.listed):
                    said.append(f"the list, {where}")
    for service, operation in subject.asked_by(lambda: subject.offer.read(subject.cloud, subject.resource_id)):
        for case, (body, content_type) in BODIES.items():
            with subject.answered(body, content_type, service, operation):
                where = f"{service}:{operation} answered with {case}"
                if not _is_unreadable(subject, lambda: [subject.offer.read(subject.cloud, subject.resource_id)]):
                    said.append(f"the read, {where}")
    assert not said, "understood, though nothing could be:\n" + "\n".join(said)


@pytest.mark.timeout(300)
@pytest.mark.rule("S24")
@pytest.mark.parametrize("subject", QUICK, indirect=True)
def test_one_item_that_cannot_be_understood_is_not_left_out(subject: Subject) -> None:
    said: list[str] = []
    for service, operation in subject.asked_by(subject.listed):
        for item in NONSENSE:
            with subject.rewritten(_with_item(item), service, operation):
                if not _is_noticed(subject, subject.listed):
                    said.append(f"{service}:{operation} with {item!r} in the place of its items")
    assert not said, "the component would count as absent:\n" + "\n".join(said)


@pytest.mark.timeout(300)
@pytest.mark.rule("S0", "S24", "S22")
@pytest.mark.parametrize("subject", WHOLE, indirect=True)
def test_nothing_is_made_changed_or_called_gone_while_lists_are_answered_by_somebody_else(subject: Subject) -> None:
    world, example = subject.stage.world, subject.stage.example
    name = str(example.declaration["id"])
    asked = subject.asked_by(subject.listed)
    subjects, before = {name, f"{name}2"}, world.component(LIVE_SYSTEM, name)

    def written() -> list[Any]:
        """What was written to components of the type; others are reconciled as ever."""
        return [one for one in world.writes() if one.component in subjects]

    assert not written()
    for service, operation in asked:
        subject.knobs.answer(HTML, content_type="text/html", service=service, operation=operation, actor="agent")
    world.deploy(LIVE_SYSTEM, *example.components, example.under_name(f"{name}2"))
    world.cycle(2)
    after = world.component(LIVE_SYSTEM, name)
    assert not written()
    kept = ("status", "stance", "resourceId", "outputFields", "observedGeneration")
    assert {key: after[key] for key in kept} == {key: before[key] for key in kept}, after["message"]
    assert "cannot be read" in after["message"]
    world.delete(LIVE_SYSTEM)
    world.cycle(2)
    assert world.component(LIVE_SYSTEM, name)["status"] != "Deleted"
    assert not written()


def _is_unreadable(subject: Subject, read: Callable[[], Any]) -> bool:
    """Whether a read failed, or shows the component for what it is: what was answered was of no consequence to it."""
    try:
        found = read()
    except CloudError:
        return True
    return any(_is_its_own(subject, one) for one in found)


def _is_noticed(subject: Subject, read: Callable[[], Any]) -> bool:
    try:
        found = read()
    except CloudError:
        return True
    name = subject.stage.example.declaration["id"]
    return any(
        one.may_be(name, subject.resource_id) if isinstance(one, UnreadItem) else _is_its_own(subject, one)
        for one in found
    )


def _is_its_own(subject: Subject, one: Sighting | UnreadItem | None) -> bool:
    return isinstance(one, Sighting) and one.resource_id == subject.resource_id and one.protocol.is_managed


def _with_item(item: Any) -> Callable[[bytes], bytes]:
    """Puts something in the place of every item of the outermost lists of a JSON answer."""

    def rewrite(body: bytes) -> bytes:
        try:
            answer = json.loads(body)
        except ValueError:
            return body  # XML has no such things
        return json.dumps(_replaced(answer, item)).encode()

    return rewrite


def _replaced(answer: Any, item: Any) -> Any:
    if isinstance(answer, list):
        return [item for _ in answer]
    if not isinstance(answer, dict):
        return answer
    return {key: [item for _ in value] if isinstance(value, list) else value for key, value in answer.items()}


def test_every_provider_is_tried(request: pytest.FixtureRequest) -> None:
    del request
    tried: dict[str, Suite] = {suite.provider: suite for suite, _ in kinds().values()}
    assert {suite.provider for suite in tried.values() if not suite.always} == set(), "name a type that is always tried"
