"""A quota or a limit that is used up is recognised on every provider: it is no throttling, no want of rights, no
shortage that passes (S21).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from fractal_cloud.agent.backoff import PERMANENT
from fractal_cloud.model.errors import CloudError, Conflict, Denied, Invalid, LimitReached, Throttled
from fractal_cloud.offers.aruba.errors import ArubaDialect
from fractal_cloud.offers.aws.errors import Answer as AwsAnswer
from fractal_cloud.offers.aws.errors import error_of as aws_error
from fractal_cloud.offers.azure.cloud import ArmDialect
from fractal_cloud.offers.gcp.errors import GoogleDialect, check_operation
from fractal_cloud.offers.hetzner.errors import HetznerDialect
from fractal_cloud.offers.kubernetes.errors import Answer as KubernetesAnswer
from fractal_cloud.offers.kubernetes.errors import error_of as kubernetes_error
from fractal_cloud.offers.oci.errors import OciDialect
from fractal_cloud.offers.rest import Answer, Call, Dialect
from fractal_cloud.offers.vsphere.errors import fault


def _never(*_: Any) -> Any:
    raise AssertionError("nothing is sent here")


def rest(dialect: Dialect, status: int, body: Any) -> CloudError:
    return dialect.error_of(Answer(Call("PUT", "/thing", {}), status, {}, json.dumps(body).encode()))


def aws(code: str, status: int = 400) -> CloudError:
    return aws_error(AwsAnswer("no", code, "r-1", "CreateThing", status, is_read=False))


def azure(status: int, code: str, words: str = "no") -> CloudError:
    return rest(ArmDialect(_never, ""), status, {"error": {"code": code, "message": words}})


def google(http: int, reason: str, words: str = "no", **more: Any) -> CloudError:
    error = {"code": http, "message": words, "errors": [{"reason": reason}] if reason else [], **more}
    return rest(GoogleDialect(_never, {}), http, {"error": error})


def oci(status: int, code: str) -> CloudError:
    return rest(OciDialect(_never), status, {"code": code, "message": "no"})


def hetzner(status: int, code: str) -> CloudError:
    return rest(HetznerDialect(), status, {"error": {"code": code, "message": "no"}})


def aruba(status: int, detail: str) -> CloudError:
    return rest(ArubaDialect(_never, _never), status, {"title": "Bad Request", "status": status, "detail": detail})


def kubernetes(words: str, *causes: str) -> CloudError:
    details = {"causes": [{"reason": one, "message": ""} for one in causes]}
    status = {"kind": "Status", "reason": "Forbidden", "code": 403, "message": words, "details": details}
    return kubernetes_error(KubernetesAnswer(403, json.dumps(status), "", "POST /thing", is_read=False))


def vsphere(name: str) -> CloudError:
    return fault(name, "no", "CreateVM_Task", is_read=False)


RBAC = 'services is forbidden: User "agent" cannot create resource "services" in API group "" in the namespace "shop"'
QUOTA = (
    'services "front" is forbidden: exceeded quota: small, requested: services=1, used: services=5, limited: services=5'
)
DYING = 'services "front" is forbidden: unable to create new content in namespace shop because it is being terminated'
TABLE: dict[str, tuple[CloudError, type[CloudError]]] = {
    "aws: a quota of VPCs": (aws("VpcLimitExceeded"), LimitReached),
    "aws: a quota of processors": (aws("VcpuLimitExceeded"), LimitReached),
    "aws: a quota of databases": (aws("InstanceQuotaExceeded"), LimitReached),
    "aws: a quota of a service": (aws("ServiceQuotaExceededException", 402), LimitReached),
    "aws: a limit of tags": (aws("TagLimitExceeded"), LimitReached),
    "aws: too many calls": (aws("RequestLimitExceeded", 503), Throttled),
    "aws: short of machines": (aws("InsufficientInstanceCapacity", 500), Conflict),
    "azure: a quota": (azure(409, "QuotaExceeded"), LimitReached),
    "azure: a quota of cores": (
        azure(409, "OperationNotAllowed", "Operation could not be completed as it results in exceeding approved Quota"),
        LimitReached,
    ),
    "azure: a limit of networks": (azure(400, "VnetCountLimitReached"), LimitReached),
    "azure: a quota of a cluster": (azure(400, "ErrCode_InsufficientVCPUQuota"), LimitReached),
    "azure: busy": (azure(409, "OperationNotAllowed", "The cluster is being upgraded."), Conflict),
    "azure: short of machines": (azure(409, "AllocationFailed"), Conflict),
    "azure: too many calls": (azure(429, "TooManyRequests"), Throttled),
    "gcp: a quota": (google(403, "quotaExceeded", "Quota 'CPUS' exceeded. Limit: 24.0 in region."), LimitReached),
    "gcp: a quota of a cluster": (
        google(403, "forbidden", "Insufficient regional quota to satisfy request: resource CPUS."),
        LimitReached,
    ),
    "gcp: a quota of a service": (
        google(429, "", "Quota exceeded for total allowable CPU per project per region.", status="RESOURCE_EXHAUSTED"),
        LimitReached,
    ),
    "gcp: a quota of calls": (
        google(
            429, "", "Quota exceeded for quota metric 'Read' and limit 'Read per minute'", status="RESOURCE_EXHAUSTED"
        ),
        Throttled,
    ),
    "gcp: too many calls": (google(403, "rateLimitExceeded"), Throttled),
    "gcp: no rights": (google(403, "forbidden", "Required permission is missing"), Denied),
    "oci: a limit": (oci(400, "LimitExceeded"), LimitReached),
    "oci: a quota": (oci(400, "QuotaExceeded"), LimitReached),
    "oci: too many calls": (oci(429, "TooManyRequests"), Throttled),
    "oci: short of machines": (oci(500, "OutOfHostCapacity"), Conflict),
    "hetzner: a limit": (hetzner(403, "resource_limit_exceeded"), LimitReached),
    "hetzner: too many calls": (hetzner(429, "rate_limit_exceeded"), Throttled),
    "hetzner: short of machines": (hetzner(412, "resource_unavailable"), Conflict),
    "aruba: a quota": (aruba(400, "The quota of VPCs of this project is used up"), LimitReached),
    "aruba: a limit": (aruba(403, "The maximum limit has been reached"), LimitReached),
    "aruba: not yet": (aruba(400, "The VPC is not active"), Conflict),
    "kubernetes: a quota": (kubernetes(QUOTA), LimitReached),
    "kubernetes: a namespace that goes": (kubernetes(DYING), Conflict),
    "kubernetes: the same by its cause": (kubernetes("no", "NamespaceTerminating"), Conflict),
    "kubernetes: a webhook's refusal": (
        kubernetes('admission webhook "policy.example" denied the request: no'),
        Invalid,
    ),
    "kubernetes: no rights": (kubernetes(RBAC), Denied),
    "vsphere: no licences": (vsphere("NotEnoughLicenses"), LimitReached),
    "vsphere: a full pool": (vsphere("InsufficientMemoryResourcesFault"), LimitReached),
    "vsphere: busy": (vsphere("TaskInProgress"), Conflict),
}


@pytest.mark.rule("S21")
@pytest.mark.parametrize("case", TABLE)
def test_a_limit_that_is_reached_is_a_permanent_refusal_and_nothing_else_is(case: str) -> None:
    error, kind = TABLE[case]
    assert type(error) is kind, error
    assert isinstance(error, PERMANENT) is issubclass(kind, PERMANENT)
    assert ("raise the limit" in error.message) is (kind is LimitReached)


@pytest.mark.rule("S21")
def test_an_operation_of_google_that_ran_into_a_quota_is_a_limit() -> None:
    with pytest.raises(LimitReached, match="CPUS"):
        check_operation({"error": {"errors": [{"code": "QUOTA_EXCEEDED", "message": "Quota 'CPUS' exceeded"}]}}, "x")
    with pytest.raises(Throttled):
        check_operation({"error": {"errors": [{"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "no"}]}}, "x")
