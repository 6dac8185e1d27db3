"""The OpenAPI document against the app: whatever is sent, the answer is one it describes, and never a crash."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import booleans
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from fractal_cloud.control.app import create_app
from fractal_cloud.control.settings import ControlSettings
from tests.api.conftest import TOKEN, Api, make_client, subnet, vpc

HEADERS = {"Authorization": f"Bearer {TOKEN}"}
KNOWN = {"id": "ls-a", "componentId": "net"}
SHARDS = 4
EXAMPLES = 10
CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
]


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The document of an app with something in it, whose long polls and streams end at once."""
    folder = tmp_path_factory.mktemp("openapi")
    with make_client(folder) as client:
        api = Api(client)
        api.put("ls-a", vpc(), subnet())
        api.settle(("ls-a", "net"))
    app = create_app(ControlSettings(data_dir=folder, admin_token=TOKEN, cycle_seconds=600.0))
    app.state.store.signals.close()
    yield schemathesis.openapi.from_asgi("/openapi.json", app, headers=HEADERS)
    app.state.store.close()


@pytest.mark.rule("C1")
@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_answer_is_one_the_document_describes(described: Any, shard: int) -> None:
    operations = [found.ok() for found in described.get_all_operations()]
    assert len(operations) > 30
    for operation in operations[shard::SHARDS]:
        _examine(operation)


def _examine(operation: Any) -> None:
    @given(case=operation.as_strategy(), is_known=booleans())
    @settings(
        max_examples=EXAMPLES,
        phases=[Phase.explicit, Phase.generate],
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def examine(case: Any, is_known: bool) -> None:
        if is_known and case.path.startswith("/livesystems/{id}"):
            case.path_parameters.update({name: KNOWN[name] for name in KNOWN if name in case.path_parameters})
        case.call_and_validate(headers=HEADERS, checks=CHECKS)

    examine()


def test_every_route_of_the_contract_is_described(api: Api) -> None:
    paths = api.get("/openapi.json")["paths"]
    for method, path in (
        ("post", "/livesystems"),
        ("put", "/livesystems/{id}"),
        ("get", "/livesystems"),
        ("get", "/livesystems/{id}"),
        ("delete", "/livesystems/{id}"),
        ("post", "/livesystems/{id}/plan"),
        ("get", "/livesystems/{id}/mutations/{mutationId}"),
        ("get", "/livesystems/{id}/components"),
        ("get", "/livesystems/{id}/components/{componentId}"),
        ("post", "/livesystems/{id}/force-push"),
        ("post", "/livesystems/{id}/components/{componentId}/force-push"),
        ("post", "/livesystems/{id}/components/{componentId}/glass"),
        ("get", "/livesystems/{id}/components/{componentId}/glass"),
        ("post", "/livesystems/{id}/components/{componentId}/transfer"),
        ("get", "/livesystems/{id}/components/{componentId}/journal"),
        ("get", "/resources"),
        ("get", "/resources/{key}"),
        ("get", "/livesystems/{id}/events"),
        ("get", "/events"),
        ("get", "/offers"),
        ("get", "/metrics"),
    ):
        assert method in paths[path], (method, path)
        assert "default" in paths[path][method]["responses"], (method, path)
