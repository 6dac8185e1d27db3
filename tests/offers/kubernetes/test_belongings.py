"""Objects that belong to a component: made, kept, and let go with the same tags and the same guard."""

from __future__ import annotations

import pytest

from fractal_cloud.model.errors import Conflict
from fractal_cloud.offers.kubernetes.belongings import drop, keep
from fractal_cloud.offers.kubernetes.calls import Kubernetes
from fractal_cloud.offers.kubernetes.kinds import SECRET
from fractal_cloud.offers.offer import Act
from fractal_cloud.sandbox import Sandbox
from tests.offers.kubernetes.person import MANAGED_BY, OWNER

DATA = {"type": "Opaque", "data": {"password": "c2VjcmV0"}}


def writes(clusters: Sandbox) -> list[str]:
    return [one.operation for one in clusters.kubernetes.calls.find(actor="agent", writes_only=True)]


@pytest.mark.rule("T2", "L14")
def test_it_is_made_once_mended_when_it_differs_and_deleted(cloud: Kubernetes, clusters: Sandbox) -> None:
    with cloud.acting(Act("ls-a", "db", "link")):
        for _ in range(2):
            keep(cloud, SECRET, "db-web", DATA, "ls-a")
        made = cloud.get(SECRET, "db-web")
        assert made["metadata"]["labels"] == {MANAGED_BY: "fractal-cloud", OWNER: "ls-a"}
        assert writes(clusters) == ["create"]
        keep(cloud, SECRET, "db-web", {"data": {"password": "b3RoZXI="}}, "ls-a")
        assert cloud.get(SECRET, "db-web")["data"] == {"password": "b3RoZXI="}
        drop(cloud, SECRET, "db-web", "ls-a")
        drop(cloud, SECRET, "db-web", "ls-a")
    assert cloud.find(SECRET, "db-web") is None
    assert writes(clusters) == ["create", "patch", "delete"]


@pytest.mark.rule("S6", "S7")
@pytest.mark.parametrize("labels", [{OWNER: "ls-b"}, {MANAGED_BY: None}, {MANAGED_BY: "Helm"}])
def test_what_is_in_other_hands_is_left_there(
    cloud: Kubernetes, clusters: Sandbox, labels: dict[str, str | None]
) -> None:
    keep(cloud, SECRET, "db-web", DATA, "ls-a")
    revision = cloud.get(SECRET, "db-web")["metadata"]["resourceVersion"]
    cloud.merge(SECRET, "db-web", {"metadata": {"resourceVersion": revision, "labels": labels}})
    before = writes(clusters)
    with pytest.raises(Conflict, match="is in other hands"):
        keep(cloud, SECRET, "db-web", {"data": {}}, "ls-a")
    drop(cloud, SECRET, "db-web", "ls-a")
    assert writes(clusters) == before
