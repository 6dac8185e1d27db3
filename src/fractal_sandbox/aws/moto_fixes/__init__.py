"""Fixes for moto, service by service: where it differs from the real AWS in a way that an offer depends on.

A fix answers one operation in moto's place: it refuses what AWS refuses, passes the rest to moto, and completes what
moto leaves undone. Each says how moto differs and what the real service does. Knobs and the monitor do not belong here.
"""

from fractal_sandbox.aws.moto_fixes import ec2, ecs, eks, rds, s3
from fractal_sandbox.aws.moto_fixes.registry import FixContext, find_fix

__all__ = ["FixContext", "ec2", "ecs", "eks", "find_fix", "rds", "s3"]
