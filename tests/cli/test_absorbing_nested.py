"""Values inside nested parameters are written back at their place, and comments stay where they are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fractal_cloud.cli.absorbing.editing import Editor
from fractal_cloud.cli.absorbing.nodes import Language
from fractal_cloud.cli.absorbing.python import Json, Python
from fractal_cloud.cli.absorbing.yaml_source import Yaml
from fractal_cloud.rules.nested.path import with_value

DECLARED: dict[str, Any] = {"RedrivePolicy": {"maxReceiveCount": 5, "deadLetterTargetArn": "a"}, "Tags": ["x"]}

YAML = """
id: shop
components:
  - id: jobs
    parameters:
      RedrivePolicy:
        maxReceiveCount: 5  # how often
        deadLetterTargetArn: a
      Tags: [x]
"""
PYTHON = """
aws.resource(
    "AWS::SQS::Queue",
    id="jobs",
    RedrivePolicy={
        "maxReceiveCount": 5,  # how often
        "deadLetterTargetArn": "a",
    },
    Tags=["x"],
)
"""
PLACED = PYTHON.replace('id="jobs"', '"jobs"')
JSON = json.dumps({"id": "shop", "components": [{"id": "jobs", "parameters": DECLARED}]}, indent=2)


@pytest.mark.rule("G14")
@pytest.mark.parametrize(("language", "text"), [(Yaml(), YAML), (Python(), PYTHON), (Python(), PLACED), (Json(), JSON)])
def test_a_value_inside_is_written_at_its_place(language: Language, text: str) -> None:
    actual = with_value(DECLARED, "RedrivePolicy.maxReceiveCount", 3)
    places = language.places(text, "shop", "jobs", ["RedrivePolicy"])
    editor = Editor(text, language)
    editor.change(places["RedrivePolicy"], DECLARED["RedrivePolicy"], actual["RedrivePolicy"])
    found = editor.result()
    assert found == text.replace("5", "3")
