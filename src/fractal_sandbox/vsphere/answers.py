"""What a vCenter says by itself: its refusals, over SOAP and REST, and the versions it speaks."""

from __future__ import annotations

import json
from xml.sax.saxutils import escape

from fractal_sandbox.rest.routes import Reply
from fractal_sandbox.vsphere.simulator import ENVELOPE

__all__ = ["fault", "rest_refusal", "versions"]


def fault(name: str, words: str, /, **fields: str | tuple[str, str]) -> Reply:
    """A SOAP fault by its name, with its fields in their order; a pair is the type and the id of an object."""
    inner = "".join(_field(field, value) for field, value in fields.items())
    detail = f'<detail><{name}Fault xmlns="urn:vim25" xsi:type="{name}">{inner}</{name}Fault></detail>'
    content = f"<faultcode>ServerFaultCode</faultcode><faultstring>{escape(words)}</faultstring>{detail}"
    body = ENVELOPE.format(f"<soapenv:Fault>{content}</soapenv:Fault>")
    return Reply(500, body.encode(), (("Content-Type", "text/xml"),), name)


def _field(name: str, value: str | tuple[str, str]) -> str:
    kind, text = ("", value) if isinstance(value, str) else (f' type="{value[0]}"', value[1])
    return f"<{name}{kind}>{escape(text)}</{name}>"


def rest_refusal(status: int, code: str, words: str) -> Reply:
    """A refusal of the REST door."""
    error = {"type": f"com.vmware.vapi.std.errors.{code}", "value": {"messages": [{"default_message": words}]}}
    return Reply(status, json.dumps(error).encode(), (("Content-Type", "application/json"),), code)


def versions(version: str) -> Reply:
    """The versions of the API that a client may speak."""
    content = (
        '<?xml version="1.0" encoding="UTF-8"?><namespaces version="1.0"><namespace><name>urn:vim25</name><version>'
        f"{version}</version><priorVersions><version>6.5</version></priorVersions></namespace></namespaces>"
    )
    return Reply(200, content.encode(), (("Content-Type", "text/xml"),))
