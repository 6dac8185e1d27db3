"""Functions of Lambda: that they exist, and their tags. Nothing is ever run, and all else Cloud Control keeps."""

from __future__ import annotations

import base64
import importlib
import uuid
from typing import Any, Final

from fractal_sandbox.aws.cloudcontrol.twins.registry import Refused, Twin
from fractal_sandbox.aws.cloudcontrol.twins.service import Model, ServiceTwin

__all__ = ["TWINS"]

_NO_CODE: Final = {"ZipFile": base64.b64encode(b"kept by Cloud Control").decode()}


class _Functions(ServiceTwin):
    type_name = "AWS::Lambda::Function"
    service = "lambda"
    knows = frozenset({"FunctionName", "Arn"})

    def make(self, model: Model, tags: dict[str, str], region: str) -> Model:
        models: Any = importlib.import_module("moto.awslambda.models")
        name = str(model.get("FunctionName") or f"function-{uuid.uuid4().hex[:12]}").rpartition(":")[2]
        if self.tags(name, region) is not None:
            raise Refused("AlreadyExists", f"Function already exist: {name}")
        there = self.backend(region)
        passed: Model = {
            key: model[key] for key in ("Handler", "Runtime", "Description", "Timeout", "MemorySize") if key in model
        }
        wanted: Model = {
            **passed,
            "FunctionName": name,
            "Role": model.get("Role", ""),
            "Code": dict(_NO_CODE),
            "Tags": tags,
        }
        made = models.LambdaFunction(there.account_id, wanted, region, version="$LATEST")
        # Not by its own call, which asks for a role that can be assumed: what refers to what is checked elsewhere.
        there._lambdas._functions[name] = {"latest": made, "versions": []}  # noqa: SLF001
        there._lambdas._arns[made.function_arn] = made  # noqa: SLF001
        return self.describe(name, region)

    def describe(self, identifier: str, region: str) -> Model:
        return {"FunctionName": identifier, "Arn": self._of(identifier, region).function_arn}

    def change(self, identifier: str, before: Model, after: Model, region: str) -> None:
        """Moto gets no change but that of tags."""

    def remove(self, identifier: str, region: str) -> None:
        self.ask(region, "DeleteFunction", FunctionName=identifier)

    def identifiers(self, region: str) -> list[str]:
        return list(self.backend(region)._lambdas._functions)  # noqa: SLF001

    def tags(self, identifier: str, region: str) -> dict[str, str] | None:
        return dict(self._of(identifier, region).tags) if identifier in self.identifiers(region) else None

    def write_tags(self, identifier: str, added: dict[str, str], gone: list[str], region: str) -> None:
        held = self._of(identifier, region).tags
        for key in gone:
            held.pop(key, None)
        held.update(added)

    def identifier_in(self, arn: str) -> str | None:
        kind, _, name = arn.split(":", 5)[5].partition(":")
        return name if kind == "function" and ":" not in name else None

    def _of(self, name: str, region: str) -> Any:
        return self.backend(region)._lambdas._functions[name]["latest"]  # noqa: SLF001


TWINS: Final[dict[str, Twin]] = {_Functions.type_name: _Functions()}
