"""Reading an AWS request from the wire, and writing one for moto.

The vendor's own models name the operation and its parameters, for all protocols alike (query, JSON, REST), so that
everything behind this file works with parsed calls. What a call does to a resource does not belong here.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

from botocore.serialize import create_serializer
from moto.core.model import OperationModel
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.request import Request, determine_request_protocol
from moto.core.routing import get_service_router
from moto.core.utils import get_service_model
from werkzeug.exceptions import HTTPException

from fractal_sandbox.aws import REGION
from fractal_sandbox.aws.classifying import is_read
from fractal_sandbox.calls import Actor, Call, Origin
from fractal_sandbox.http_server import Environ

__all__ = ["AwsRequest", "parse", "with_parameters"]

_CREDENTIAL = re.compile(r"Credential=([^/]+)/[^/]+/([^/]+)/([^/]+)/")
# Signing names that differ from the names of the vendor's models.
_SIGNING_NAMES = {
    "cloudcontrolapi": "cloudcontrol",
    "elasticloadbalancing": "elbv2",
    "s3express": "s3",
    "tagging": "resourcegroupstaggingapi",
}


@dataclass(frozen=True)
class AwsRequest:
    """A request as it arrived, and the call it makes; `operation` is None where the vendor's models do not know it."""

    environ: Environ
    body: bytes
    call: Call
    operation: OperationModel | None

    def replay(self) -> Environ:
        """Return an environment that can be handed to a WSGI application, as often as needed."""
        environ = dict(self.environ)
        environ["wsgi.input"] = io.BytesIO(self.body)
        environ["CONTENT_LENGTH"] = str(len(self.body))
        return environ


def parse(environ: Environ, actor_of: Callable[[str], Actor]) -> AwsRequest:
    """Read a request. Never fails: what cannot be understood goes on to moto as it is."""
    body: bytes = environ["wsgi.input"].read()
    unknown = AwsRequest(environ, body, _unknown_call(environ, actor_of), None)
    service = unknown.call.service
    if not service:
        return unknown
    try:
        operation, parameters = _operation(service, unknown.replay())
    except (HTTPException, NotImplementedError, LookupError, ValueError):
        return unknown
    is_write = not is_read(service, operation.name)
    call = replace(unknown.call, operation=operation.name, parameters=parameters, is_write=is_write)
    return replace(unknown, call=call, operation=operation)


def _unknown_call(environ: Environ, actor_of: Callable[[str], Actor]) -> Call:
    """Return the call as far as its headers describe it: a write, until the models say otherwise."""
    access_key, region, service = _credential(environ)
    user_agent = environ.get("HTTP_USER_AGENT", "")
    return Call(
        actor=actor_of(access_key),
        access_key=access_key,
        service=service,
        operation=environ.get("HTTP_X_AMZ_TARGET") or f"{environ['REQUEST_METHOD']} {environ.get('PATH_INFO', '')}",
        region=region,
        parameters={},
        is_write=True,
        origin=Origin.from_user_agent(user_agent),
        user_agent=user_agent,
    )


def with_parameters(request: AwsRequest, parameters: Mapping[str, Any], operation: str | None = None) -> AwsRequest:
    """Return the same caller's request with other parameters, or for another operation of the same service."""
    assert request.operation is not None
    model = request.operation
    if operation is not None:
        model = get_service_model(request.call.service).operation_model(operation)
    protocol = determine_request_protocol(model.service_model, request.environ.get("CONTENT_TYPE") or None)
    written = create_serializer(protocol, include_validation=False).serialize_to_request(dict(parameters), model)
    body = written["body"]
    if isinstance(body, dict):
        body = urlencode(body)
    if isinstance(body, str):
        body = body.encode()
    environ = dict(request.environ)
    query = urlencode(written.get("query_string") or {}, doseq=True)
    path = written["url_path"]
    if "?" in path:  # the fixed part of a REST path, such as `?tagging`
        path, _, fixed = path.partition("?")
        query = "&".join(part for part in (fixed, query) if part)
    uri = f"{path}?{query}" if query else path
    environ.update(
        REQUEST_METHOD=written["method"], PATH_INFO=unquote(path), QUERY_STRING=query, RAW_URI=uri, REQUEST_URI=uri
    )
    for name, value in written["headers"].items():
        key = name.upper().replace("-", "_")
        environ["CONTENT_TYPE" if key == "CONTENT_TYPE" else f"HTTP_{key}"] = value
    call = replace(
        request.call,
        operation=model.name,
        parameters=dict(parameters),
        is_write=request.call.is_write if operation is None else not is_read(request.call.service, model.name),
    )
    return AwsRequest(environ, bytes(body), call, model)


def _credential(environ: Environ) -> tuple[str, str, str]:
    header = environ.get("HTTP_AUTHORIZATION", "")
    if not header:
        # A presigned address carries the same words in its query.
        query = dict(parse_qsl(environ.get("QUERY_STRING", "")))
        header = f"Credential={query.get('X-Amz-Credential', '')}"
    match = _CREDENTIAL.search(header)
    if not match:
        return "", REGION, ""
    access_key, region, service = match.groups()
    if service == "s3" and environ.get("PATH_INFO", "").startswith("/v20180820/"):
        service = "s3control"
    return access_key, region, _SIGNING_NAMES.get(service, service)


def _operation(service: str, environ: Environ) -> tuple[OperationModel, dict[str, Any]]:
    request = Request(environ)
    operation, uri_parameters = get_service_router(service).match(request)
    protocol = determine_request_protocol(operation.service_model, request.content_type)
    parsed = PROTOCOL_PARSERS[protocol](operation, map_type=dict).parse(
        {
            "method": request.method,
            "values": request.values,
            "headers": request.headers,
            "body": request.data,
            "url_path": request.path,
            "url_params": uri_parameters,
        }
    )
    return operation, dict(parsed or {})
