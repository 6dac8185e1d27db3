"""Lists: selectors, pages, and the forms in which objects are shown. The server's facts again hold on both."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fractal_sandbox.kubernetes.cloud import KubernetesCloud
from tests.sandbox.kubernetes.conftest import CONFIG_MAPS, DEPLOYMENTS, SECRETS, Api, deployment

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"


@pytest.fixture
def five(api: Api, name: str) -> Iterator[str]:
    """Five objects with the label `set`; the value of their label `number` distinguishes them."""
    for number in range(5):
        labels = {"set": name, "number": str(number), **({"odd": ""} if number % 2 else {})}
        api.make(CONFIG_MAPS, {"metadata": {"name": f"{name}-{number}", "labels": labels}})
    yield name
    for number in range(5):
        api.delete(f"{CONFIG_MAPS}/{name}-{number}")


@pytest.mark.parametrize(
    ("selector", "numbers"),
    [
        ("", "01234"),
        ("number=1", "1"),
        ("number==1", "1"),
        ("number!=1", "0234"),
        ("number in (1, 3)", "13"),
        ("number notin (1,3)", "024"),
        ("odd", "13"),
        ("!odd", "024"),
        ("odd,number!=1", "3"),
        ("absent notin (a)", "01234"),
        ("odd=", "13"),
    ],
)
def test_a_label_selector_picks(api: Api, five: str, selector: str, numbers: str) -> None:
    found = api.get(CONFIG_MAPS, labelSelector=",".join(filter(None, [f"set={five}", selector])))
    assert "".join(item["metadata"]["labels"]["number"] for item in found.json["items"]) == numbers


@pytest.mark.parametrize("selector", ["a in (", "=x", "a=b=c", "a=x/y"])
def test_a_selector_that_cannot_be_read_is_refused(api: Api, selector: str) -> None:
    assert api.get(CONFIG_MAPS, labelSelector=selector).outcome == (400, "BadRequest")


def test_a_field_selector_picks_by_name_and_namespace(api: Api, five: str) -> None:
    found = api.get(CONFIG_MAPS, fieldSelector=f"metadata.name={five}-1").json["items"]
    assert [item["metadata"]["name"] for item in found] == [f"{five}-1"]
    everywhere = api.get("/api/v1/configmaps", fieldSelector=f"metadata.namespace=default,metadata.name={five}-2")
    assert [item["metadata"]["name"] for item in everywhere.json["items"]] == [f"{five}-2"]
    assert api.get("/api/v1/configmaps", fieldSelector="metadata.namespace!=default").status == 200
    assert api.get(CONFIG_MAPS, fieldSelector="spec.some=x").outcome == (400, "BadRequest")


def test_pages_show_one_moment(api: Api, five: str) -> None:
    first = api.get(CONFIG_MAPS, limit=2, labelSelector=f"set={five}").json
    assert "remainingItemCount" not in first["metadata"], "it is not returned with a selector"
    api.patch(f"{CONFIG_MAPS}/{five}-3", {"data": {"some": "thing"}})
    names = [item["metadata"]["name"] for item in first["items"]]
    token = first["metadata"]["continue"]
    while token:
        page = api.get(CONFIG_MAPS, limit=2, labelSelector=f"set={five}", **{"continue": token}).json
        names += [item["metadata"]["name"] for item in page["items"]]
        assert page["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        assert all("data" not in item for item in page["items"]), "as it was at the first page"
        token = page["metadata"].get("continue")
    assert names == [f"{five}-{number}" for number in range(5)]


def test_a_malformed_token_is_refused(api: Api) -> None:
    assert api.get(CONFIG_MAPS, limit=2, **{"continue": "garbage"}).outcome == (400, "BadRequest")


def test_an_expired_token_is_gone(person: Api, cluster: KubernetesCloud) -> None:
    for number in range(3):
        person.make(CONFIG_MAPS, {"metadata": {"name": f"c{number}"}})
    first = person.get(CONFIG_MAPS, limit=2).json
    assert first["metadata"]["remainingItemCount"] == 1
    cluster.expire_pages()
    again = person.get(CONFIG_MAPS, limit=2, **{"continue": first["metadata"]["continue"]})
    assert again.outcome == (410, "Expired")


def test_metadata_comes_without_contents(api: Api, name: str) -> None:
    api.make(SECRETS, {"metadata": {"name": name, "labels": {"set": name}}, "stringData": {"password": "hidden"}})
    found = api.get(SECRETS, accept=METADATA.format("List"), labelSelector=f"set={name}")
    assert found.json["kind"] == "PartialObjectMetadataList"
    assert [item["metadata"]["name"] for item in found.json["items"]] == [name]
    assert "data" not in found.json["items"][0]
    one = api.get(f"{SECRETS}/{name}", accept=METADATA.format(""))
    assert set(one.json) == {"kind", "apiVersion", "metadata"}
    api.delete(f"{SECRETS}/{name}")


def test_a_table_has_a_row_for_each(api: Api, name: str) -> None:
    api.make(DEPLOYMENTS, deployment(name, set=name))
    shown = api.get(DEPLOYMENTS, accept=TABLE, labelSelector=f"set={name}").json
    columns = [column["name"] for column in shown["columnDefinitions"]]
    assert columns[:5] == ["Name", "Ready", "Up-to-date", "Available", "Age"]
    assert shown["rows"][0]["cells"][0] == name
    assert shown["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    api.delete(f"{DEPLOYMENTS}/{name}")


def test_the_items_of_a_typed_list_do_not_repeat_their_kind(api: Api, five: str) -> None:
    found = api.get(CONFIG_MAPS, labelSelector=f"set={five}").json
    assert (found["kind"], found["apiVersion"]) == ("ConfigMapList", "v1")
    assert all("kind" not in item for item in found["items"])
    assert api.get(CONFIG_MAPS, accept="text/html").status == 406
