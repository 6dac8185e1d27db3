"""The session at Azure: whose credentials, which subscriptions, and what a refusal means."""

from __future__ import annotations

import pytest

from fractal_cloud.model.errors import (
    CloudError,
    Conflict,
    Denied,
    Invalid,
    NotFound,
    Overtaken,
    Protected,
    Throttled,
    Transient,
    Unreadable,
)
from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.azure.arm import Azure
from fractal_cloud.offers.azure.cloud import AzureSession
from fractal_cloud.offers.azure.errors import code_and_words, kind_of
from fractal_cloud.offers.azure.kinds import canonical_id, group_in
from fractal_cloud.offers.azure.vnet import VNET, AzureVnetOffer
from fractal_cloud.offers.azure_login import CLOUDS
from fractal_cloud.offers.call_context import CallContext
from fractal_cloud.offers.offer import Query
from fractal_sandbox import Sandbox
from fractal_sandbox.azure import SUBSCRIPTION
from tests.offers.azure.person import AzurePerson


def test_subscriptions_are_listed_by_id_and_by_name_with_the_default_one(session: AzureSession) -> None:
    assert session.realms() == {"": SUBSCRIPTION, SUBSCRIPTION: SUBSCRIPTION, "sandbox": SUBSCRIPTION}


def test_a_subscription_that_is_not_reached_is_said_so(session: AzureSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_SUBSCRIPTION_ID", "11111111-0000-0000-0000-000000000000")
    with pytest.raises(Denied, match="which these credentials do not reach"):
        session.realms()


def test_without_credentials_the_error_says_what_to_give(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDENTITY_HEADER", "nobody")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Denied, match="give the agent credentials that azure-identity can find"):
        AzureSession().realms()
    assert sandbox.azure.calls.count(operation="subscriptions") == 0


def test_every_cloud_of_the_vendor_has_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FRACTAL_AZURE_ENDPOINT", raising=False)
    for name, (endpoint, _) in CLOUDS.items():
        monkeypatch.setenv("AZURE_CLOUD", name)
        assert AzureSession()._client.base == endpoint
    monkeypatch.setenv("AZURE_CLOUD", "AZURE_MOON")
    with pytest.raises(Denied, match=r"AZURE_MOON.*must be one of"):
        AzureSession()
    monkeypatch.setenv("AZURE_CLOUD", "AZURE_CHINA_CLOUD")
    monkeypatch.setenv("FRACTAL_AZURE_ENDPOINT", "https://management.local.azurestack.external/")
    assert AzureSession()._client.base == "https://management.local.azurestack.external"


@pytest.mark.rule("S0")
def test_a_group_that_is_not_there_is_empty_and_a_subscription_that_is_not_is_unreadable(session: AzureSession) -> None:
    nowhere = session.at(Scope("azure", SUBSCRIPTION, "nowhere"))
    assert list(AzureVnetOffer().sightings(nowhere, Query())) == []
    assert AzureVnetOffer().read(nowhere, nowhere.id_of(VNET, "net")) is None


@pytest.mark.rule("S0")
@pytest.mark.parametrize(
    ("refused", "error"),
    [
        ({"status": 404, "code": "SubscriptionNotFound"}, Denied),
        ({"status": 404, "code": "InvalidResourceNamespace"}, Unreadable),
        ({"status": 403, "code": "AuthorizationFailed"}, Denied),
        ({"status": 429, "code": "TooManyRequests"}, Throttled),
        ({"status": 500, "code": "InternalServerError"}, Unreadable),
        ({"cut": True}, Unreadable),
    ],
)
def test_a_list_that_is_refused_is_never_taken_for_empty(
    cloud: Azure, sandbox: Sandbox, refused: dict[str, object], error: type[CloudError], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fractal_cloud.offers.rest.READ_BACKOFF", (0.0, 0.0))
    sandbox.azure.knobs.fail(operation="list*", times=None, **refused)
    with pytest.raises(error):
        list(AzureVnetOffer().sightings(cloud, Query()))


def test_the_retry_after_of_azure_is_reported(cloud: Azure, sandbox: Sandbox) -> None:
    sandbox.azure.knobs.throttle(next_calls=1)
    with pytest.raises(Throttled) as raised:
        list(cloud.list(VNET))
    assert raised.value.after_seconds == 1.0


@pytest.mark.parametrize(
    ("status", "code", "method", "kind"),
    [
        (409, "AnotherOperationInProgress", "PUT", Conflict),
        (409, "ScopeLocked", "DELETE", Protected),
        (409, "StorageAccountAlreadyTaken", "PUT", Invalid),
        (404, "ResourceGroupNotFound", "PUT", Conflict),
        (404, "ResourceGroupNotFound", "DELETE", NotFound),
        (400, "InUseSubnetCannotBeDeleted", "DELETE", Conflict),
        (400, "InvalidParameter", "PUT", Invalid),
        (401, "ExpiredAuthenticationToken", "GET", Denied),
        (412, "PreconditionFailed", "PUT", Overtaken),
        (429, "RetryableErrorDueToAnotherOperation", "PATCH", Conflict),
        (503, "ServiceUnavailable", "PUT", Transient),
        (0, "", "PUT", Transient),
    ],
)
def test_a_refusal_is_classified_by_its_code_where_that_says_more(
    status: int, code: str, method: str, kind: type[CloudError]
) -> None:
    assert kind_of(status, code, method) is kind


def test_refusals_are_understood_in_both_envelopes() -> None:
    details = [{"code": "Inner", "message": "because of this."}]
    assert code_and_words({"error": {"code": "Outer", "message": "No.", "details": details}}) == (
        "Outer",
        "No; because of this",
    )
    assert code_and_words({"code": "Flat", "message": "No."}) == ("Flat", "No")
    assert code_and_words(None) == ("", "")


def test_an_id_has_one_spelling() -> None:
    as_azure_writes_it = (
        "/subscriptions/AB/resourcegroups/Shop/providers/microsoft.network/virtualnetworks/Net/subnets/A"
    )
    spelled = "/subscriptions/ab/resourceGroups/shop/providers/Microsoft.Network/virtualNetworks/net/subnets/a"
    assert canonical_id(as_azure_writes_it) == spelled
    assert group_in(as_azure_writes_it) == "shop"


@pytest.mark.rule("C7")
def test_a_write_says_who_it_is_for_and_keeps_the_vendors_request_id(
    cloud: Azure, sandbox: Sandbox, person: AzurePerson
) -> None:
    path = cloud.id_of(VNET, "net")
    with cloud.calling_as(CallContext("ls-a", "net", "deploy")) as act:
        body = {"location": "westeurope", "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}}
        cloud.put(path, VNET.version, {**body, "tags": {"managed-by": "fractal-cloud", "fractal-cloud-owner": "ls-a"}})
    assert len(act.request_ids) == 1
    assert len(act.request_ids[0]) == 36
    [call] = sandbox.azure.calls.find(operation="createOrUpdate*")
    assert (call.origin.live_system, call.origin.component, call.origin.reason) == ("ls-a", "net", "deploy")
    assert person.find(path) is not None
