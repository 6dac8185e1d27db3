"""Writes what follows from the offers' own files: what the sandbox must know of AWS, and the SDK's short names.

`--check` only compares. Nothing that it writes is edited by hand, and nothing is decided here.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import fractal_cloud.offers
from fractal_cloud.offers.aws.aws_offer import AwsOffer
from fractal_cloud.offers.aws.descriptors import Resource, Service
from fractal_cloud.offers.aws.policy import boundary
from fractal_cloud.offers.aws.resources.tables.parts import PARTS
from fractal_cloud.offers.aws.services import services
from fractal_cloud.offers.offer import AnyOffer
from fractal_cloud.offers.registry import installed
from fractal_cloud.offers.short_names import categories, category, names, snake

ROOT = Path(__file__).resolve().parent.parent
AWS = ROOT / "src" / "fractal_sandbox" / "aws" / "services.json"
AWS_PARTS = ROOT / "src" / "fractal_sandbox" / "aws" / "cloudcontrol" / "parts.json"
BOUNDARY = ROOT / "src" / "fractal_sandbox" / "aws" / "boundary.json"
SDK = ROOT / "src" / "fractal_cloud"
CONTRACTS = ROOT / ".importlinter"
LAYER = re.compile(r"^    \(fractal_cloud\.\w+\)( : \(fractal_cloud\.\w+\))*\n", re.MULTILINE)
NETWORK = ("NetworkAndCompute", "network_and_compute")
WRITTEN = "Written by `make docs` from the offers: change those."
LAZY = """
if not TYPE_CHECKING:

    def __getattr__(name: str) -> ModuleType:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")

    def __dir__() -> list[str]:
        return sorted([*globals(), *__all__])
"""
# What a simulated cloud has no use for: rights, and which errors mean what to the agent.
_SERVICE = ("cursor", "paging", "tagging", "arn", "lists")
_NOT_OF_A_RESOURCE = ("service", "reads", "needs", "touches", "set_by")


def _ours() -> list[AnyOffer]:
    """The offers of this package: what others installed beside it belongs into no file of ours."""
    home = f"{fractal_cloud.offers.__name__}."
    return [offer for offer in installed() if type(offer).__module__.startswith(home)]


def aws() -> str:
    """The services of AWS with their resources, as the sandbox reads them."""
    resources = sorted((offer.resource for offer in _ours() if isinstance(offer, AwsOffer)), key=lambda one: one.kind)
    known = [one for one in services().values() if one.tagging is not None or _of(one, resources)]
    found = {one.name: _described(one, _of(one, resources)) for one in sorted(known, key=lambda one: one.name)}
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def aws_parts() -> str:
    """The types of AWS that are parts of others, and the property that names the other: facts for the sandbox."""
    found = {
        name: {
            "parent": one.parent_type,
            "property": one.property,
            "holds": [one.output, *one.also],
            "blocks": one.blocks_parent,
        }
        for name, one in sorted(PARTS.items())
    }
    return json.dumps(found, indent=1) + "\n"


def _of(service: Service, resources: Sequence[Resource]) -> list[Resource]:
    return [one for one in resources if one.service.name == service.name]


def _described(service: Service, resources: Sequence[Resource]) -> dict[str, Any]:
    facts = asdict(service)
    return {
        **{name: facts[name] for name in _SERVICE},
        "resources": [
            {name: fact for name, fact in asdict(one).items() if name not in _NOT_OF_A_RESOURCE} for one in resources
        ],
    }


def short_names() -> dict[Path, str]:
    """The packages of the SDK: a folder for each category, a module in it for each provider."""
    modules: dict[str, dict[str, dict[str, type]]] = {one: {} for one in categories(SDK)}
    for offer in _ours():
        modules.setdefault(category(offer), {}).setdefault(offer.provider, {}).update(names(offer))
    found: dict[Path, str] = {}
    for title, providers in sorted(modules.items()):
        package = categories(SDK).get(title, snake(title))
        found[SDK / package / "__init__.py"] = _package(title, package, sorted(providers))
        for provider, known in sorted(providers.items()):
            found[SDK / package / f"{provider}.py"] = _module(title, provider, known)
    found[SDK / "network.py"] = _alias(sorted(modules[NETWORK[0]]))
    return _formatted(found)


def _package(title: str, package: str, providers: Sequence[str]) -> str:
    lines = [
        f'"""Component types of the category {title}, by provider: only names, what each is stands beside its offer.',
        "",
        "A provider is loaded when it is first named: a declaration for one cloud never waits for the types of others.",
        f'{WRITTEN}\n"""',
        "",
        "from importlib import import_module",
        "from types import ModuleType",
        "from typing import TYPE_CHECKING",
        "",
        *(
            [f"if TYPE_CHECKING:\n    from fractal_cloud.{package} import {', '.join(providers)}\n"]
            if providers
            else []
        ),
        f"__all__: list[str] = {json.dumps(providers)}",
        f'CATEGORY = "{title}"',
        "",
        LAZY,
    ]
    return "\n".join(lines)


def _module(title: str, provider: str, known: Mapping[str, type]) -> str:
    imports = sorted((one.__module__, one.__name__, name) for name, one in known.items())
    lines = [
        f'"""Component types of the category {title} at {installed().provider(provider).title}.\n\n{WRITTEN}\n"""',
        "",
        "# ruff: noqa: N813  # a class under the SDK's short name",
        "",
        *(f"from {module} import {cls} as {name}" for module, cls, name in imports),
        "",
        f"__all__ = {json.dumps(sorted(known))}",
    ]
    return "\n".join(lines) + "\n"


def _alias(providers: Sequence[str]) -> str:
    lines = [
        f'"""Another name for ``{NETWORK[1]}``. {WRITTEN}"""',
        "",
        "from types import ModuleType",
        "from typing import TYPE_CHECKING",
        "",
        f"from fractal_cloud import {NETWORK[1]}",
        "",
        f"if TYPE_CHECKING:\n    from fractal_cloud.{NETWORK[1]} import {', '.join(providers)}",
        "",
        f"__all__ = {json.dumps(providers)}",
        "",
        "if not TYPE_CHECKING:",
        "    def __getattr__(name: str) -> ModuleType:",
        f"        return getattr({NETWORK[1]}, name)",
    ]
    return "\n".join(lines) + "\n"


def _formatted(files: Mapping[Path, str]) -> dict[Path, str]:
    """The files as ruff formats them, all in one run."""
    with tempfile.TemporaryDirectory() as folder:
        drafts = {path: Path(folder) / path.relative_to(ROOT) for path in files}
        for path, draft in drafts.items():
            draft.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(files[path], encoding="utf-8")
        command = [sys.executable, "-m", "ruff", "format", "--quiet", "--config", str(ROOT / "pyproject.toml"), folder]
        subprocess.run(command, check=True, cwd=ROOT)
        return {path: draft.read_text("utf-8") for path, draft in drafts.items()}


def contracts() -> str:
    """The import contracts, with the layer of the SDK's packages as they are."""
    modules = sorted(["aws", "kubernetes", "network", *categories(SDK).values()])
    layer = " : ".join(f"(fractal_cloud.{name})" for name in modules)
    return LAYER.sub(f"    {layer}\n", CONTRACTS.read_text("utf-8"))


def files() -> dict[Path, str]:
    """Every file by its path, as it should be."""
    limit = json.dumps(boundary(), indent=1) + "\n"
    return {AWS: aws(), AWS_PARTS: aws_parts(), BOUNDARY: limit, **short_names(), CONTRACTS: contracts()}


def stale(wanted: Mapping[Path, str]) -> list[Path]:
    """The files that are not as they should be, and those in the SDK's packages that should not be there."""
    differing = [path for path, text in wanted.items() if not path.exists() or path.read_text("utf-8") != text]
    there = [path for package in categories(SDK).values() for path in (SDK / package).glob("*.py")]
    return sorted([*differing, *(path for path in there if path not in wanted)])


def main(arguments: Sequence[str]) -> int:
    """Write every file; with ``--check``, print those that are stale, and return 1 if there is any."""
    wanted = files()
    found = stale(wanted)
    for path in found:
        if "--check" in arguments:
            print(f"error: {path.relative_to(ROOT)} is stale: run make docs", file=sys.stderr)
        elif path in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path], encoding="utf-8")
        else:
            path.unlink()
    return 1 if found and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
