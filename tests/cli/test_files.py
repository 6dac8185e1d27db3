"""Declarations from files, and what is said about bad ones."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from fractal_cloud.cli.errors import CommandError, Exit
from fractal_cloud.cli.files import load

PYTHON = """
from fractal_cloud import LiveSystem, network_and_compute as nc
from {beside} import BLOCK

net = nc.aws.vpc(id="net", region="eu-west-1", cidr_block=BLOCK)
b = LiveSystem(id="ls-b", components=[net])
also_b = b
a = LiveSystem(id="ls-a", components=[])
"""


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def refusal(file: str, *only: str) -> CommandError:
    with pytest.raises(CommandError) as caught:
        load(file, only)
    assert caught.value.code is Exit.USAGE
    return caught.value


def test_python_files_declare_every_live_system_bound_at_their_top_in_order(tmp_path: Path) -> None:
    write(tmp_path, "beside_it.py", 'BLOCK = "10.0.0.0/16"')
    file = write(tmp_path, "team.py", PYTHON.format(beside="beside_it"))
    before = list(sys.path)
    assert [declared.id for declared in load(file)] == ["ls-b", "ls-a"]
    assert [declared.id for declared in load(file, ["ls-a"])] == ["ls-a"]
    assert load(file)[0].document["components"][0]["parameters"]["cidrBlock"] == "10.0.0.0/16"
    assert sys.path == before


def test_yaml_files_may_hold_several_documents(tmp_path: Path) -> None:
    file = write(tmp_path, "all.yml", "id: ls-a\ncomponents: []\n---\n---\nid: ls-b\ncomponents: []\n")
    assert [(declared.id, declared.source) for declared in load(file)] == [
        ("ls-a", f"{file} (1)"),
        ("ls-b", f"{file} (2)"),
    ]


def test_yaml_is_read_as_people_mean_it(tmp_path: Path) -> None:
    """In YAML 1.1 these would be false, a date, 750 seconds and an octal number."""
    text = "id: ls\ncomponents:\n  - {a: no, b: 2024-01-02, c: 12:30, d: 010, e: 0o17, f: true, g: ~, h: 1.5, i: on}\n"
    [found] = load(write(tmp_path, "x.yaml", text))
    assert found.document["components"] == [
        {"a": "no", "b": "2024-01-02", "c": "12:30", "d": 10, "e": 15, "f": True, "g": None, "h": 1.5, "i": "on"}
    ]


def test_yaml_keeps_anchors_and_merges(tmp_path: Path) -> None:
    text = "id: ls\nbase: &base {a: 1}\ncomponents:\n  - {<<: *base, b: 2}\n"
    [found] = load(write(tmp_path, "x.yaml", text))
    assert found.document["components"] == [{"a": 1, "b": 2}]


def test_json_files_hold_one_or_a_list(tmp_path: Path) -> None:
    one = {"id": "ls-a", "components": []}
    assert load(write(tmp_path, "one.json", json.dumps(one)))[0].document == one
    both = load(write(tmp_path, "two.json", json.dumps([one, {**one, "id": "ls-b"}])))
    assert [declared.id for declared in both] == ["ls-a", "ls-b"]


def test_standard_input_is_yaml_or_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"id": "ls-a", "components": []}'))
    assert load("-")[0].id == "ls-a"


@pytest.mark.parametrize(
    ("name", "text", "cause"),
    [
        ("x.yaml", "id: ls\ncomponents: [\n", "x.yaml:3:1: "),
        ("x.yaml", "id: ls\nid: other\n", "x.yaml:2:1: the key 'id' stands twice in one object"),
        ("x.yaml", "- 1\n", "x.yaml: is no declaration"),
        ("x.yaml", "!!python/object:os.system {}\n", "x.yaml:1:1: could not determine a constructor"),
        ("x.yaml", "components: []\n", "x.yaml: has no id"),
        ("x.yaml", "", "x.yaml: declares no LiveSystem"),
        ("x.json", '{"id": "ls",\n "x": }', "x.json:2:7: Expecting value"),
        ("x.json", '{"id": "ls", "id": "b"}', "x.json: has the key 'id' twice in one object"),
        ("x.json", "[" * 100_000, "x.json"),
        ("x.py", "x = (\n", "x.py:1: "),
        ("x.py", "\n\n1 / 0\n", "x.py:3: ZeroDivisionError: division by zero"),
        ("x.py", "import sys\nsys.exit(3)\n", "x.py:2: SystemExit: 3"),
        ("x.py", "x = 1\n", "x.py: declares no LiveSystem"),
        ("x.txt", "", "x.txt: is neither .py, .yaml, .yml nor .json"),
        ("x.yaml", "id: a\n---\nid: a\n", "x.yaml: declares 'a' more than once"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(tmp_path: Path, name: str, text: str, cause: str) -> None:
    cause = refusal(write(tmp_path, name, text)).cause
    assert cause.startswith(str(tmp_path))
    assert cause in cause


def test_a_refused_declaration_in_python_is_reported_with_its_line_and_all_its_errors(tmp_path: Path) -> None:
    text = (
        "from fractal_cloud import network_and_compute as nc\n\n"
        'net = nc.aws.vpc(id="net", region=5, cidr_block="10.0.0.1/16")\n'
    )
    error = refusal(write(tmp_path, "x.py", text))
    assert error.cause.endswith("x.py:3: the declaration is refused")
    assert [detail.partition(":")[0] for detail in error.details] == ["AwsVpc[net].region", "AwsVpc[net].cidr_block"]


def test_a_file_that_is_not_there_or_not_text(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in refusal(str(tmp_path / "gone.yaml")).cause
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe")
    assert "is not UTF-8" in refusal(str(tmp_path / "x.yaml")).cause


def test_only_names_that_the_file_declares(tmp_path: Path) -> None:
    error = refusal(write(tmp_path, "x.yaml", "id: ls-a\n"), "ls-b")
    assert "does not declare 'ls-b'" in error.cause
    assert error.advice == "It declares 'ls-a'."
