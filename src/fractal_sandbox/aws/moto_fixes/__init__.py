"""Fixes for moto, service by service: where it differs from the real AWS in a way that an offer depends on.

A fix answers one operation in moto's place: it refuses what AWS refuses, passes the rest to moto, and completes what
moto leaves undone. Each says how moto differs and what the real service does. Knobs and the monitor do not belong here.
"""

from fractal_sandbox.aws.moto_fixes import cloudtrail, ec2, ecs, eks, iam, rds, s3, sts
from fractal_sandbox.aws.moto_fixes.registry import FixContext, find_fix

__all__ = ["FixContext", "cloudtrail", "ec2", "ecs", "eks", "find_fix", "iam", "rds", "s3", "sts"]
