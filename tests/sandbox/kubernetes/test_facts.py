"""What the guard of the Kubernetes offers relies on: facts of a real API server, which the sandbox's must share.

Each runs against the sandbox, and against a real server where there is one: see `conftest.py`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.sandbox.kubernetes.conftest import (
    APPLY,
    CONFIG_MAPS,
    DEFINITIONS,
    DEPLOYMENTS,
    GUARD,
    JSON_PATCH,
    MANAGED,
    MERGE_PATCH,
    SECRETS,
    SERVICES,
    STRATEGIC,
    Answer,
    Api,
    deployment,
    service,
)

NO_UID = "00000000-0000-0000-0000-000000000000"
UNLABEL = {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}}
RELABEL = {"metadata": {"labels": {"app.kubernetes.io/managed-by": "fractal-cloud"}}}


def replicas(number: int) -> dict[str, Any]:
    return {"op": "replace", "path": "/spec/replicas", "value": number}


@pytest.fixture
def web(api: Api, name: str) -> Iterator[str]:
    """The path of a Deployment."""
    api.make(DEPLOYMENTS, deployment(name))
    yield f"{DEPLOYMENTS}/{name}"
    api.delete(f"{DEPLOYMENTS}/{name}")


@pytest.fixture
def custom(api: Api, name: str) -> Iterator[str]:
    """The path of the objects of a kind that a new definition has added."""
    group = f"{name}.example.com"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    api.make(
        DEFINITIONS,
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"things.{group}"},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"kind": "Thing", "plural": "things"},
                "versions": [version],
            },
        },
    )
    path = f"/apis/{group}/v1/namespaces/default/things"
    for _ in range(100):
        if api.get(path).status == 200:
            break
        time.sleep(0.05)
    api.make(path, thing(name))
    yield path
    api.delete(f"{DEFINITIONS}/things.{group}")


def thing(name: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{name}.example.com/v1",
        "kind": "Thing",
        "metadata": {"name": name, "labels": MANAGED, **metadata},
        "spec": {"size": 1},
    }


# Identity


def test_a_name_is_taken_once(api: Api, web: str, name: str) -> None:
    assert api.post(DEPLOYMENTS, deployment(name)).outcome == (409, "AlreadyExists")


def test_a_missing_object_is_a_status_and_an_unknown_kind_is_plain_text(api: Api, name: str) -> None:
    missing = api.get(f"{DEPLOYMENTS}/{name}")
    assert missing.outcome == (404, "NotFound")
    assert missing.json["details"] == {"name": name, "group": "apps", "kind": "deployments"}
    unknown = api.get(f"/apis/{name}.example.com/v1/namespaces/default/things")
    assert (unknown.status, unknown.text) == (404, "404 page not found\n")
    assert unknown.headers["content-type"].startswith("text/plain")


def test_a_kind_that_is_missing_in_a_group_that_is_there_is_plain_text_too(api: Api, custom: str, name: str) -> None:
    assert api.get(custom.replace("/things", "/others")).text == "404 page not found\n"
    assert api.get(custom.replace("/v1/", "/v2/")).text == "404 page not found\n"
    assert api.get(f"{custom}/missing").outcome == (404, "NotFound")


def test_an_object_made_again_has_another_uid(api: Api, web: str, name: str) -> None:
    first = api.get(web).uid
    api.delete(web)
    assert api.make(DEPLOYMENTS, deployment(name))["metadata"]["uid"] != first


@pytest.mark.parametrize("value", ["a/b", "x" * 64, "ä", "-a", "a b"])
def test_a_label_value_that_is_none_is_invalid(api: Api, web: str, value: str) -> None:
    assert api.patch(web, {"metadata": {"labels": {"some": value}}}).outcome == (422, "Invalid")


def test_an_annotation_accepts_any_text(api: Api, web: str) -> None:
    text = "Personal/5b6f/group name/ä\n" + "x" * 1000
    assert api.patch(web, {"metadata": {"annotations": {"some": text}}}).json["metadata"]["annotations"]["some"] == text


# Tags, one by one


def test_a_merge_patch_removes_one_label_and_is_content_where_there_is_none(api: Api, web: str) -> None:
    assert "app.kubernetes.io/managed-by" not in api.patch(web, UNLABEL).json["metadata"]["labels"]
    version = api.get(web).version
    assert api.patch(web, UNLABEL).status == 200
    assert api.get(web).version == version, "a patch without effect is no write"


def test_a_json_patch_neither_removes_what_is_absent_nor_adds_where_no_map_is(
    api: Api, custom: str, web: str, name: str
) -> None:
    gone = [{"op": "remove", "path": "/metadata/labels/absent"}]
    added = [{"op": "add", "path": "/metadata/annotations/some", "value": "1"}]
    assert api.patch(web, gone, JSON_PATCH).outcome == (422, "Invalid")
    assert api.patch(f"{custom}/{name}", added, JSON_PATCH).outcome == (422, "Invalid")


def test_readoption_is_one_merge_patch(api: Api, web: str) -> None:
    api.patch(web, {"metadata": {"annotations": {"fractal.cloud/reconcile": "reconcile", "other": "kept"}}})
    seen = api.get(web)
    metadata = {
        "resourceVersion": seen.version,
        "labels": {"app.kubernetes.io/managed-by": "fractal-cloud"},
        "annotations": {"fractal.cloud/reconcile": None},
    }
    answer = api.patch(web, {"metadata": metadata})
    assert answer.status == 200
    assert answer.json["metadata"]["annotations"]["other"] == "kept"
    assert "fractal.cloud/reconcile" not in answer.json["metadata"]["annotations"]


# The guard


@pytest.mark.rule("S16")
def test_a_guarded_patch_applies_only_while_the_label_is_there(api: Api, web: str) -> None:
    assert api.patch(web, [GUARD, replicas(2)], JSON_PATCH).json["spec"]["replicas"] == 2
    api.patch(web, UNLABEL)
    refused = api.patch(web, [GUARD, replicas(3)], JSON_PATCH)
    assert refused.outcome == (422, "Invalid")
    assert refused.json["details"] == {}
    assert refused.json["message"] == "the server rejected our request due to an error in our request"
    assert api.get(web).json["spec"]["replicas"] == 2


@pytest.mark.rule("S16")
def test_a_label_with_another_value_fails_the_guard(api: Api, web: str) -> None:
    api.patch(web, {"metadata": {"labels": {"app.kubernetes.io/managed-by": "Helm"}}})
    assert api.patch(web, [GUARD, replicas(3)], JSON_PATCH).status == 422


@pytest.mark.rule("S16")
def test_no_guarded_patch_ever_applies_while_the_label_is_gone(api: Api, web: str, name: str) -> None:
    """A person takes the label off and puts it on again; while it is off, they count the patches that came through."""
    stop = threading.Event()
    outcomes: list[Answer] = []

    def patch_on() -> None:
        for number in range(10_000):
            if stop.is_set():
                return
            outcomes.append(api.patch(web, [GUARD, replicas(number % 50)], JSON_PATCH))

    threads = [threading.Thread(target=patch_on) for _ in range(2)]
    for thread in threads:
        thread.start()
    wrong = 0
    for _ in range(40):
        without = api.patch(web, UNLABEL).json["spec"]["replicas"]
        wrong += sum(api.get(web).json["spec"]["replicas"] != without for _ in range(2))
        api.patch(web, RELABEL)
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == 0
    assert {answer.status for answer in outcomes} == {200, 422}, "the race was run on both sides"


@pytest.mark.rule("S16")
@pytest.mark.parametrize("form", [MERGE_PATCH, STRATEGIC])
def test_an_old_version_in_a_patch_is_a_conflict(api: Api, web: str, form: str) -> None:
    seen = api.get(web).version
    api.patch(web, UNLABEL)
    patch: dict[str, Any] = {"metadata": {"resourceVersion": seen}, "spec": {"replicas": 4}}
    assert api.patch(web, patch, form).outcome == (409, "Conflict")
    patch["metadata"]["resourceVersion"] = api.get(web).version
    assert api.patch(web, patch, form).json["spec"]["replicas"] == 4


def test_a_wrong_uid_in_a_patch_is_invalid(api: Api, web: str) -> None:
    assert api.patch(web, {"metadata": {"uid": NO_UID}}).outcome == (422, "Invalid")


@pytest.mark.rule("S16")
def test_a_delete_with_an_old_version_or_another_uid_is_a_conflict(api: Api, web: str) -> None:
    seen = api.get(web)
    api.patch(web, UNLABEL)
    assert api.delete(web, {"preconditions": {"resourceVersion": seen.version}}).outcome == (409, "Conflict")
    assert api.delete(web, {"preconditions": {"uid": NO_UID}}).outcome == (409, "Conflict")
    good = {"uid": seen.uid, "resourceVersion": api.get(web).version}
    assert api.delete(web, {"preconditions": good, "propagationPolicy": "Background"}).status == 200
    assert api.delete(web).outcome == (404, "NotFound")


def test_a_put_with_an_old_version_is_a_conflict_and_without_one_overwrites(api: Api, web: str) -> None:
    seen = api.get(web).json
    api.patch(web, UNLABEL)
    assert api.put(web, seen).outcome == (409, "Conflict")
    del seen["metadata"]["resourceVersion"]
    assert api.put(web, seen).json["metadata"]["labels"] == seen["metadata"]["labels"], "the label is back"


def test_nothing_but_apply_makes_what_is_missing(api: Api, name: str) -> None:
    path = f"{CONFIG_MAPS}/{name}"
    content = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}}
    assert api.patch(path, {"data": {"a": "2"}}).status == 404
    assert api.patch(path, [{"op": "add", "path": "/data", "value": {}}], JSON_PATCH).status == 404
    with_uid = {**content, "metadata": {"name": name, "uid": NO_UID}}
    assert api.patch(path, with_uid, APPLY, fieldManager="m").outcome == (409, "Conflict")
    with_version = {**content, "metadata": {"name": name, "resourceVersion": "1"}}
    assert api.patch(path, with_version, APPLY, fieldManager="m").status == 201
    assert api.patch(path, with_version, APPLY, fieldManager="m").outcome == (409, "Conflict")


def test_apply_brings_a_removed_label_back_and_drops_what_it_no_longer_names(api: Api, name: str) -> None:
    path = f"{CONFIG_MAPS}/{name}"
    content: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": MANAGED}}
    api.patch(path, {**content, "data": {"a": "1", "b": "2"}}, APPLY, fieldManager="m")
    api.patch(path, UNLABEL)
    again = api.patch(path, {**content, "data": {"a": "1"}}, APPLY, fieldManager="m")
    assert again.json["metadata"]["labels"] == MANAGED
    assert again.json["data"] == {"a": "1"}
    assert api.patch(path, content, APPLY).status == 422, "without a manager"


# Custom resources


def test_custom_resources_know_no_strategic_merge_and_no_put_without_a_version(
    api: Api, custom: str, name: str
) -> None:
    path = f"{custom}/{name}"
    assert api.patch(path, {"spec": {"size": 2}}, STRATEGIC).outcome == (415, "UnsupportedMediaType")
    assert api.put(path, thing(name)).outcome == (422, "Invalid")
    version = api.get(path).version
    assert api.put(path, thing(name, resourceVersion=version)).status == 200
    assert api.put(path, thing(name, resourceVersion="1")).outcome == (409, "Conflict")


@pytest.mark.rule("S16")
def test_the_guard_works_on_custom_resources(api: Api, custom: str, name: str) -> None:
    path = f"{custom}/{name}"
    grow = {"op": "replace", "path": "/spec/size", "value": 2}
    assert api.patch(path, [GUARD, grow], JSON_PATCH).json["spec"] == {"size": 2}
    api.patch(path, UNLABEL)
    assert api.patch(path, [GUARD, grow], JSON_PATCH).outcome == (422, "Invalid")


def test_generation_counts_changes_of_the_spec_only(api: Api, custom: str, web: str, name: str) -> None:
    path = f"{custom}/{name}"
    assert api.patch(path, {"metadata": {"labels": {"some": "label"}}}).json["metadata"]["generation"] == 1
    assert api.patch(path, {"spec": {"size": 2}}).json["metadata"]["generation"] == 2
    assert api.patch(f"{path}/status", {"status": {"state": "Good"}}).json["metadata"]["generation"] == 2
    assert api.patch(web, {"metadata": {"labels": {"some": "label"}}}).json["metadata"]["generation"] == 1
    assert api.patch(web, {"spec": {"replicas": 3}}).json["metadata"]["generation"] == 2
    annotated = api.patch(web, {"metadata": {"annotations": {"some": "note"}}})
    assert annotated.json["metadata"]["generation"] == 3, "a Deployment's annotations count, unlike others'"


def test_status_is_written_through_its_own_door_only(api: Api, custom: str, name: str) -> None:
    path = f"{custom}/{name}"
    assert "status" not in api.patch(path, {"status": {"state": "Bad"}}).json
    both = {"status": {"state": "Good"}, "spec": {"size": 9}}
    answer = api.patch(f"{path}/status", both)
    assert (answer.json["status"], answer.json["spec"]) == ({"state": "Good"}, {"size": 1})


# Deletion


def test_a_finalizer_keeps_what_is_deleted_until_it_is_taken_off(api: Api, web: str) -> None:
    api.patch(web, {"metadata": {"finalizers": ["example.com/keep"]}})
    assert api.delete(web).json["metadata"]["deletionTimestamp"]
    assert api.get(web).json["metadata"]["deletionTimestamp"]
    assert api.patch(web, {"metadata": {"finalizers": None}}).status == 200
    assert api.get(web).status == 404


# What cannot change


def test_what_cannot_change_is_invalid(api: Api, web: str, name: str) -> None:
    other = {"matchLabels": {"app": "other"}}
    template = {"metadata": {"labels": {"app": "other"}}}
    assert api.patch(web, {"spec": {"selector": other, "template": template}}).outcome == (422, "Invalid")
    api.make(SERVICES, service(name))
    assert api.patch(f"{SERVICES}/{name}", {"spec": {"clusterIP": "10.96.77.77"}}).outcome == (422, "Invalid")
    api.delete(f"{SERVICES}/{name}")
    api.make(SECRETS, {"metadata": {"name": name}, "stringData": {"key": "value"}})
    secret = f"{SECRETS}/{name}"
    assert api.get(secret).json["data"] == {"key": "dmFsdWU="}
    assert api.patch(secret, {"type": "other"}).outcome == (422, "Invalid")
    api.patch(secret, {"immutable": True})
    assert api.patch(secret, {"data": {"key": "b3RoZXI="}}).outcome == (422, "Invalid")
    assert api.patch(secret, {"metadata": {"labels": MANAGED}}).status == 200, "its labels still change"
    api.delete(secret)


def test_a_service_changes_its_type_and_keeps_its_address(api: Api, name: str) -> None:
    path = f"{SERVICES}/{name}"
    address = api.make(SERVICES, service(name))["spec"]["clusterIP"]
    balanced = api.patch(path, {"spec": {"type": "LoadBalancer"}}).json["spec"]
    assert (balanced["clusterIP"], balanced["externalTrafficPolicy"]) == (address, "Cluster")
    assert 30000 <= balanced["ports"][0]["nodePort"] <= 32767
    back = api.patch(path, {"spec": {"type": "ClusterIP"}}).json["spec"]
    assert (back["clusterIP"], "nodePort" in back["ports"][0], "externalTrafficPolicy" in back) == (
        address,
        False,
        False,
    )
    api.delete(path)


def test_a_scale_is_read_and_written(api: Api, web: str) -> None:
    assert api.get(f"{web}/scale").json["spec"] == {"replicas": 1}
    assert api.patch(f"{web}/scale", {"spec": {"replicas": 4}}).json["spec"] == {"replicas": 4}
    assert api.get(web).json["spec"]["replicas"] == 4
