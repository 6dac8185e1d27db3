"""Where moto differs from the real AWS in a way that would bend an offer: each difference mended, service by service.

A mend takes the place of moto's answer to one operation: it refuses what AWS refuses, hands the rest to moto, and
puts right what moto leaves undone. Each says which fault of moto it mends and what the real service does. Knobs, the
monitor and anything that is not a fault of moto's do not belong here.
"""

from fractal_cloud.sandbox.aws.mends import ec2, ecs, eks, rds, s3
from fractal_cloud.sandbox.aws.mends.registry import Mending, find_mend

__all__ = ["Mending", "ec2", "ecs", "eks", "find_mend", "rds", "s3"]
