"""AWS's contract: each service when it is first asked for, and Cloud Control's documents by their types' schemas."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from botocore.exceptions import UnknownServiceError

from tests.vendors.cloud_control import ResourceTypes
from tests.vendors.contract import Contract, Exchange, said
from tests.vendors.tables import aws


class AwsContract(Contract):
    """Every service that botocore knows."""

    learns_from = "DescribeType"

    def __init__(self) -> None:
        super().__init__("aws", aws.make(()))
        self._services: set[str] = set()
        self._operations: dict[str, Mapping[str, Any]] = {}
        self._types = ResourceTypes()

    def operation_of(self, method: str, path: str) -> Mapping[str, Any] | None:
        service = path.removeprefix("/").partition(".")[0]
        if service not in self._services:
            self._add(service)
        return self._operations.get(path) if method == "POST" else None

    def learn(self, exchange: Exchange) -> None:
        """Note the types that an account describes."""
        if exchange.path == "/cloudformation.DescribeType" and exchange.status < 300:
            self._types.learn(json.loads(exchange.answer or "")["Schema"])

    def _body(self, found: Mapping[str, Any], exchange: Exchange) -> Iterable[tuple[str, str]]:
        problems = list(super()._body(found, exchange))
        service, _, operation = found["name"].partition(".")
        if service == "cloudcontrol" and not problems:
            sent, form = json.loads(exchange.body or "{}"), partial(said, is_request=True)
            problems += self._types.wrong_in_request(operation, sent, exchange.before, form)
        return problems

    def _answer(self, found: Mapping[str, Any], exchange: Exchange) -> Iterator[tuple[str, str]]:
        problems = list(super()._answer(found, exchange))
        yield from problems
        if found["name"].startswith("cloudcontrol.") and not problems and exchange.status < 300:
            sent, answer = json.loads(exchange.body or "{}"), json.loads(exchange.answer or "{}")
            yield from self._types.wrong_in_answer(sent, answer, partial(said, is_request=False))

    def _add(self, service: str) -> None:
        self._services.add(service)
        try:
            made = aws.make([service])
        except UnknownServiceError:
            return
        self.schemas.update(made["schemas"])
        self._operations |= {one["path"]: one for one in made["operations"]}
