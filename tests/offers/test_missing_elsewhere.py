"""What clouds say of something else that a write refers to, distinguished from what is wrong with the request."""

from __future__ import annotations

import json

import pytest

from fractal_cloud.model.errors import CloudError, Denied, DependencyMissing, Invalid, Unreadable
from fractal_cloud.offers.azure import errors as azure
from fractal_cloud.offers.gcp.errors import GoogleDialect, check_operation
from fractal_cloud.offers.kubernetes import errors as kubernetes
from fractal_cloud.offers.rest import Answer, Call

pytestmark = pytest.mark.rule("S21")
NETWORK = "Invalid value for field 'resource.network': 'n'. The referenced network resource cannot be found."
ACCOUNT = 'pods "web" is forbidden: error looking up service account shop/web: serviceaccount "web" not found'
RIGHTS = (
    'pods is forbidden: User "a" cannot create resource "pods": RBAC: role.rbac.authorization.k8s.io "agent" not found'
)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("InvalidResourceReference", DependencyMissing),
        ("PrincipalNotFound", DependencyMissing),
        ("InvalidRequestFormat", Invalid),
        ("InvalidResourceLocation", Invalid),
    ],
)
def test_azure_by_its_codes(code: str, kind: type[CloudError]) -> None:
    assert azure.kind_of(400, code, "PUT", "Resource x referenced by resource y was not found") is kind


def _google(message: str, *, method: str = "POST", status: int = 400) -> type[CloudError]:
    said = {"error": {"code": status, "message": message, "errors": [{"reason": "invalid", "message": message}]}}
    answer = Answer(Call(method, "instances"), status, {}, json.dumps(said).encode())
    dialect = GoogleDialect(lambda: "token", {})
    return dialect.kind_of(answer, dialect.code_and_message(answer)[0])


@pytest.mark.parametrize("message", [NETWORK, "Network 'default' does not exist"])
def test_google_by_its_words(message: str) -> None:
    assert _google(message) is DependencyMissing
    assert not issubclass(_google(message, method="GET"), DependencyMissing), "a read concludes nothing from it (S0)"


def test_what_is_wrong_with_a_request_to_google_stays_so() -> None:
    assert _google("Invalid value for field 'resource.name': 'A'. Must be a match of regex") is Invalid


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        ("RESOURCE_NOT_FOUND", "The resource 'projects/p/global/networks/n' was not found", DependencyMissing),
        ("INVALID_USAGE", "Network interface must specify a subnet", Invalid),
    ],
)
def test_an_operation_of_google_that_came_to_nothing(code: str, message: str, kind: type[CloudError]) -> None:
    with pytest.raises(CloudError) as raised:
        check_operation({"name": "operation-1", "error": {"errors": [{"code": code, "message": message}]}}, "POST")
    assert type(raised.value) is kind


def _kubernetes(message: str, *, is_read: bool = False) -> type[CloudError]:
    said = {"kind": "Status", "reason": "Forbidden", "message": message, "code": 403}
    return type(kubernetes.error_of(kubernetes.Answer(403, json.dumps(said), "r", "POST pods", is_read)))


def test_kubernetes_by_the_words_of_admission() -> None:
    assert _kubernetes(ACCOUNT) is DependencyMissing
    assert _kubernetes('pods "web" is forbidden: no PriorityClass with name high was found') is DependencyMissing
    assert _kubernetes(ACCOUNT, is_read=True) is Unreadable, "a read concludes nothing from it (S0)"
    assert _kubernetes(RIGHTS) is Denied, "a role of the caller is nothing that the object refers to"
