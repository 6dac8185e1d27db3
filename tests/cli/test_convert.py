"""`fractal convert`: what becomes of manifests, what is said about them, and what never gets into a file."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from fractal_cloud.cli.app import app
from fractal_cloud.cli.conversion.objects import Conversion, convert
from fractal_cloud.cli.conversion.reading import objects_in, read
from fractal_cloud.cli.conversion.writing import to_yaml
from fractal_cloud.cli.errors import CommandError
from fractal_cloud.cli.yaml_loader import Loader
from fractal_cloud.model.reference import filled

Json = dict[str, Any]
SHOP = Path(__file__).parents[2] / "examples" / "shop-on-kubernetes" / "manifests"


def converted(text: str, **options: str) -> Conversion:
    return convert(objects_in(text, "x.yaml"), **options)


def document(made: Conversion) -> Json:
    found: Json = yaml.load(to_yaml(made, "ls"), Loader)
    return found


def manifest(kind: str = "ConfigMap", name: str = "a", version: str = "v1", **fields: Any) -> Json:
    metadata = {"name": name, **fields.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def stream(*manifests: Json) -> str:
    """Documents one after the other; JSON is YAML that leaves no doubt what is text."""
    return "\n---\n".join(map(json.dumps, manifests))


def as_object(component: Json) -> Json:
    """The object that a declaration stands for, as it is sent."""
    parameters = filled(component["parameters"], lambda reference: pytest.fail(f"{reference} is no reference"))
    version, _, kind = component["type"].rpartition("/")
    named = {key: parameters[key] for key in ("name", "namespace") if key in parameters}
    rest = {key: value for key, value in parameters.items() if key not in ("name", "namespace", "metadata")}
    return {"apiVersion": version, "kind": kind, "metadata": {**named, **parameters.get("metadata", {})}, **rest}


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(one) for key, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


def test_every_object_of_the_shop_comes_back_as_its_manifest_says() -> None:
    found = read([str(SHOP)])
    made = document(convert(found))
    objects = [as_object(one) for one in made["components"]]
    expected = [without_nulls(one.manifest) for one in found]
    assert len(objects) == len(expected) == 56
    for actual, wanted in zip(objects, expected, strict=True):
        values = actual.pop("stringData", {}), wanted.pop("stringData", {})
        assert set(values[0]) == set(values[1])
        assert actual == wanted


HARD = [
    "${a.b} and $${c} and $$${d.e} and $PATH",
    "#!/bin/sh\n# no comment\necho ${x.y}\n",
    "a\n\n  b\n",
    "trailing \nblank",
    "no",
    "12:30",
    "0x10",
    "1e3",
    "2026-11-19",
    "",
    " lead",
    "tab\there",
    "ünïcode ✓",
    "- a",
    "# a",
    "a: b",
    "null",
]


@pytest.mark.parametrize("text", HARD)
def test_any_text_comes_back_as_it_was(text: str) -> None:
    made = document(converted(stream(manifest(data={"key": text, text or "empty": "value"}))))
    assert as_object(made["components"][0])["data"] == {"key": text, text or "empty": "value"}


COMMENTED = """\
# of all
apiVersion: v1
kind: ConfigMap   # what it is
metadata:
  # of its name
  name: a
  labels: {x: y}  # of labels
data:
  # above one
  # and more
  one: "1"  # beside one
  script: |
    # of the script
    true
  # above two
  two: "# no comment"
  three: [1,
    2] # behind a list
# at the end
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b}
"""


def test_comments_stay_at_what_they_stood_at() -> None:
    text = to_yaml(converted(COMMENTED), "ls")
    lines = [line.strip() for line in text.splitlines()]
    assert lines.index("# of all") < lines.index("- id: configmap-a  # what it is")
    assert lines.index("# of its name") + 1 == lines.index("name: a")
    assert "labels:  # of labels" in lines
    assert lines[lines.index("# above one") + 1 : lines.index("# above one") + 3] == [
        "# and more",
        "one: '1'  # beside one",
    ]
    assert lines.index("# above two") + 1 == lines.index("two: '# no comment'")
    assert lines.index("# at the end") < lines.index("- id: configmap-b")
    assert document(converted(COMMENTED)) == yaml.load(text, Loader)
    assert as_object(document(converted(COMMENTED))["components"][0])["data"]["script"] == "# of the script\ntrue\n"


@pytest.mark.rule("A8")
def test_no_value_of_a_secret_gets_into_the_file() -> None:
    value = base64.b64encode(b"hunter2-secret").decode()
    last = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"data": {"password": value}})}
    secret = manifest(
        "Secret", "db", data={"password": value}, stringData={"url": "hunter2-url"}, metadata={"annotations": last}
    )
    made = converted(stream(secret, manifest("Secret", "db-password", data={"": value})))
    text = to_yaml(made, "ls")
    assert "hunter2" not in text
    assert value not in text
    assert document(made)["components"][0]["parameters"] == {
        "name": "db",
        "data": {"password": {"$secret": "db-password"}},
        "stringData": {"url": {"$secret": "db-url"}},
    }
    assert len(set(made.secrets)) == 3


def test_what_is_in_clear_and_seems_to_be_a_secret_is_said_and_not_quoted() -> None:
    container = {"name": "a", "image": "b", "env": [{"name": "DB_PASSWORD", "value": "hunter2"}]}
    made = converted(stream(manifest("Pod", "p", spec={"containers": [container]})))
    assert "spec.containers[0].env[DB_PASSWORD]" in made.notes[0]
    assert "hunter2" not in made.notes[0]


def test_what_a_cluster_wrote_is_left_out() -> None:
    metadata = {
        "uid": "1", "resourceVersion": "2", "creationTimestamp": "3", "managedFields": [], "finalizers": ["a/b"],
        "annotations": {"deployment.kubernetes.io/revision": "4", "mine": "5"}, "labels": {"fractal.cloud/owner": "x"},
    }  # fmt: skip
    service = manifest("Service", "s", spec={"clusterIP": "10.0.0.1", "ports": []}, metadata=metadata, status={"a": 1})
    made = converted(stream(service))
    assert document(made)["components"][0]["parameters"] == {
        "name": "s",
        "metadata": {"annotations": {"mine": "5"}},
        "spec": {"ports": []},
    }
    assert any("finalizers" in note for note in made.notes)
    assert any("clusterIP" in note for note in made.notes)


def test_what_helm_and_other_objects_make_is_left_out_with_a_note() -> None:
    hook = manifest("Job", "h", "batch/v1", metadata={"annotations": {"helm.sh/hook": "pre-install"}})
    owned = manifest("ReplicaSet", "r", "apps/v1", metadata={"ownerReferences": [{"controller": True}]})
    built = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": ["a.yaml"]}
    made = converted(stream(hook, owned, built, manifest()))
    assert [one.id for one in made.components] == ["configmap-a"]
    assert len(made.notes) == 3


def test_ids_are_legal_unique_and_the_same_whatever_is_converted_with_them() -> None:
    long = "a" * 70
    every = [
        manifest("ConfigMap", "web"),
        manifest("Deployment", "web", "apps/v1"),
        manifest("Deployment", "x.y", "apps/v1"),
        manifest("Job", "j", "batch/v1", metadata={"namespace": "one"}),
        manifest("Job", "j", "batch/v1", metadata={"namespace": "two"}),
        manifest("Ingress", "i", "networking.k8s.io/v1"),
        manifest("Ingress", "i", "extensions/v1beta1"),
        manifest("ConfigMap", long),
    ]
    ids = [one.id for one in converted(stream(*every)).components]
    assert len(set(ids)) == len(ids)
    assert all(len(one) <= 63 for one in ids)
    assert ids[:5] == ["configmap-web", "deployment-web", "deployment-x-y", "job-j-one", "job-j-two"]
    assert [one.id for one in converted(stream(*reversed(every))).components] == ids[::-1]
    assert converted(stream(every[1])).components[0].id == ids[1]


def test_a_namespace_may_be_given_for_what_names_none() -> None:
    made = converted(stream(manifest(), manifest("ClusterRole", "r", "rbac.authorization.k8s.io/v1")), namespace="shop")
    assert [one.parameters.get("namespace") for one in made.components] == ["shop", None]
    assert made.notes == ["namespaces that must be there, because none of these declares them: shop"]


NONSENSE = [
    ("a: [1", "x.yaml:1 is no YAML"),
    ("- 1", "no manifest: an object with apiVersion"),
    ("a: 1", "no manifest: apiVersion and kind"),
    (stream({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "a-"}}), "no metadata.name"),
    (stream(manifest(), manifest()), "ConfigMap 'a' stands twice"),
    ("apiVersion: v1\nkind: Pod\nkind: Job\n", "stands twice in one object"),
    (stream({"apiVersion": "v1", "kind": "List", "items": [1]}), r"items\[0\] is no manifest"),
]


@pytest.mark.parametrize(("text", "said"), NONSENSE, ids=[said for _, said in NONSENSE])
def test_nonsense_is_refused_with_the_place_where_it_stands(text: str, said: str) -> None:
    with pytest.raises(CommandError) as refused:
        converted(text)
    assert said.replace("\\", "") in " ".join([refused.value.cause, *refused.value.details])


def test_the_command_prints_all_or_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(stream(manifest()))
    (tmp_path / "b.json").write_text(json.dumps(manifest(name="b")))
    (tmp_path / ".hidden.yaml").write_text("nonsense: [")
    good = CliRunner().invoke(app, ["convert", str(tmp_path), "--id", "shop", "--cluster", "prod"])
    assert good.exit_code == 0
    declared = yaml.load(good.stdout, Loader)
    assert [one["parameters"] for one in declared["components"]] == [
        {"name": "a", "cluster": "prod"},
        {"name": "b", "cluster": "prod"},
    ]
    (tmp_path / "c.yaml").write_text("nonsense: [")
    bad = CliRunner().invoke(app, ["convert", str(tmp_path)])
    assert bad.exit_code != 0
    assert bad.stdout == ""
    streamed = CliRunner().invoke(app, ["convert", "-"], input=stream(manifest()))
    assert "configmap-a" in streamed.stdout
