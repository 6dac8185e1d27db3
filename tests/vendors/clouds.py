"""The clouds that are held against their vendors: each with its table, and with what is no part of its API."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from fractal_sandbox.vsphere import simulator
from tests.vendors.aws_contract import AwsContract
from tests.vendors.contract import Contract, Exchange
from tests.vendors.kubernetes_contract import KubernetesContract
from tests.vendors.soap import translated

TABLES = Path(os.environ.get("FRACTAL_VENDORS_TABLES", "/nowhere"))
RECORDINGS = Path(os.environ.get("FRACTAL_RECORDINGS", "/nowhere"))

CLOUDS = ("aruba", "aws", "azure", "gcp", "hetzner", "kubernetes", "oci", "vsphere")
PREFIX = re.compile(r"^/as/(agent|person)(?=/)")  # how a sandbox's cluster is asked for
# What a sandbox answers beside the vendor's API, and whose contract that is.
ELSEWHERE = {
    "aruba": re.compile(r"/auth/token"),  # logging in: OAuth 2
    "aws": re.compile(r"$"),
    "hetzner": re.compile(r"$"),
    "azure": re.compile(
        r"/msi/token|/[^/]+/oauth2/.*|/[^/]+/v2\.0/\.well-known/.*|/metadata/.*"
    ),  # logging in: OAuth 2
    "gcp": re.compile(r"/token|/(?!v\d|compute/|storage/|sql/|upload/|apis/).*"),  # OAuth 2; buckets as S3 serves them
    "kubernetes": re.compile(r"/(api|apis|openapi)(/v\d)?/?"),  # which kinds there are
    "oci": re.compile(r"/compat/.*"),  # buckets as S3 serves them
    "vsphere": re.compile(r"/api/session|/rest/com/vmware/cis/session|/sdk/vimServiceVersions\.xml"),  # logging in
}


def why_not(cloud: str) -> str:
    """Why nothing of a cloud can be recorded on this machine; empty where it can."""
    return simulator.why_not() if cloud == "vsphere" else ""


@cache
def contract(cloud: str) -> Contract:
    """Return the vendor's contract; raises where ``make test-vendors`` has not prepared it.

    What the recordings say of the API itself, such as which custom kinds there are, is part of it.
    """
    if cloud == "aws":
        made: Contract = AwsContract()
    else:
        table = json.loads((TABLES / f"{cloud}.json").read_text())
        made = KubernetesContract(cloud, table) if cloud == "kubernetes" else Contract(cloud, table)
    for one in _recorded(cloud, containing=made.learns_from) if made.learns_from else ():
        made.learn(one)
    return made


def exchanges(cloud: str) -> Iterator[Exchange]:
    """Return what was recorded of a cloud, but for what is another protocol."""
    for exchange in _recorded(cloud):
        yield translated(contract(cloud), exchange) if cloud == "vsphere" else exchange


def _recorded(cloud: str, containing: str = "") -> Iterator[Exchange]:
    for path in sorted(RECORDINGS.glob(f"{cloud}[.-]*.jsonl")):  # a second cluster is one too
        with path.open() as lines:
            for line in (one for one in lines if containing in one):
                found = json.loads(line)
                exchange = Exchange(**{**found, "target": PREFIX.sub("", found["target"])})
                if not ELSEWHERE[cloud].fullmatch(exchange.path):
                    yield exchange
