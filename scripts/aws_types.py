"""Makes the catalogue of AWS's resource types from the schemas that cfn-lint carries, and prints what is in it.

`scripts/aws_types.py` writes `src/fractal_cloud/offers/aws/resources/aws_types.zip`; the same schemas make the same
bytes. `--check` fails where the file is not what this installation's schemas make. `--out FILE` writes elsewhere.

Usable is a type whose resources Cloud Control can create, read, update, delete and list, and that carries tags in a
property of its own; also one that is a part of such a type or whose tags an adapter reads, if it can be created, read
and deleted. Types that AWS has shut down, and those of other vendors, are left out.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Final

from fractal_cloud.offers.aws.resources.schema import VERBS, AwsType, parse
from fractal_cloud.offers.aws.resources.tables.parts import INSTEAD, PARTS
from fractal_cloud.offers.aws.resources.types import FILE, INDEX

TARGET: Final = Path(__file__).parent.parent / "src/fractal_cloud/offers/aws/resources" / FILE
MOST_BYTES: Final = 2_000_000
_KEPT: Final = (
    *("typeName", "properties", "definitions", "required", "primaryIdentifier", "additionalIdentifiers"),
    *("readOnlyProperties", "writeOnlyProperties", "createOnlyProperties", "conditionalCreateOnlyProperties"),
    *("tagging", "taggable", "lifecycle"),
)
_LEFT_OUT: Final = frozenset({"title", "$comment", "examples", "markdownDescription"})
_NAMED: Final = frozenset({"properties", "patternProperties", "definitions"})
_NEWEST: Final = (1980, 1, 1, 0, 0, 0)
_LONGEST: Final = 160


def main() -> int:
    """Write or check the file, and print the counts."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--check", action="store_true", help="fail where the file is another one")
    options.add_argument("--out", type=Path, default=TARGET, help="where to write it")
    given = options.parse_args()
    documents, day = schemas()
    usable = {name: document for name, document in documents.items() if not why_not(document)}
    refused = {name: why for name, document in documents.items() if (why := why_not(document))}
    made = packed(usable, refused, day)
    if len(made) > MOST_BYTES:
        print(f"the catalogue has {len(made):,} bytes, more than {MOST_BYTES:,}", file=sys.stderr)
        return 1
    if given.check:
        if not given.out.is_file() or contents(given.out.read_bytes()) != contents(made):
            print("aws_types.zip is not what these schemas make: run scripts/aws_types.py", file=sys.stderr)
            return 1
        return 0
    given.out.write_bytes(made)
    for line in counts([parse(one) for one in usable.values()], refused, day):
        print(line)
    print(f"{given.out.name}: {len(made):,} bytes")
    return 0


def schemas() -> tuple[dict[str, Any], str]:
    """Every schema that cfn-lint carries, by the type's name, and the day they are of."""
    home = resources.files("cfnlint.data").joinpath("schemas")
    day = json.loads(home.joinpath("version.json").read_text())["schema_date"][:10]
    found = {}
    for file in home.joinpath("resources").iterdir():
        if file.name.endswith(".json"):
            document = json.loads(file.read_text(encoding="utf-8"))
            found[document["typeName"]] = document
    return dict(sorted(found.items())), day


def why_not(document: Mapping[str, Any]) -> str:
    """Why a type is not usable, in words that follow «it»; empty where it is."""
    name, handlers = document["typeName"], document.get("handlers", {})
    if not name.startswith("AWS::") or name.startswith("AWS::Serverless::"):
        return "is no type of AWS's own, but one that is made of others"
    if document.get("lifecycle", {}).get("status") == "shutdown":
        return "belongs to a service that AWS has shut down"
    if not document.get("primaryIdentifier"):
        return "has no identifier"
    found = parse(document)
    instead = f": declare {INSTEAD[name]} instead" if name in INSTEAD else ""
    special = found.part is not None or found.tag_adapter
    needed = ("create", "read", "delete") if special else VERBS
    missing = [verb for verb in needed if verb not in handlers]
    if missing:
        return f"cannot be handled: AWS's Cloud Control API has no {' and no '.join(missing)} for it{instead}"
    said = (document.get("tagging") or {}).get("tagProperty", "/properties/Tags")
    if not special and found.tags is None and said in document.get("writeOnlyProperties", ()):
        return "never shows its tags, so that nobody could see whose it is"
    tags = found.property_schema(said.removeprefix("/properties/"))
    if not special and found.tags is None and tags.get("type") == "object":
        return "carries its tags in a form of its own, which is no list of pairs and no map"
    if not special and (found.tags is None or found.name in INSTEAD):
        return f"carries no tags, and is no part of a type that does{instead}"
    return ""


def packed(usable: Mapping[str, Any], refused: Mapping[str, str], day: str) -> bytes:
    """The file: an index, and one member per service."""
    services: dict[str, dict[str, Any]] = {}
    for name, document in usable.items():
        services.setdefault(name.split("::")[1], {})[name] = shortened(document)
    index = {
        "asOf": day,
        "types": {name: sentence(document.get("description", "")) for name, document in usable.items()},
        "unusable": dict(refused),
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for member, content in [(INDEX, index), *((f"{one}.json", found) for one, found in sorted(services.items()))]:
            info = zipfile.ZipInfo(member, _NEWEST)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            text = json.dumps(content, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
            archive.writestr(info, text.encode(), compresslevel=9)
    return made.getvalue()


def contents(archive: bytes) -> dict[str, bytes]:
    """What a file says, whichever zlib has packed it."""
    with zipfile.ZipFile(io.BytesIO(archive)) as file:
        return {name: file.read(name) for name in file.namelist()}


def shortened(document: Mapping[str, Any]) -> dict[str, Any]:
    """What the product reads of a schema document."""
    made = {name: _plain(document[name], named=name in _NAMED) for name in _KEPT if name in document}
    made["description"] = sentence(document.get("description", ""))
    made["handlers"] = {
        verb: {
            "permissions": handler.get("permissions", []),
            **({"handlerSchema": {"required": wanted}} if (wanted := _parents(handler)) else {}),
        }
        for verb, handler in document.get("handlers", {}).items()
    }
    if "definitions" in made:
        made["definitions"] = _used(made)
    made.get("tagging", {}).pop("permissions", None)
    return made


def _parents(handler: Mapping[str, Any]) -> list[str]:
    wanted: list[str] = handler.get("handlerSchema", {}).get("required", [])
    return wanted


def _plain(value: Any, *, named: bool = False) -> Any:
    """A part of a schema without its titles and examples, each description cut to its first sentence."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if not isinstance(value, dict):
        return value
    if named:
        return {name: _plain(one) for name, one in value.items()}
    made = {}
    for name, one in value.items():
        if name in _LEFT_OUT:
            continue
        if name == "description" and isinstance(one, str):
            if text := sentence(one):
                made[name] = text
        else:
            made[name] = _plain(one, named=name in _NAMED)
    return made


def _used(document: Mapping[str, Any]) -> dict[str, Any]:
    """The definitions that something refers to."""
    definitions, used = document["definitions"], set[str]()
    waiting = set(_references(document["properties"]))
    while waiting:
        name = waiting.pop()
        if name not in used and name in definitions:
            used.add(name)
            waiting |= set(_references(definitions[name]))
    return {name: definitions[name] for name in sorted(used)}


def _references(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        target = value.get("$ref")
        if isinstance(target, str):
            yield target.split("/")[2] if target.startswith("#/definitions/") else ""
        for one in value.values():
            yield from _references(one)
    elif isinstance(value, list):
        for one in value:
            yield from _references(one)


def sentence(text: str) -> str:
    """The first sentence of a description, without markup."""
    plain = re.sub(r"<[^>]+>|``|\[([^\]]*)\]\([^)]*\)", r"\1", text)
    plain = " ".join(plain.split())
    first = re.split(r"(?<=[.:!?])\s+(?=[A-Z+*])", plain, maxsplit=1)[0].rstrip(":")
    return first if len(first) <= _LONGEST else first[: _LONGEST - 1].rsplit(" ", 1)[0] + "…"


def counts(usable: list[AwsType], refused: Mapping[str, str], day: str) -> Iterable[str]:
    """What the file holds, in lines."""
    parts = [one for one in usable if one.part is not None]
    adapted = [one for one in usable if one.tag_adapter]
    tagged = [one for one in usable if one.tags is not None and one.part is None and not one.tag_adapter]
    yield f"schemas of {day}: {len(usable) + len(refused):,}"
    yield f"usable: {len(usable):,} in {len({one.service for one in usable})} services"
    yield f"  with all handlers and tags: {len(tagged):,}"
    yield f"    tags in the create call: {sum(one.tags.on_create for one in tagged if one.tags)}"
    yield f"    tags frozen after it: {sum(not one.tags.updatable for one in tagged if one.tags)}"
    yield f"    tags as lists, as maps: {Counter(one.tags.shape for one in tagged if one.tags)}"
    yield f"    named by: {Counter(one.named_by for one in tagged)}"
    yield f"  parts: {len(parts)} of {len(PARTS)} in the table"
    yield f"  tags by an adapter: {len(adapted)}"
    yield f"  immutable properties: {sum(len(one.create_only) for one in usable):,}"
    yield f"  types with write-only properties: {sum(bool(one.write_only) for one in usable)}"
    yield f"  permissions of verbs: {sum(len(one) for each in usable for one in each.handlers.values()):,}"
    yield f"  hold data: {sum(one.holds_data for one in usable)}"
    yield "not usable:"
    for reason, many in Counter(re.sub(r": declare.*", "", why) for why in refused.values()).most_common():
        yield f"  {many:>4} it {reason}"


if __name__ == "__main__":
    sys.exit(main())
