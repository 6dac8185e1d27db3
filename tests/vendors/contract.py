"""Holds an exchange against a vendor's table: path, method, query, headers, body; then status, headers and answer.

A problem names the operation, the field and what is wrong with it, without ids and numbers, so that one fault is one
problem however often it was seen. Which problems are known to be harmless stands in ``deviations.py``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError

JSON = ("application/json", "application/merge-patch+json", "application/strategic-merge-patch+json")


@dataclass(frozen=True, order=True)
class Problem:
    """One way in which the product or a sandbox differs from the vendor. ``side``: ``request`` or ``answer``."""

    cloud: str
    side: str
    operation: str
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.cloud} {self.side} {self.operation}: {self.where or '(whole)'}: {self.what}"


@dataclass(frozen=True)
class Exchange:
    """A request with its answer, as recorded; ``answer`` is None where it has no end (a watch), or is not the vendor's.

    ``before``: what the recorder read last of the resource that a patch of Cloud Control changes.
    """

    cloud: str
    actor: str
    method: str
    target: str
    headers: Mapping[str, str]
    body: str
    status: int
    answerHeaders: Mapping[str, str]  # noqa: N815 -- as it stands in the recording
    answer: str | None
    times: int = 1
    before: str | None = None

    @property
    def path(self) -> str:
        return unquote(urlsplit(self.target).path)

    @property
    def query(self) -> list[tuple[str, str]]:
        return parse_qsl(urlsplit(self.target).query, keep_blank_values=True)


class Contract:
    """What one vendor's API accepts and answers. ``learns_from``: what stands in exchanges that say more of the API."""

    learns_from = ""

    def __init__(self, cloud: str, table: Mapping[str, Any]) -> None:
        self.cloud = cloud
        self.schemas = table["schemas"]
        self.errors = table["errors"]
        self.has_plain_refusals = bool(table.get("hasPlainRefusals"))
        extend: Any = validators.extend  # not typed
        own = {"ofType": self._of_type, "order": _order}
        self._form: Any = extend(Draft202012Validator, own) if table.get("hasTypes") else Draft202012Validator
        self.anywhere = frozenset(table.get("anywhere", ()))
        self._patterns = sorted(
            ((_pattern(one["path"]), one) for one in table["operations"]),
            key=lambda pair: (-_literal(pair[1]["path"]), pair[1]["path"]),
        )
        self._validator = cache(self._made_validator)
        self._found = cache(self._find)

    def learn(self, exchange: Exchange) -> None:
        """Note what an exchange says of the API itself, such as which types there are; most have nothing of that."""

    def operation_of(self, method: str, path: str) -> Mapping[str, Any] | None:
        """Which operation a request asks for; the path with the fewest open words decides."""
        return self._found(method, path)

    def _find(self, method: str, path: str) -> Mapping[str, Any] | None:
        for pattern, one in self._patterns:
            if one["method"] == method and pattern.fullmatch(path):
                found: Mapping[str, Any] = one
                return found
        return None

    def request_problems(self, exchange: Exchange) -> Iterator[Problem]:
        """Return what the vendor would not understand."""
        found = self.operation_of(exchange.method, exchange.path)
        if found is None:
            yield Problem(
                self.cloud, "request", f"{exchange.method} {_shape(exchange.path)}", "path", "no such operation"
            )
            return
        for where, what in (
            *self._query(found, exchange),
            *self._headers(found, exchange),
            *self._body(found, exchange),
        ):
            yield Problem(self.cloud, "request", found["name"], where, what)

    def answer_problems(self, exchange: Exchange) -> Iterator[Problem]:
        """Return what the vendor would not answer so."""
        found = self.operation_of(exchange.method, exchange.path)
        if found is None or exchange.answer is None:
            return
        for where, what in self._answer(found, exchange):
            yield Problem(self.cloud, "answer", found["name"], where, what)

    def faults(self, schema: Mapping[str, Any], value: Any, *, is_request: bool = False) -> list[tuple[str, str]]:
        """Hold a value against a schema of this table."""
        validator = self._validator(json.dumps(schema, sort_keys=True))
        return sorted({pair for error in validator.iter_errors(value) for pair in said(error, is_request=is_request)})

    # --- parts of an exchange

    def _query(self, found: Mapping[str, Any], exchange: Exchange) -> Iterator[tuple[str, str]]:
        rules = found["query"]
        for name, value in exchange.query:
            if name in rules:
                rule = {key: one for key, one in rules[name].items() if key != "required"}
                yield from ((f"?{name}", what) for _, what in self.faults(rule, _read(value, rule)))
            elif name not in self.anywhere:
                yield f"?{name}", "unknown"
        given = {name for name, _ in exchange.query}
        for name, other in found.get("needs", {}).items():
            if name in given and other not in given:
                yield f"?{name}", f"sent without {other}"
        yield from ((f"?{name}", "missing") for name, one in rules.items() if one.get("required") and name not in given)

    def _headers(self, found: Mapping[str, Any], exchange: Exchange) -> Iterator[tuple[str, str]]:
        for name, rule in found["headers"].items():
            value = exchange.headers.get(name.lower())
            if value is None and rule.get("required"):
                yield f"header {name}", "missing"
            elif value is not None:
                plain = {key: one for key, one in rule.items() if key != "required"}
                yield from ((f"header {name}", what) for _, what in self.faults(plain, value))
        accepts = found.get("accepts") or JSON
        sent = exchange.headers.get("content-type", "").partition(";")[0]
        if exchange.body and found["body"] is not None and sent not in accepts:
            yield "header content-type", f"is {sent!r}"

    def _body(self, found: Mapping[str, Any], exchange: Exchange) -> Iterable[tuple[str, str]]:
        if found["body"] is None:
            return [("body", "sent where none is accepted")] if exchange.body not in ("", "{}", "null") else []
        if found["body"] == {} or (found.get("isBodyOptional") and not exchange.body):
            return []
        try:
            value = json.loads(exchange.body or "{}")
        except ValueError:
            return [("body", "is no JSON")]
        # In a merge patch, null accepts a field away.
        return self.faults(found["body"], value, is_request=exchange.method != "PATCH")

    def _answer(self, found: Mapping[str, Any], exchange: Exchange) -> Iterator[tuple[str, str]]:
        if exchange.status < 400 and str(exchange.status) not in found["answers"]:
            yield "status", f"{exchange.status} is not among {', '.join(sorted(found['answers']))}"
            return
        if found.get("isLong") and exchange.status == 202:
            named = {"location", "azure-asyncoperation"} & set(exchange.answerHeaders)
            yield from () if named else [("header Location", "missing: nobody could follow the operation")]
        schema = self._answered(found, exchange)
        if schema is None or schema == {} or exchange.method == "HEAD":
            return
        if schema.get("isEmpty"):
            yield from [("body", "is not empty")] if exchange.answer else []
            return
        if (
            exchange.status >= 400
            and self.has_plain_refusals
            and exchange.answerHeaders["content-type"].startswith("text")
        ):
            return
        try:
            value = json.loads(exchange.answer or "")
        except ValueError:
            yield "body", "is no JSON"
            return
        yield from self.faults(schema, value)

    def _answered(self, found: Mapping[str, Any], exchange: Exchange) -> Mapping[str, Any] | None:
        """The schema of an answer; None where nothing is said of it."""
        schema: Mapping[str, Any] | None = found["answers"].get(str(exchange.status))
        return self.errors if exchange.status >= 400 else schema

    def _made_validator(self, schema: str) -> Draft202012Validator:
        made: Draft202012Validator = self._form({"$defs": self.schemas, **json.loads(schema)})
        return made

    def _of_type(self, validator: Any, declared: str, value: Any, schema: Any) -> Iterator[ValidationError]:
        """A data object may be of any type that derives from the declared one, and says which in ``@type``."""
        del schema
        if not isinstance(value, dict):
            yield ValidationError(f"is a {type(value).__name__}, not {declared}")
            return
        name = value.get("@type", declared)
        found = self.schemas.get(name, {})
        if declared == "anyType":
            if "@type" not in value and set(value) != {"type", "value"}:
                yield ValidationError("does not say of which type it is")
            if "bases" not in found:
                return
        elif declared not in found.get("bases", ()):
            yield ValidationError(f"{name} is no {declared}")
            return
        plain = {key: one for key, one in value.items() if key != "@type"}
        yield from validator.descend(plain, {"$ref": f"#/$defs/{name}"})


def _order(validator: Any, names: list[str], value: Any, schema: Any) -> Iterator[ValidationError]:
    """The elements of a data object come in the order in which its type has them."""
    del validator, schema
    known = [name for name in value if name in names] if isinstance(value, dict) else []
    wanted = sorted(known, key=names.index)
    for name, other in zip(known, wanted, strict=True):
        if name != other:
            yield ValidationError("is out of order", path=[name])
            return


def said(error: ValidationError, *, is_request: bool) -> Iterator[tuple[str, str]]:
    """Say where something is wrong, and what, without ids and numbers."""
    where = ".".join("[]" if isinstance(part, int) else _plain(str(part)) for part in error.absolute_path)
    start = f"{where}." if where else ""
    schema: Mapping[str, Any] = error.schema if isinstance(error.schema, Mapping) else {}
    value: Any = error.instance
    rule: Any = error.validator_value
    if error.validator in ("additionalProperties", "unevaluatedProperties"):
        extra = sorted(set(value) - set(schema.get("properties", ())))
        yield from ((f"{start}{_plain(name)}", "unknown field") for name in extra)
    elif error.validator == "required":
        yield from ((f"{start}{name}", "missing") for name in rule if name not in value)
    elif error.validator == "type" and value is None:
        if is_request or not where:
            yield where, "is null"
    elif error.validator == "type":
        yield where, f"is a {type(value).__name__}, not {rule}"
    elif error.validator in ("enum", "const"):
        yield where, f"{value!r} is no value of it"
    elif error.validator in ("ofType", "order"):
        yield where, error.message
    elif error.validator in ("anyOf", "oneOf"):
        nearest = _nearest(error)
        yield from () if nearest else [(where, "fits none of its forms")]
        yield from (pair for one in nearest for pair in said(one, is_request=is_request))
    else:
        yield where, f"breaks {error.validator} {rule!r}"


def _nearest(error: ValidationError) -> list[ValidationError]:
    """What is wrong with a value as the one of several forms that it comes nearest to; nothing where it fits none."""
    forms: dict[Any, list[ValidationError]] = {}
    for inner in error.context or ():
        forms.setdefault(inner.schema_path[0], []).append(inner)
    of_its_type = [
        found
        for found in forms.values()
        if not any(one.validator == "type" and one.absolute_path == error.absolute_path for one in found)
    ]
    return min(of_its_type, key=len, default=[])


def _plain(part: str) -> str:
    """The name of a field; a key that somebody chose (a tag's) is not one."""
    return part if re.fullmatch(r"[$@A-Za-z_][\w.$@-]{0,60}", part) else "*"


def _read(text: str, rule: Mapping[str, Any]) -> Any:
    kind = rule.get("type")
    if kind == "integer" and re.fullmatch(r"-?\d+", text):
        return int(text)
    if kind == "boolean" and text in ("true", "false"):
        return text == "true"
    return text


def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"(\{[^}]*\})", path)
    return re.compile(
        "".join(_open(part) if part.startswith("{") else re.escape(part) for part in parts), re.IGNORECASE
    )


def _open(part: str) -> str:
    return ".+" if part in ("{scope}", "{rest}") else "[^/]+"


def _literal(path: str) -> int:
    return len(re.sub(r"\{[^}]*\}", "", path))


def _shape(path: str) -> str:
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+", "#", path)
