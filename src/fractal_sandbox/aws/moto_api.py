"""What moto itself answers about a kind of resource, past the knobs: for kinds whose place in its memory is unknown.

Asks by the operations of the descriptor, so that the monitor sees a new kind without a line written for it. Slower than
looking into moto's memory, which `resources.py` does for the kinds it knows.
"""

from __future__ import annotations

import functools
from typing import Any

from moto.core.utils import get_service_model

from fractal_sandbox.aws import PERSON_ACCESS_KEY, accounts
from fractal_sandbox.aws.answer import Answer, read, walk
from fractal_sandbox.aws.descriptors import RESOURCES, SERVICES, Ref, Resource
from fractal_sandbox.aws.request import AwsRequest, with_parameters
from fractal_sandbox.aws.speed import Moto
from fractal_sandbox.calls import Call, Origin

__all__ = ["MotoRefused", "ask", "items", "tags"]


class MotoRefused(RuntimeError):
    """Moto refused a call: with the service's own code and message."""

    def __init__(self, call: str, code: str, message: str) -> None:
        super().__init__(f"moto refuses {call}: {code}: {message}")
        self.code = code
        self.message = message


def items(resource: Resource, region: str) -> dict[str, Any]:
    """Return all resources of a kind by id, as its first listing shows them; nothing is hidden, slow or paged."""
    listing = next(one for one in resource.facts["listings"] if not one["is_by_name"])
    asked, answered = SERVICES[resource.service].facts["cursor"]
    found: dict[str, Any] = {}
    parameters: dict[str, Any] = {}
    while True:
        data = ask(resource.service, region, listing["operation"], parameters)
        for item in walk(data, listing["path"]):
            ref = resource.named(str(item[listing["id"]] if listing["id"] else item), region)
            if ref is not None:
                found[ref.id] = item
        if not data.get(answered):
            return found
        parameters = {asked: data[answered]}


def tags(ref: Ref) -> dict[str, str]:
    """Return the tags of a resource by the operation of its service that reads them."""
    resource = RESOURCES[ref.kind]
    tagging = SERVICES[resource.service].tagging
    arn = resource.arn(ref.id, ref.region, accounts.current())
    answer = ask(resource.service, ref.region, tagging["read"], {tagging["target"]: arn})
    found: Any = next((value for name, value in answer.items() if name.lower() in ("tags", "taglist")), None) or []
    if isinstance(found, dict):
        return {str(key): str(value) for key, value in found.items()}
    return {tag.get("Key", tag.get("key")): tag.get("Value", tag.get("value")) or "" for tag in found}


def ask(service: str, region: str, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return what moto answers to a call, past the knobs and every check; raises where it refuses.

    Taken for empty, a refusal would hide resources from the monitor.
    """
    request = with_parameters(_request(service, region, operation), parameters)
    started: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(status: str, headers: list[tuple[str, str]], _: object = None) -> None:
        started.append((status, headers))

    body = b"".join(_moto()(request.replay(), start_response))
    status, headers = started[-1]
    answer = Answer(int(status.split()[0]), tuple(headers), body)
    found = read(request, answer)
    if not answer.is_success:
        error = found.get("Error") or {}
        raise MotoRefused(f"{service}:{operation}", str(error.get("Code", "")), str(error.get("Message", "")))
    return found


@functools.cache
def _moto() -> Moto:
    return Moto()


def _request(service: str, region: str, operation: str) -> AwsRequest:
    model = get_service_model(service)
    signed = f"{PERSON_ACCESS_KEY}/20200101/{region}/{model.signing_name}/aws4_request"
    environ: dict[str, Any] = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/",
        "QUERY_STRING": "",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": "localhost",
        "HTTP_X_MOTO_ACCOUNT_ID": accounts.current(),
        "HTTP_AUTHORIZATION": f"AWS4-HMAC-SHA256 Credential={signed}, SignedHeaders=host, Signature=0",
        "wsgi.url_scheme": "http",
    }
    origin = Origin.from_user_agent("")
    call = Call(
        "person", PERSON_ACCESS_KEY, service, operation, region, {}, is_write=False, origin=origin, user_agent=""
    )
    return AwsRequest(environ, b"", call, model.operation_model(operation))
