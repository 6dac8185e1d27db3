"""Writes what follows from the offers' own files: what the sandbox must know of AWS, and the SDK's short names.

`--check` only compares. Nothing that it writes is edited by hand, and nothing is decided here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fractal_cloud.offers.aws.aws_offer import AwsOffer
from fractal_cloud.offers.aws.descriptors import Resource, Service
from fractal_cloud.offers.aws.services import services
from fractal_cloud.offers.registry import installed

ROOT = Path(__file__).resolve().parent.parent
AWS = ROOT / "src" / "fractal_sandbox" / "aws" / "services.json"
# What a simulated cloud has no use for: rights, and which errors mean what to the agent.
_SERVICE = ("cursor", "paging", "tagging", "arn", "lists")
_NOT_OF_A_RESOURCE = ("service", "reads", "needs", "touches")


def aws() -> str:
    """The services of AWS with their resources, as the sandbox reads them."""
    offers = [offer for offer in installed("aws").of_provider("aws") if isinstance(offer, AwsOffer)]
    resources = sorted((offer.resource for offer in offers), key=lambda one: one.kind)
    known = [one for one in services().values() if one.tagging is not None or _of(one, resources)]
    found = {one.name: _described(one, _of(one, resources)) for one in sorted(known, key=lambda one: one.name)}
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


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


def files() -> dict[Path, str]:
    """Every file by its path, as it should be."""
    return {AWS: aws()}


def stale(wanted: Mapping[Path, str]) -> list[Path]:
    """The files that are not as they should be."""
    return sorted(path for path, text in wanted.items() if not path.exists() or path.read_text("utf-8") != text)


def main(arguments: Sequence[str]) -> int:
    """Write every file; with ``--check``, print those that are stale, and return 1 if there is any."""
    wanted = files()
    found = stale(wanted)
    for path in found:
        if "--check" in arguments:
            print(f"error: {path.relative_to(ROOT)} is stale: run make docs", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path], encoding="utf-8")
    return 1 if found and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
