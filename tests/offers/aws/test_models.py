"""The SDK's descriptions of its services: all that it makes calls of is read, and nothing of its documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import botocore
import pytest
from botocore.loaders import JSONFileLoader
from botocore.model import ServiceModel

from fractal_cloud.offers.aws.models import Models

DATA = Path(botocore.__file__).parent / "data"


def _without_documentation(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: item for name, item in value.items() if name != "documentation" or not isinstance(item, str)}
        return {name: _without_documentation(item) for name, item in kept.items()}
    return [_without_documentation(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", ["sts/2011-06-15/service-2", "ecs/2014-11-13/service-2", "endpoints"])
def test_a_description_is_read_whole_but_for_its_documentation(name: str, tmp_path: Path) -> None:
    (found,) = DATA.glob(f"{name}.json*")
    path = str(tmp_path / "model")  # read for this test alone: the SDK changes some of what it is handed
    Path(path + found.name.removeprefix(Path(name).name)).write_bytes(found.read_bytes())
    own = JSONFileLoader().load_file(path)
    assert own is not None
    assert Models().load_file(path) == _without_documentation(own)


def test_a_member_that_is_called_documentation_stays(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text('{"documentation": "text", "members": {"documentation": {"shape": "S"}}}')
    assert Models().load_file(str(tmp_path / "model")) == {"members": {"documentation": {"shape": "S"}}}


def test_what_is_not_there_is_reported_as_absent(tmp_path: Path) -> None:
    assert not Models().exists(str(tmp_path / "none"))
    assert Models().load_file(str(tmp_path / "none")) is None


@pytest.mark.parametrize("service", ["s3", "s3control"])
def test_settings_of_a_client_are_as_the_sdk_wants_them(service: str) -> None:
    (found,) = (DATA / service).glob("*/service-2.json*")
    model = ServiceModel(Models().load_file(str(found).partition(".json")[0]), service)
    assert {one.name for one in model.client_context_parameters} >= {"UseArnRegion"}
