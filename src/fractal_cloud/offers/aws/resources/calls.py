"""Cloud Control's calls and answers, in this product's terms. What is called when, and why, does not belong here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fractal_cloud.model.errors import (
    CloudError,
    Conflict,
    Denied,
    Invalid,
    LimitReached,
    NotFound,
    Throttled,
    Transient,
    Unreadable,
)
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.errors import Answer, error_of
from fractal_cloud.offers.refusals import refusal

SERVICE: Final = "cloudcontrol"
TAGGING: Final = "resourcegroupstaggingapi"
Properties = dict[str, Any]
Patch = list[dict[str, Any]]
_PAGE: Final = 100
_NO_TOKEN: Final = re.compile(r"[^-A-Za-z0-9+/=]")
_UNDER_WAY: Final = frozenset({"PENDING", "IN_PROGRESS", "CANCEL_IN_PROGRESS"})
CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"

# https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-test-contract-errors.html
_FAILURES: Final[Mapping[str, type[CloudError]]] = {
    "AccessDenied": Denied,
    "AlreadyExists": Conflict,
    "InternalFailure": Transient,
    "InvalidCredentials": Denied,
    "InvalidRequest": Invalid,
    "NetworkFailure": Transient,
    "NotFound": NotFound,
    "NotStabilized": Conflict,
    "NotUpdatable": Invalid,
    "ResourceConflict": Conflict,
    "ServiceInternalError": Transient,
    "ServiceLimitExceeded": LimitReached,
    "ServiceTimeout": Transient,
    "Throttling": Throttled,
    "UnauthorizedTaggingOperation": Denied,
    "GeneralServiceException": Invalid,
}
"""What the error code of a failed request means. What is over has had its effect or none: nothing of it is unknown."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a request is. ``identifier``: of its resource, empty where AWS does not say it yet."""

    type_name: str
    operation: str
    status: str
    token: str
    identifier: str = ""
    code: str = ""
    message: str = ""

    @property
    def is_under_way(self) -> bool:
        """Whether AWS is still at work on it."""
        return self.status in _UNDER_WAY

    @property
    def has_failed(self) -> bool:
        """Whether it is over, and did not do what was asked."""
        return not self.is_under_way and self.status != "SUCCESS"

    def error(self) -> CloudError:
        """Why it failed. What blocks a deletion may go away by itself; what blocks another write does not.

        A creation that failed is over: whatever the reason, the next try is a new one.
        """
        kind = _FAILURES.get(self.code, Conflict if self.status == "CANCEL_COMPLETE" else Invalid)
        if (self.operation == DELETE and kind is Invalid) or (self.operation == CREATE and kind is Transient):
            kind = Conflict
        call = f"{self.operation.capitalize()}Resource"
        return refusal(kind, self.message or self.status, provider="aws", code=self.code, call=call)


def get(cloud: Aws, type_name: str, identifier: str) -> Properties | None:
    """The properties of one resource; None where AWS says that it does not exist."""
    answer = cloud.find(SERVICE, "get_resource", TypeName=type_name, Identifier=identifier)
    return None if answer is None else _properties(answer.get("ResourceDescription"), identifier)


def listed(cloud: Aws, type_name: str, model: Mapping[str, Any]) -> Iterator[tuple[str, Properties]]:
    """The identifiers of all resources of a type, in a parent where the type wants one, and what the list says more."""
    within = {"ResourceModel": json.dumps(dict(model))} if model else {}
    pages = cloud.pages(
        SERVICE, "list_resources", "ResourceDescriptions", TypeName=type_name, MaxResults=_PAGE, **within
    )
    for page in pages:
        for one in page:
            identifier = one.get("Identifier")
            if not isinstance(identifier, str) or not identifier:
                raise Unreadable(f"ListResources shows a {type_name} without an identifier: nothing is decided from it")
            yield identifier, _properties(one, identifier) if one.get("Properties") else {}


def create(cloud: Aws, type_name: str, state: Properties, token: str) -> Progress:
    """Have a resource made; the same token is the same request for 36 hours."""
    text = json.dumps(state, ensure_ascii=False)
    given = {"ClientToken": client_token(token)} if token else {}
    return _progress(cloud.call(SERVICE, "create_resource", TypeName=type_name, DesiredState=text, **given))


def update(cloud: Aws, type_name: str, identifier: str, patch: Patch) -> Progress:
    """Have a resource changed."""
    text = json.dumps(patch, ensure_ascii=False)
    return _progress(
        cloud.call(SERVICE, "update_resource", TypeName=type_name, Identifier=identifier, PatchDocument=text)
    )


def delete(cloud: Aws, type_name: str, identifier: str) -> Progress | None:
    """Have a resource deleted; None where it is not there."""
    answer = cloud.find(SERVICE, "delete_resource", TypeName=type_name, Identifier=identifier)
    return None if answer is None else _progress(answer)


def status(cloud: Aws, token: str) -> Progress | None:
    """How far a request is; None where AWS does not know it any more."""
    answer = cloud.find(SERVICE, "get_resource_request_status", RequestToken=token)
    return None if answer is None else _progress(answer)


def under_way(cloud: Aws) -> Sequence[Progress]:
    """Every request in this account and region that AWS is at work on, whoever made it."""
    wanted = {"Operations": [CREATE, UPDATE, DELETE], "OperationStatuses": ["PENDING", "IN_PROGRESS"]}
    key = "ResourceRequestStatusSummaries"
    pages = cloud.pages(SERVICE, "list_resource_requests", key, MaxResults=_PAGE, ResourceRequestStatusFilter=wanted)
    return [_event(one) for page in pages for one in page]


def write_tags(cloud: Aws, operation: str, arn: str, **tags: Any) -> None:
    """Change single tags by the tagging API, which says inside a successful answer what it could not do."""
    answer = cloud.call(TAGGING, operation, ResourceARNList=[arn], **tags)
    for failed in (answer.get("FailedResourcesMap") or {}).values():
        raise error_of(
            Answer(
                message=str(failed.get("ErrorMessage") or ""),
                code=str(failed.get("ErrorCode") or ""),
                request_id=str(answer.get("ResponseMetadata", {}).get("RequestId") or ""),
                operation=operation.title().replace("_", ""),
                status=int(failed.get("StatusCode") or 400),
                is_read=False,
            )
        )


def client_token(token: str) -> str:
    """A token in the letters that Cloud Control takes."""
    return _NO_TOKEN.sub("-", token)[:128]


def _properties(description: Any, identifier: str) -> Properties:
    text = description.get("Properties") if isinstance(description, Mapping) else None
    try:
        found = json.loads(text or "")
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unreadable(f"the properties of {identifier!r} are no JSON object: nothing is decided from them")
    return found


def _progress(answer: Mapping[str, Any]) -> Progress:
    event = answer.get("ProgressEvent")
    if not isinstance(event, Mapping) or not event.get("OperationStatus"):
        raise Transient(
            "Cloud Control's answer has no ProgressEvent: whether it took effect is unknown until it is read"
        )
    return _event(event)


def _event(event: Mapping[str, Any]) -> Progress:
    return Progress(
        type_name=str(event.get("TypeName") or ""),
        operation=str(event.get("Operation") or ""),
        status=str(event.get("OperationStatus") or ""),
        token=str(event.get("RequestToken") or ""),
        identifier=str(event.get("Identifier") or ""),
        code=str(event.get("ErrorCode") or ""),
        message=str(event.get("StatusMessage") or ""),
    )
