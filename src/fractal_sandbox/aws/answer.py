"""Answers in the wire formats of AWS: reading moto's, changing them, and making errors.

An answer can be read into the dictionary an SDK would show, and written back from one, by the vendor's own models, so
that fixes and knobs can change items and fields without knowing the protocol. No rules about resources belong here.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from botocore.parsers import create_parser
from moto.core.model import OperationModel
from moto.core.request import determine_request_protocol
from moto.core.serialize import get_serializer_class

from fractal_sandbox.aws.request import AwsRequest

__all__ = ["Answer", "AwsError", "denied", "error", "error_code", "read", "throttled", "walk", "written"]


class AwsError(Exception):
    """Raised by a fix: the call is refused with this error, in the service's own format."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status


@dataclass(frozen=True)
class Answer:
    """An HTTP answer; `is_replay` marks one that repeats an earlier call's effect instead of having its own."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    is_replay: bool = False

    @property
    def is_success(self) -> bool:
        return self.status < 300


def read(request: AwsRequest, answer: Answer) -> dict[str, Any]:
    """Return the answer as the dictionary that boto3 would show; an error's code is in `["Error"]["Code"]`."""
    operation = _operation(request)
    parser = create_parser(_protocol(request, operation))
    response = {
        "status_code": answer.status,
        "headers": {name.lower(): value for name, value in answer.headers},
        "body": answer.body,
        "context": {"operation_name": operation.name},
    }
    shape: Any = operation.output_shape  # None where the service answers with nothing, which the parser allows
    return dict(parser.parse(response, shape))


def walk(data: Any, path: str) -> Iterator[Any]:
    """Yield what is found at a path of names, such as `Reservations.Instances`, going into every item of every list."""
    name, _, rest = path.partition(".")
    if isinstance(data, list):
        for item in data:
            yield from walk(item, path)
    elif not name:
        yield data
    elif isinstance(data, Mapping) and data.get(name) is not None:
        yield from walk(data[name], rest)


def error_code(request: AwsRequest, answer: Answer) -> str:
    """Return the code of a failed answer, as boto3 would show it."""
    return str(read(request, answer).get("Error", {}).get("Code", ""))


def written(request: AwsRequest, data: Mapping[str, Any], like: Answer | None = None) -> Answer:
    """Write a dictionary as a successful answer to the request, with the headers of another answer if given."""
    operation = _operation(request)
    serializer = get_serializer_class(operation.service_model.service_name, _protocol(request, operation))
    content = {name: value for name, value in data.items() if name != "ResponseMetadata"}
    serialized = serializer(operation_model=operation).serialize(content)
    headers = {name.lower(): value for name, value in like.headers} if like else {"x-amzn-requestid": _request_id()}
    headers.update({name.lower(): str(value) for name, value in serialized["headers"].items()})
    headers.pop("content-length", None)
    body = serialized["body"]
    return Answer(
        int(serialized["status_code"]), tuple(headers.items()), body.encode() if isinstance(body, str) else body
    )


def error(request: AwsRequest, code: str, message: str, status: int) -> Answer:
    """Write an error as the service would."""
    request_id = _request_id()
    service, protocol = _service_and_protocol(request)
    if protocol in ("json", "rest-json"):
        body = json.dumps({"__type": code, "code": code, "message": message})
        headers = {"content-type": "application/x-amz-json-1.1", "x-amzn-errortype": code}
    else:
        body = _xml_error(service, protocol, code, escape(message), request_id)
        headers = {"content-type": "text/xml"}
    headers["x-amzn-requestid"] = headers["x-amz-request-id"] = request_id
    is_head = request.environ.get("REQUEST_METHOD") == "HEAD"
    return Answer(status, tuple(headers.items()), b"" if is_head else body.encode())


def throttled(request: AwsRequest) -> Answer:
    """Write the refusal of a service that is asked too often."""
    service, _ = _service_and_protocol(request)
    if service == "ec2":
        return error(request, "RequestLimitExceeded", "Request limit exceeded.", 503)
    if service in ("s3", "s3control"):
        return error(request, "SlowDown", "Please reduce your request rate.", 503)
    return error(request, "ThrottlingException", "Rate exceeded", 400)


def denied(request: AwsRequest, what: str) -> Answer:
    """Write the refusal of the access control."""
    service, protocol = _service_and_protocol(request)
    if service == "ec2":
        return error(request, "UnauthorizedOperation", f"You are not authorized to perform this operation. {what}", 403)
    if protocol in ("json", "rest-json"):
        return error(request, "AccessDeniedException", what, 400 if protocol == "json" else 403)
    return error(request, "AccessDenied", what, 403)


def _operation(request: AwsRequest) -> OperationModel:
    if request.operation is None:
        raise ValueError("the request names no operation that the models know: pass it on as it is")
    return request.operation


def _protocol(request: AwsRequest, operation: OperationModel) -> str:
    return determine_request_protocol(operation.service_model, request.environ.get("CONTENT_TYPE") or None)


def _service_and_protocol(request: AwsRequest) -> tuple[str, str]:
    if request.operation is None:
        return "s3", "rest-xml"
    return str(request.operation.service_model.service_name), _protocol(request, request.operation)


def _xml_error(service: str, protocol: str, code: str, message: str, request_id: str) -> str:
    detail = f"<Code>{code}</Code><Message>{message}</Message>"
    if protocol == "ec2":
        return f"<Response><Errors><Error>{detail}</Error></Errors><RequestID>{request_id}</RequestID></Response>"
    if service == "s3":
        return f"<Error>{detail}<RequestId>{request_id}</RequestId></Error>"
    return (
        f"<ErrorResponse><Error><Type>Sender</Type>{detail}</Error><RequestId>{request_id}</RequestId></ErrorResponse>"
    )


def _request_id() -> str:
    return str(uuid.uuid4())
