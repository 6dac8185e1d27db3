"""What server-side apply does, on the sandbox and, where ``KUBECONFIG_REAL`` names one, on a real server: the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fractal_cloud.offers.kubernetes.calls import Call
from tests.offers.kubernetes.any_kind.test_every_kind import REAL, world
from tests.offers.kubernetes.any_kind.world import KindWorld

__all__ = ["world"]

APPLY = "application/apply-patch+yaml"
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/shared"
CONTAINER = {"name": "web", "image": "nginx:1"}


def apply(
    world: KindWorld, manager: str, spec: dict[str, Any], *, is_forced: bool = False
) -> tuple[int, dict[str, Any]]:
    """Apply a Deployment's spec as a manager; returns the status and what was answered."""
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shared"}, "spec": spec}
    query = {"fieldManager": manager, **({"force": "true"} if is_forced else {})}
    cluster = world.session.enter("")
    answer = cluster.send(Call("PATCH", DEPLOYMENT, query, body, APPLY))
    return answer.status, answer.body()


def spec_of(*containers: dict[str, Any], **more: Any) -> dict[str, Any]:
    labels = {"app": "shared"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": list(containers or (CONTAINER,))}}
    return {"selector": {"matchLabels": labels}, "template": template, **more}


@pytest.fixture(autouse=True)
def _as_a_person(world: KindWorld, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if not REAL:
        monkeypatch.setenv("KUBECONFIG", world.person.env["KUBECONFIG"])
    yield
    world.session.enter("").send(Call("DELETE", DEPLOYMENT, body={"propagationPolicy": "Background"}))


def test_a_field_that_another_manager_owns_is_a_conflict_that_names_him_unless_forced(world: KindWorld) -> None:
    assert apply(world, "one", spec_of(replicas=2))[0] == 201
    status, refused = apply(world, "two", {"replicas": 3})
    assert (status, refused["reason"]) == (409, "Conflict")
    assert refused["details"]["causes"][0]["reason"] == "FieldManagerConflict"
    assert refused["details"]["causes"][0]["field"] == ".spec.replicas"
    assert 'conflict with "one"' in refused["message"]
    assert apply(world, "two", {"replicas": 2})[0] == 200, "the same value is no conflict"
    status, changed = apply(world, "three", {"replicas": 5}, is_forced=True)
    assert (status, changed["spec"]["replicas"]) == (200, 5)
    status, kept = apply(world, "one", spec_of())
    assert (status, kept["spec"]["replicas"]) == (200, 5), "who no longer owns a field does not take it away"


def test_what_a_manager_no_longer_names_goes_unless_somebody_else_owns_it(world: KindWorld) -> None:
    side = {"name": "side", "image": "busybox:1"}
    apply(world, "one", spec_of(CONTAINER, side, minReadySeconds=7, paused=True))
    status, item = apply(world, "two", {"paused": True})
    assert status == 200
    status, item = apply(world, "one", spec_of(CONTAINER))
    assert status == 200
    assert [one["name"] for one in item["spec"]["template"]["spec"]["containers"]] == ["web"]
    assert "minReadySeconds" not in item["spec"]
    assert item["spec"]["paused"] is True


def test_elements_of_lists_with_keys_are_merged_and_lists_without_are_replaced(world: KindWorld) -> None:
    first = {**CONTAINER, "command": ["a", "b"], "env": [{"name": "A", "value": "1"}]}
    apply(world, "one", spec_of(first))
    second = {"name": "web", "env": [{"name": "B", "value": "2"}]}
    status, item = apply(world, "two", {"template": {"spec": {"containers": [second]}}})
    assert status == 200
    [container] = item["spec"]["template"]["spec"]["containers"]
    assert {one["name"] for one in container["env"]} == {"A", "B"}
    assert container["image"] == "nginx:1"
    third = {"name": "web", "command": ["c"]}
    assert apply(world, "two", {"template": {"spec": {"containers": [third]}}})[0] == 409, "a list without keys is one"
    status, item = apply(world, "one", spec_of({**first, "command": ["c"]}))
    assert item["spec"]["template"]["spec"]["containers"][0]["command"] == ["c"]


@pytest.mark.parametrize(("metadata", "status"), [({"resourceVersion": "1"}, 409), ({"uid": "another"}, 422)], ids=str)
def test_an_apply_that_rests_on_another_object_is_refused(
    world: KindWorld, metadata: dict[str, str], status: int
) -> None:
    apply(world, "one", spec_of(replicas=2))
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shared", **metadata}}
    call = Call("PATCH", DEPLOYMENT, {"fieldManager": "one"}, {**body, "spec": spec_of(replicas=4)}, APPLY)
    answer = world.session.enter("").send(call)
    assert answer.status == status, answer.text
    assert world.person.call("GET", DEPLOYMENT)["spec"]["replicas"] == 2


def test_a_dry_run_says_what_would_come_of_it_and_changes_nothing(world: KindWorld) -> None:
    apply(world, "one", spec_of(replicas=2))
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shared"}, "spec": spec_of(replicas=4)}
    call = Call("PATCH", DEPLOYMENT, {"fieldManager": "one", "dryRun": "All"}, body, APPLY)
    answer = world.session.enter("").send(call)
    assert answer.body()["spec"]["replicas"] == 4
    assert world.person.call("GET", DEPLOYMENT)["spec"]["replicas"] == 2
