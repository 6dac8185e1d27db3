"""Any resource of AWS by its own name; the types that have classes stand in the categories (``network_and_compute``).

from fractal_cloud import aws

jobs = aws.resource("AWS::SQS::Queue", "jobs", region="eu-west-1", QueueName="jobs")
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from fractal_cloud.model.generic_component import GenericComponent, declared

__all__ = ["resource"]

_TYPE: Final = re.compile(r"[A-Za-z0-9]+::[A-Za-z0-9]+::[A-Za-z0-9]+(::[A-Za-z0-9]+)?\Z")


def resource(
    component_type: str, /, id: str, *, parameters: Mapping[str, object] | None = None, **given: object
) -> GenericComponent:
    """Declare a resource by AWS's name of its type, with the properties of its schema under their own names.

    ``given``: the properties, ``region`` (or what else says where it is), and what every component has
    (``dependencies``, ``ignore_drift``, ``import_only``, ``create_once``, …). ``parameters``: the same for names that
    cannot be written so. Whether the type has them is checked where it is deployed; ``fractal types show`` lists them.
    """
    if not _TYPE.match(component_type):
        raise ValueError(f"{component_type!r} is no type of AWS: they look like 'AWS::SQS::Queue'")
    return declared(component_type, "aws", id, given, parameters or {})
