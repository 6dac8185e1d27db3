"""The shapes in which AWS returns what somebody wrote: a table with sources, and the code that applies it.

Written from public reports of users of other tools, before and apart from anything that compares, and never from it.
`docs/aws-shapes.md` is the table for people.
"""

from __future__ import annotations

from fractal_sandbox.aws.cloudcontrol.shapes.applying import reshaped
from fractal_sandbox.aws.cloudcontrol.shapes.table import SHAPES

__all__ = ["SHAPES", "reshaped"]
