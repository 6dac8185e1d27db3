"""Schemas of AWS whose parts refer to properties that nobody declares are checked all the same."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.model.errors import DeclarationError
from fractal_cloud.offers.installed_types import InstalledTypes
from fractal_cloud.offers.registry import installed
from fractal_cloud.offers.validation import check

APPLICATION = "AWS::OpenSearchService::Application"


def declared(arn: object) -> dict[str, Any]:
    values = {"region": "eu-west-1", "Name": "logs", "DataSources": [{"DataSourceArn": arn}]}
    return {"id": "shop", "components": [{"id": "logs", "type": APPLICATION, "parameters": values}]}


def test_a_part_that_refers_to_what_only_aws_sets_is_checked() -> None:
    types = InstalledTypes.of(installed())
    assert "Arn" not in types[APPLICATION].parameter_schema["properties"]
    assert check(declared("arn:aws:es:eu-west-1:123456789012:domain/logs"), types).components
    with pytest.raises(DeclarationError, match="DataSourceArn"):
        check(declared(5), types)
