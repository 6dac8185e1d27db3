"""Makes the catalogue of Kubernetes' own kinds from its published OpenAPI documents, and prints what is in it.

`scripts/kubernetes_kinds.py SCHEMAS` takes the folder of one release's definitions as the PyPI package
`kubernetes-validate` carries them (`kubernetes_validate/kubernetes-json-schema/v1.37.0-local`), and the paths from the
official client that is installed here. `--server` takes both from a running API server instead, through
`kubectl get --raw`. The same input makes the same bytes.

Two files are written: what the provider knows of built-in kinds, and the same facts recorded for the sandbox, which
shares nothing with it. Descriptions are left out but for each kind's first sentence.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent / "src"
TARGETS: Final = (
    ROOT / "fractal_cloud/offers/kubernetes/any_kind/kinds.json.gz",
    ROOT / "fractal_sandbox/kubernetes/published.json.gz",
)
MOST_BYTES: Final = 1_000_000
_KEPT: Final = frozenset(
    {"properties", "type", "format", "items", "additionalProperties", "required", "enum", "$ref", "default"}
)
_REQUEST: Final = re.compile(r"method='([A-Z]+)',\s+resource_path='(/apis?/[^']+)'")
_OBJECT: Final = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>v[^/]+)(?P<place>/namespaces/\{namespace\})?/(?P<plural>[a-z]+)"
    r"(?:/\{name\}(?:/(?P<part>[a-z]+))?)?"
)
_VERBS: Final = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_LONGEST: Final = 160


def main() -> int:
    """Write the files, and print the counts."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("schemas", nargs="?", type=Path, help="the folder of one release's definitions")
    options.add_argument("--server", action="store_true", help="ask the server of the current kubeconfig instead")
    options.add_argument("--as-of", default="", help="the day of the release, as 2026-10-11")
    given = options.parse_args()
    if given.server:
        document = json.loads(_raw("/openapi/v2"))
        release = json.loads(_raw("/version"))["gitVersion"].removeprefix("v")
        definitions, requests = document["definitions"], _requests_of_document(document)
    else:
        document = json.loads((given.schemas / "_definitions.json").read_text("utf-8"))
        release = given.schemas.name.removeprefix("v").removesuffix("-local")
        definitions, requests = document["$defs"], _requests_of_client()
    made = packed(definitions, requests, release, given.as_of)
    for target in TARGETS:
        if len(made) > MOST_BYTES:
            print(f"the catalogue has {len(made):,} bytes, more than {MOST_BYTES:,}", file=sys.stderr)
            return 1
        target.write_bytes(made)
    _print_counts(json.loads(gzip.decompress(made)), len(made))
    return 0


def packed(definitions: Mapping[str, Any], requests: Iterator[tuple[str, str]], release: str, day: str) -> bytes:
    """The file: kinds by their types, and the definitions they use."""
    places = _places(requests)
    kinds: dict[str, Any] = {}
    for name, definition in sorted(definitions.items()):
        for gvk in definition.get("x-kubernetes-group-version-kind", ()):
            named = (gvk["group"], gvk["version"], gvk["kind"].casefold())
            if named in places:
                key = "/".join(filter(None, (gvk["group"], gvk["version"], gvk["kind"])))
                kinds[key] = {
                    **places[named],
                    "definition": name,
                    "description": _sentence(definition.get("description", "")),
                }
    used: dict[str, Any] = {}
    for kind in kinds.values():
        _collect(kind["definition"], definitions, used)
    whole = {"release": release, "asOf": day, "kinds": kinds, "definitions": dict(sorted(used.items()))}
    return gzip.compress(json.dumps(whole, sort_keys=True, separators=(",", ":")).encode(), mtime=0)


def _raw(path: str) -> str:
    return subprocess.run(["kubectl", "get", "--raw", path], check=True, capture_output=True, text=True).stdout


def _requests_of_document(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for path, operations in document["paths"].items():
        for method in operations:
            yield method.upper(), path


def _requests_of_client() -> Iterator[tuple[str, str]]:
    package = find_spec("kubernetes.client.api")
    folders = list(package.submodule_search_locations or ()) if package is not None else []
    for file in sorted(Path(folders[0]).glob("*_api.py")):
        yield from _REQUEST.findall(file.read_text("utf-8"))


def _places(requests: Iterator[tuple[str, str]]) -> dict[tuple[str, str, str], Any]:
    """Each kind's plural, scope, verbs and parts; kinds are found by their plurals, as the server's names have them."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for method, path in requests:
        match = _OBJECT.fullmatch(path)
        if match is None or method not in _VERBS:
            continue
        key = (match["group"] or "", match["version"], match["plural"])
        one = found.setdefault(key, {"plural": match["plural"], "namespaced": False, "verbs": set(), "parts": set()})
        one["namespaced"] = one["namespaced"] or bool(match["place"])
        if match["part"]:
            one["parts"].add(match["part"])
        else:
            is_list = method == "GET" and "{name}" not in path
            one["verbs"].add("list" if is_list else _VERBS[method])
    by_kind = {}
    for (group, version, plural), one in found.items():
        if "list" in one["verbs"]:
            one["verbs"].add("watch")
        said = {**one, "verbs": sorted(one["verbs"]), "parts": sorted(one["parts"])}
        for kind in _singular(plural):
            by_kind[(group, version, kind)] = said
    return by_kind


def _singular(plural: str) -> tuple[str, ...]:
    """What a plural may be the plural of, in lower case."""
    ends = (("ies", "y"), ("sses", "ss"), ("ses", "s"), ("es", "e"), ("s", ""), ("", ""))
    return tuple(plural[: len(plural) - len(end)] + put for end, put in ends if plural.endswith(end))


def _collect(name: str, definitions: Mapping[str, Any], used: dict[str, Any]) -> None:
    if name in used:
        return
    used[name] = {}
    used[name] = _kept(definitions[name])
    for other in _named(used[name]):
        _collect(other, definitions, used)


def _kept(schema: Any) -> Any:
    """A schema without descriptions; `null` is allowed everywhere by the server, so it is not said."""
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "$ref":
            found[key] = "#/definitions/" + value.rpartition("/")[2]
        elif key == "type":
            found[key] = next(one for one in value if one != "null") if isinstance(value, list) else value
        elif key == "properties":
            found[key] = {name: _kept(inner) for name, inner in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            found[key] = _kept(value)
        elif key == "enum":
            found[key] = [one for one in value if one is not None]
        elif key in _KEPT or (key.startswith("x-kubernetes-") and key != "x-kubernetes-group-version-kind"):
            found[key] = value
    if "allOf" in schema and len(schema["allOf"]) == 1:
        found = {**_kept(schema["allOf"][0]), **found}
    if "oneOf" in schema or "anyOf" in schema:
        kinds = {word for one in schema.get("oneOf", schema.get("anyOf")) for word in _words(one.get("type"))}
        found["format"] = "quantity" if "number" in kinds else "int-or-string"
        found["type"] = "string"
    return found


def _words(kind: Any) -> list[str]:
    return kind if isinstance(kind, list) else [kind]


def _named(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].rpartition("/")[2]
        for value in schema.values():
            yield from _named(value)


def _sentence(text: str) -> str:
    first = " ".join(text.split()).partition(". ")[0]
    return first if len(first) <= _LONGEST else first[: _LONGEST - 1].rpartition(" ")[0] + "…"


def _print_counts(made: Mapping[str, Any], size: int) -> None:
    kinds = made["kinds"]
    whole = [one for one in kinds.values() if {"create", "patch", "delete", "list", "get"} <= set(one["verbs"])]
    wide = [one for one in whole if not one["namespaced"]]
    print(
        f"release {made['release']}: {len(kinds)} kinds with paths, {len(whole)} can be declared, {len(wide)} of them"
    )
    print(f"cluster-wide; {len(made['definitions'])} definitions; {size:,} bytes")


if __name__ == "__main__":
    sys.exit(main())
