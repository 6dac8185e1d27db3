"""Kinds of values that several types of Google Cloud share, checked when they are declared."""

from __future__ import annotations

import re
from ipaddress import ip_network
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

from fractal_cloud.model.component import Component, parameter

_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_BUCKET: Final = re.compile(r"(?!.*\.\.)(?!goog)[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]\Z")
_BEFORE_PROJECTS: Final = re.compile(r"^https?://.*?/(?=projects/)")
_LONGEST_RUN: Final = 49


def resource_name(name: str) -> str:
    """A name Compute Engine, GKE and Cloud SQL take; raises where it is none."""
    if not _NAME.match(name):
        raise ValueError(f"{name!r} is no name for Google Cloud: take up to 63 of a-z, 0-9 and -, with a letter first")
    return name


def run_name(name: str) -> str:
    """A name Cloud Run takes for a service; raises where it is none."""
    if not _NAME.match(name) or len(name) > _LONGEST_RUN:
        raise ValueError(
            f"{name!r} is no name for Cloud Run: take up to {_LONGEST_RUN} of a-z, 0-9 and -, with a letter first"
        )
    return name


def bucket_name(name: str) -> str:
    """A name Cloud Storage takes for a bucket; raises where it is none."""
    if not _BUCKET.match(name):
        raise ValueError(
            f"{name!r} is no bucket name: take 3 to 63 of a-z, 0-9, -, _ and ., beginning and ending with a letter or "
            "digit, and not with 'goog'"
        )
    return name


def _canonical_network(text: str) -> str:
    try:
        return str(ip_network(text, strict=False))
    except ValueError as error:
        raise ValueError(f"{text!r} is no network: write it like '10.0.0.0/8'") from error


def path_of(link: Any) -> str | None:
    """A resource as `projects/…`, whatever host Google's link to it names."""
    return _BEFORE_PROJECTS.sub("", str(link)) if link else None


def last_of(link: Any) -> str:
    """The last word of a link: a zone, a machine type."""
    return str(link or "").rpartition("/")[2]


Network = Annotated[str, AfterValidator(_canonical_network)]
"""Any network, in its canonical spelling."""

Zone = Annotated[str, Field(pattern=r"^[a-z]+-[a-z]+\d+-[a-z]$", examples=["europe-west1-b"])]
Region = Annotated[str, Field(pattern=r"^[a-z]+-[a-z]+\d+$", examples=["europe-west1"])]
Location = Annotated[str, Field(pattern=r"^[a-z]+-[a-z]+\d+(-[a-z])?$", examples=["europe-west1"])]
"""A region, or a zone."""


class GcpComponent(Component):
    """What all components of Google Cloud declare."""

    provider = "gcp"

    project: str | None = parameter(
        default=None,
        immutable=True,
        description="Id of the project it is in; the agent's default project if not given.",
    )
