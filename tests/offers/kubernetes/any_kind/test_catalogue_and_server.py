"""The packaged catalogue of kinds, held against what a real server says of itself: its discovery and its OpenAPI.

The server may be older than the catalogue. So the catalogue may know more, and nothing else of what both know may
differ; what newer releases took away or say otherwise is listed here, with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.kubernetes.any_kind import catalogue
from fractal_cloud.offers.kubernetes.any_kind.discovery import kinds_served
from fractal_cloud.offers.kubernetes.any_kind.kind_facts import KindFacts
from fractal_cloud.offers.kubernetes.calls import Kubernetes
from fractal_cloud.offers.kubernetes.cloud import KubernetesSession
from fractal_cloud.offers.kubernetes.kinds import ObjectKind
from fractal_sandbox.kubernetes.published import published
from tests.offers.kubernetes.any_kind.test_every_kind import REAL
from tests.offers.kubernetes.server import Server

pytestmark = pytest.mark.real_cluster
Json = Mapping[str, Any]
_GVK: Final = "x-kubernetes-group-version-kind"
_LIST: Final = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type")
_MERGE: Final = ("x-kubernetes-patch-merge-key", "x-kubernetes-patch-strategy")
NOT_SERVED: Final = (("v1/ComponentStatus", ["watch"]),)
"""What the published document describes and no server lists, of a kind that cannot be declared."""
GONE: Final[Mapping[str, str]] = {
    "ObjectMeta.clusterName": "never filled in; taken away in 1.24",
    "ServiceSpec.topologyKeys": "an alpha field; taken away in 1.22",
    "EphemeralVolumeSource.readOnly": "an alpha field that meant nothing; taken away in 1.21",
}
"""Fields that newer releases no longer have."""
_TEXT: Final = "bytes, which are text in JSON: no list that could be merged"
OTHERWISE: Final[Mapping[str, str]] = {
    "CertificateSigningRequestSpec.request": _TEXT,
    "CertificateSigningRequestStatus.certificate": _TEXT,
    "LabelSelectorRequirement.key": "a text, for which a key to merge by means nothing; no longer said since 1.27",
}
"""What newer releases say otherwise of a field."""


@pytest.fixture(scope="module")
def server() -> Server:
    """The server itself."""
    return Server(REAL)


@pytest.fixture(scope="module")
def kinds(server: Server) -> dict[str, tuple[ObjectKind, frozenset[str]]]:
    """The kinds that it lists, every version of each, by their types."""
    versions = ["/api/v1"]
    for group in server.ask("GET", "/apis").json()["groups"]:
        versions += [f"/apis/{one['groupVersion']}" for one in group["versions"]]
    found = {}
    for path in versions:
        listed = server.ask("GET", path).json()
        group, _, version = listed["groupVersion"].rpartition("/")
        for one in listed["resources"]:
            if "/" not in one["name"] and one.get("group", group) == group:
                kind = ObjectKind(group, version, one["kind"], one["name"], "", one["namespaced"])
                found[f"{kind.api_version}/{kind.kind}"] = (kind, frozenset(one["verbs"]))
    return found


def in_both(kinds: Mapping[str, tuple[ObjectKind, frozenset[str]]]) -> Iterator[tuple[str, KindFacts]]:
    for name in sorted(kinds.keys() & set(catalogue.names())):
        known = catalogue.find(name)
        assert known is not None
        yield name, known


def test_scope_plural_and_verbs_are_those_of_the_server(
    kinds: dict[str, tuple[ObjectKind, frozenset[str]]],
) -> None:
    compared = 0
    for name, known in in_both(kinds):
        kind, verbs = kinds[name]
        assert (known.plural, known.is_namespaced) == (kind.plural, kind.is_namespaced), name
        more = known.verbs - verbs
        assert not more or (name, sorted(more)) in NOT_SERVED, f"{name}: {sorted(more)} is not served"
        said = published()["kinds"][name]
        assert (said["plural"], said["namespaced"]) == (kind.plural, kind.is_namespaced), f"the sandbox's {name}"
        compared += 1
    assert compared >= 40, f"only {compared} kinds are in both"


def test_the_server_answers_plain_discovery_and_is_understood(
    kinds: dict[str, tuple[ObjectKind, frozenset[str]]], monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    """A server before 1.26 knows no aggregated discovery: group by group, everything is found all the same."""
    monkeypatch.setenv("KUBECONFIG", REAL)
    session = KubernetesSession()
    served = {one.resource: (one.kind, one.is_namespaced) for one, _ in kinds_served(_anywhere(session))}
    listed = {kind.resource: (kind.kind, kind.is_namespaced) for kind, _ in kinds.values()}
    assert served == listed
    answer = server.ask("GET", "/apis", Accept="application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
    assert answer.status == 406 or (answer.json() or {}).get("kind") in ("APIGroupList", "APIGroupDiscoveryList")


def _anywhere(session: KubernetesSession) -> Kubernetes:
    return session.at(Scope("kubernetes", session.realms()[""], "default"))


def test_every_field_of_the_server_stands_in_the_catalogue_with_its_type_and_keys(
    kinds: dict[str, tuple[ObjectKind, frozenset[str]]], server: Server
) -> None:
    document = json.loads(server.ask("GET", "/openapi/v2").body)["definitions"]
    wrong = differences(document, dict(in_both(kinds)))
    assert not wrong, "\n".join(wrong)


def differences(document: Json, known: Mapping[str, KindFacts]) -> list[str]:
    """What the server says of fields and the catalogue does not, beside what is listed above."""
    by_type = {
        "/".join(part for part in (one["group"], one["version"], one["kind"]) if part): said
        for said in document.values()
        for one in said.get(_GVK) or ()
    }
    found: dict[str, None] = {}
    for name, facts in known.items():
        comparison = _Comparison(document, facts.definitions)
        comparison.compare(by_type[name], facts.schema, name.rpartition("/")[2])
        found |= dict.fromkeys(comparison.found)
    return list(found)


class _Comparison:
    """Two schemas, each with the definitions that it refers to, side by side."""

    def __init__(self, theirs: Json, ours: Json) -> None:
        self._theirs = theirs
        self._ours = ours
        self._seen: set[str] = set()
        self.found: list[str] = []

    def compare(self, theirs: Json, ours: Json, where: str) -> None:
        """Compare what stands at one place."""
        their_kind, our_kind = self._type(theirs, self._theirs), self._type(ours, self._ours)
        if their_kind != our_kind and where not in OTHERWISE:
            self.found.append(f"{where} is {their_kind} on the server, and {our_kind} in the catalogue")
        name = str(theirs.get("$ref", "")).rpartition(".")[2]
        if name:
            if name in self._seen:
                return
            self._seen.add(name)
        theirs, ours = _resolved(theirs, self._theirs), _resolved(ours, self._ours)
        for field, said in (theirs.get("properties") or {}).items():
            here = f"{name or where}.{field}"
            one = (ours.get("properties") or {}).get(field)
            if one is None:
                if here not in GONE:
                    self.found.append(f"{here} is not in the catalogue")
                continue
            self._compare_lists(said, one, here)
            self.compare(said, one, here)
        for word in ("items", "additionalProperties"):
            if isinstance(theirs.get(word), Mapping) and isinstance(ours.get(word), Mapping):
                self.compare(theirs[word], ours[word], f"{name or where}[]")

    def _compare_lists(self, theirs: Json, ours: Json, where: str) -> None:
        """How a list is merged: a newer release may say so where an older one said nothing."""
        for word in (*_LIST, *_MERGE):
            if word in theirs and theirs[word] != ours.get(word) and where not in OTHERWISE:
                self.found.append(f"{where}: {word} is {theirs[word]!r}, and {ours.get(word)!r} in the catalogue")

    def _type(self, schema: Json, definitions: Json) -> str:
        found = _resolved(schema, definitions)
        name = str(schema.get("$ref", "")).rpartition(".")[2]
        if name in ("Quantity", "IntOrString", "Time", "MicroTime"):
            return name
        return str(found.get("type") or ("object" if found.get("properties") else ""))


def _resolved(schema: Json, definitions: Json) -> Json:
    while "$ref" in schema:
        schema = definitions[str(schema["$ref"]).rpartition("/")[2]]
    return schema
