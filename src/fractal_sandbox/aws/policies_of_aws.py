"""The policies that AWS itself publishes: there without anybody making them.

moto has them, but knows them only where all are loaded, which every reset would pay for: here each is known when it is
first named.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from moto.iam.models import AWSManagedPolicy

from fractal_sandbox.aws.resources import backend

__all__ = ["know"]

_OF_AWS: Final = "arn:aws:iam::aws:policy/"


def know(arn: str) -> None:
    """Have one of AWS's own policies be there from now on, if AWS has it."""
    iam = backend("iam", "aws")
    if not arn.startswith(_OF_AWS) or arn in iam.managed_policies:
        return
    name = arn.rpartition("/")[2]
    published = _published().get(name)
    if published is not None and arn == f"{_OF_AWS}{published['Path'][1:]}{name}":
        iam.managed_policies[arn] = AWSManagedPolicy.from_data(name, iam.account_id, iam.region_name, published)


@cache
def _published() -> Mapping[str, Any]:
    from moto.iam.aws_managed_policies import aws_managed_policies_data  # a large module: only who asks pays for it

    found: Mapping[str, Any] = json.loads(aws_managed_policies_data)
    return found
