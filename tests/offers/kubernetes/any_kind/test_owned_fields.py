"""What is applied of an object that a server records as it is shown here: never less than it keeps as one value."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.offers.kubernetes.any_kind.owned_fields import FIELD_MANAGER, configuration

POD = {"metadata": {"labels": {"app": "x"}, "annotations": {"theirs": "1"}}, "spec": {"nodeName": "n"}}
OURS = ("spec", "workers", "pod", "metadata", "labels", "app")


def runner(fields: dict[str, Any], manager: str = FIELD_MANAGER, operation: str = "Update") -> dict[str, Any]:
    entry = {"manager": manager, "operation": operation, "apiVersion": "shop.example/v1", "fieldsV1": fields}
    metadata = {"name": "r", "uid": "u", "resourceVersion": "7", "managedFields": [entry]}
    spec = {"workers": {"pod": POD, "count": 2}, "paused": True}
    return {"apiVersion": "shop.example/v1", "kind": "Runner", "metadata": metadata, "spec": spec}


@pytest.mark.rule("S27", "G15", "S16")
@pytest.mark.parametrize(
    "fields",
    [
        {"f:spec": {".": {}, "f:workers": {}}},
        {"f:spec": {"f:workers": {}}},
        {"f:spec": {".": {}, "f:workers": {".": {}}}},
    ],
    ids=["brought whole", "applied whole", "entered"],
)
@pytest.mark.parametrize("operation", ["Update", "Apply"])
def test_a_map_that_a_server_keeps_as_one_value_is_applied_whole(fields: dict[str, Any], operation: str) -> None:
    item = runner(fields, operation=operation)
    is_entered = bool(fields["f:spec"]["f:workers"])
    said = configuration(item, [OURS])["spec"]
    only = {"workers": {"pod": {"metadata": {"labels": {"app": "x"}}}}}
    assert said == (only if is_entered else {"workers": item["spec"]["workers"]})


@pytest.mark.rule("S27", "G15")
def test_a_map_in_which_anybody_owns_an_entry_is_entered_whoever_brought_it() -> None:
    item = runner({"f:spec": {"f:workers": {}}}, "theirs")
    entered: dict[str, Any] = {"f:spec": {"f:workers": {"f:count": {}}}}
    item["metadata"]["managedFields"] += runner(entered, "others")["metadata"]["managedFields"]
    assert configuration(item, [OURS])["spec"] == {"workers": {"pod": {"metadata": {"labels": {"app": "x"}}}}}
