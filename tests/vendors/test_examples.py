"""The vendors' own examples are read without error: botocore has some of most operations that the offers read by."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import botocore
import pytest
from botocore.endpoint import Endpoint
from botocore.model import ListShape, MapShape, Shape, StructureShape
from botocore.utils import parse_timestamp

from fractal_cloud.model.sighting import UnreadItem
from fractal_cloud.offers.offer import AnyOffer, Query
from fractal_cloud.offers.registry import installed
from fractal_sandbox import Sandbox
from tests.offers.suites import kinds
from tests.offers.test_identity import reads_of

Count = Callable[[str, str, int], None]
LIVE_SYSTEM = "ls-examples"
AWS = [name for name, (suite, _) in kinds().items() if suite.provider == "aws" and not suite.variant]


@cache
def examples(service: str) -> dict[str, list[dict[str, Any]]]:
    """The examples of a service, by operation; the newest version's."""
    folder = Path(botocore.__file__).parent / "data" / service
    found = sorted(folder.glob("*/examples-1.json"))
    read: dict[str, list[dict[str, Any]]] = json.loads(found[-1].read_text())["examples"] if found else {}
    return read


def as_read(shape: Shape | None, value: Any) -> Any:
    """A value of an example as botocore would have read it: with times."""
    if isinstance(shape, StructureShape) and isinstance(value, dict):
        return {key: as_read(shape.members[key], one) for key, one in value.items() if key in shape.members}
    if isinstance(shape, ListShape) and isinstance(value, list):
        return [as_read(shape.member, one) for one in value]
    if isinstance(shape, MapShape) and isinstance(value, dict):
        return {key: as_read(shape.value, one) for key, one in value.items()}
    return parse_timestamp(value) if shape is not None and shape.type_name == "timestamp" else value


class Replacing:
    """Answers an operation with an example, and notes what is asked."""

    def __init__(self) -> None:
        self.asked: set[tuple[str, str]] = set()
        self.given: tuple[str, str] = ("", "")
        self.output: Any = None

    @contextmanager
    def listening(self, patch: pytest.MonkeyPatch) -> Iterator[None]:
        """See all requests of this process."""
        sends = Endpoint.make_request

        def sending(endpoint: Endpoint, operation: Any, request: Any) -> Any:
            http, parsed = sends(endpoint, operation, request)
            name = (operation.service_model.service_name, operation.name)
            self.asked.add(name)
            if name == self.given and http.status_code < 300:
                return http, {
                    **as_read(operation.output_shape, self.output),
                    "ResponseMetadata": parsed["ResponseMetadata"],
                }
            return http, parsed

        with patch.context() as inner:
            inner.setattr(Endpoint, "make_request", sending)
            yield


@pytest.mark.timeout(300)
@pytest.mark.rule("S0")
@pytest.mark.parametrize("name", AWS)
def test_botocores_examples_are_read(
    name: str, session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: Count
) -> None:
    suite, kind = kinds()[name]
    with suite.stage(session_sandbox, tmp_path, kind) as stage:
        offer = installed()[kind.type]
        stage.world.deploy(LIVE_SYSTEM, *stage.example.components)
        with reads_of(offer, monkeypatch) as reads:
            stage.world.settle()
        cloud, query = reads.asked[-1]
        resource_id = stage.world.component(LIVE_SYSTEM, str(stage.example.declaration["id"]))["resourceId"]
        replacing, number = Replacing(), 0
        with replacing.listening(monkeypatch):
            _read_all(offer, cloud, query, resource_id)
            for service, operation in sorted(replacing.asked):
                for example in examples(service).get(operation, ()):
                    if example.get("output"):  # some are left empty
                        replacing.given, replacing.output = (service, operation), example["output"]
                        _read_all(offer, cloud, query, resource_id)
                        number += 1
    count("aws", f"examples.{kind.type}", number)


def _read_all(offer: AnyOffer, cloud: Any, query: Query, resource_id: str) -> None:
    for one in offer.sightings(cloud, Query(query.names, query.parent_ids, live_systems=query.live_systems)):
        assert not isinstance(one, UnreadItem), one
    offer.read(cloud, resource_id)
