"""The AWS of the sandbox: moto's backends in this process, behind a layer that mends, delays, fails and watches."""

from fractal_cloud.sandbox.aws.cloud import AwsCloud

__all__ = ["AwsCloud"]
