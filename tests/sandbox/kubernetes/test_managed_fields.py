"""Who owns which field as a real server records it, and the sandbox as it does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.sandbox.kubernetes.conftest import APPLY, CONFIG_MAPS, DEPLOYMENTS, JSON_PATCH, SERVICES, Api, deployment

Object = dict[str, Any]
OWN: Object = {".": {}, "f:name": {}, "f:port": {}, "f:protocol": {}, "f:targetPort": {}}


def port(number: int) -> str:
    return f'k:{{"port":{number},"protocol":"TCP"}}'


@pytest.fixture
def front(api: Api, name: str) -> Iterator[str]:
    """The path of a Service that somebody made."""
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    metadata = {"name": name, "labels": {"x": "1"}, "annotations": {"y": "1"}}
    spec = {"selector": {"app": "w"}, "ports": ports}
    made = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
    assert api.post(SERVICES, made, fieldManager="maker").status == 201
    yield f"{SERVICES}/{name}"
    api.delete(f"{SERVICES}/{name}")


def change(api: Api, path: str, manager: str, *steps: tuple[str, str, Any]) -> None:
    patch = [{"op": op, "path": where, "value": value} for op, where, value in steps]
    assert api.patch(path, patch, JSON_PATCH, fieldManager=manager).status == 200


def recorded(api: Api, path: str) -> dict[str, Object]:
    """What each manager owns, by his name."""
    return {one["manager"]: one["fieldsV1"] for one in api.get(path).json["metadata"].get("managedFields") or ()}


def test_who_makes_an_object_owns_maps_and_lists_as_such_and_each_element(api: Api, front: str) -> None:
    made = recorded(api, front)["maker"]
    assert made["f:metadata"] == {"f:annotations": {".": {}, "f:y": {}}, "f:labels": {".": {}, "f:x": {}}}
    assert made["f:spec"]["f:ports"] == {".": {}, port(80): OWN, port(81): OWN}
    assert made["f:spec"]["f:selector"] in ({".": {}, "f:app": {}}, {})  # a single value since 1.22


def test_who_adds_an_element_owns_it_and_who_changes_a_field_of_it_only_that(api: Api, front: str) -> None:
    change(api, front, "adds", ("add", "/spec/ports/-", {"name": "c", "port": 82, "targetPort": 82}))
    change(api, front, "changes", ("replace", "/spec/ports/1/targetPort", 9))
    found = recorded(api, front)
    assert found["adds"] == {"f:spec": {"f:ports": {port(82): OWN}}}
    assert found["changes"] == {"f:spec": {"f:ports": {port(81): {"f:targetPort": {}}}}}
    kept = {key: value for key, value in OWN.items() if key != "f:targetPort"}
    assert found["maker"]["f:spec"]["f:ports"] == {".": {}, port(80): OWN, port(81): kept}


def test_what_is_taken_away_nobody_owns_and_who_brings_it_again_owns_it_as_such(api: Api, front: str) -> None:
    change(api, front, "adds", ("add", "/metadata/labels/z", "1"), ("add", "/metadata/finalizers", ["a.example/b"]))
    assert recorded(api, front)["adds"] == {
        "f:metadata": {"f:labels": {"f:z": {}}, "f:finalizers": {".": {}, 'v:"a.example/b"': {}}}
    }
    change(api, front, "takes", ("remove", "/metadata/labels", None), ("remove", "/metadata/finalizers", None))
    change(api, front, "brings", ("add", "/metadata/labels", {"n": "1"}), ("remove", "/spec/ports/1", None))
    found = recorded(api, front)
    assert sorted(found) == ["brings", "maker"]
    assert found["brings"] == {"f:metadata": {"f:labels": {".": {}, "f:n": {}}}}
    assert found["maker"]["f:metadata"] == {"f:annotations": {".": {}, "f:y": {}}}
    assert found["maker"]["f:spec"]["f:ports"] == {".": {}, port(80): OWN}


def test_who_applies_owns_elements_but_no_list_or_map_as_such_and_others_may_keep_only_that(
    api: Api, front: str
) -> None:
    change(api, front, "brings", ("replace", "/metadata/labels", {"n": "1"}))
    name = front.rpartition("/")[2]
    spec = {"ports": [{"name": "a", "port": 80, "protocol": "TCP"}]}
    said: Object = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": {"n": "2"}},
        "spec": spec,
    }
    assert api.patch(front, said, APPLY, fieldManager="applies").status == 409
    assert api.patch(front, said, APPLY, fieldManager="applies", force="true").status == 200
    found = recorded(api, front)
    element: Object = {".": {}, "f:name": {}, "f:port": {}, "f:protocol": {}}
    assert found["applies"] == {"f:metadata": {"f:labels": {"f:n": {}}}, "f:spec": {"f:ports": {port(80): element}}}
    assert found["maker"]["f:spec"]["f:ports"] == {".": {}, port(80): OWN, port(81): OWN}
    assert found["maker"]["f:metadata"]["f:labels"] == {}
    assert "brings" not in found or not found["brings"]["f:metadata"].get("f:labels")


def test_containers_are_always_written_so_nobody_brings_their_list(api: Api, name: str) -> None:
    assert api.post(DEPLOYMENTS, deployment(name), fieldManager="maker").status == 201
    try:
        pod = recorded(api, f"{DEPLOYMENTS}/{name}")["maker"]["f:spec"]["f:template"]
        assert pod["f:metadata"]["f:labels"]["."] == {}
        ((key, container),) = pod["f:spec"]["f:containers"].items()
        assert key == 'k:{"name":"web"}'
        assert container["."] == container["f:env"]["."] == container["f:env"]['k:{"name":"A"}']["."] == {}
    finally:
        api.delete(f"{DEPLOYMENTS}/{name}")


def test_an_owner_is_recorded_by_his_uid_and_an_empty_map_not_at_all(api: Api, name: str) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "123"}
    metadata = {"name": name, "labels": {}, "ownerReferences": [owner]}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}}
    assert api.post(CONFIG_MAPS, made, fieldManager="maker").status == 201
    try:
        fields: Object = {".": {}, "f:apiVersion": {}, "f:kind": {}, "f:name": {}, "f:uid": {}}
        owners = recorded(api, f"{CONFIG_MAPS}/{name}")["maker"]
        found = owners["f:metadata"]["f:ownerReferences"].pop('k:{"uid":"123"}')
        assert owners == {"f:metadata": {"f:ownerReferences": {".": {}}}}
        assert found in (fields, {})  # a single value since 1.22
    finally:
        api.delete(f"{CONFIG_MAPS}/{name}")
