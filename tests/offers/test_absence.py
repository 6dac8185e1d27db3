"""What proves that a resource does not exist: an answer in the vendor's own format, and nothing else (S0, O17)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from fractal_cloud.model.errors import NotFound, Unreadable
from fractal_cloud.offers.aruba.errors import ArubaDialect
from fractal_cloud.offers.azure.cloud import ArmDialect
from fractal_cloud.offers.gcp.errors import GoogleDialect
from fractal_cloud.offers.hetzner.errors import HetznerDialect
from fractal_cloud.offers.oci.errors import OciDialect
from fractal_cloud.offers.rest import Answer, Call, Dialect

HTML = b"<html><body><h1>404 Not Found</h1><hr>nginx</body></html>"


def _never(*_: Any) -> Any:
    raise AssertionError("nothing is sent here")


DIALECTS: dict[str, tuple[Callable[[], Dialect], Any]] = {
    "aruba": (lambda: ArubaDialect(_never, _never), {"title": "Not Found", "status": 404, "detail": "no such VPC"}),
    "azure": (lambda: ArmDialect(_never, ""), {"error": {"code": "ResourceNotFound", "message": "was not found"}}),
    "gcp": (
        lambda: GoogleDialect(_never, {}),
        {"error": {"code": 404, "message": "was not found", "errors": [{"reason": "notFound"}]}},
    ),
    "hetzner": (HetznerDialect, {"error": {"code": "not_found", "message": "server not found"}}),
    "oci": (lambda: OciDialect(_never), {"code": "NotAuthorizedOrNotFound", "message": "not found"}),
}


def answered(content: bytes) -> Answer:
    return Answer(Call("GET", "/thing", {}), 404, {}, content)


@pytest.mark.rule("S0", "O17")
@pytest.mark.parametrize("provider", DIALECTS)
def test_only_the_vendors_own_404_says_that_something_does_not_exist(provider: str) -> None:
    make, not_found = DIALECTS[provider]
    assert type(make().error_of(answered(json.dumps(not_found).encode()))) is NotFound
    assert type(make().error_of(answered(HTML))) is Unreadable, "a page of something in between proves nothing"
    assert type(make().error_of(answered(b""))) is Unreadable


@pytest.mark.rule("S0", "O17")
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("ResourceNotFound", NotFound),
        ("NotFound", NotFound),
        ("ResourceGroupNotFound", NotFound),
        ("ParentResourceNotFound", NotFound),
        ("InvalidResourceNamespace", Unreadable),
        ("InvalidResourceType", Unreadable),
        ("SomethingNew", Unreadable),
    ],
)
def test_azure_says_not_found_of_more_than_resources(code: str, kind: type[Exception]) -> None:
    content = json.dumps({"error": {"code": code, "message": "no"}}).encode()
    assert type(ArmDialect(_never, "").error_of(answered(content))) is kind
