"""Component types of the category Storage at AWS.

Written by `make docs` from the offers: change those.
"""

# ruff: noqa: N813  # a class under the SDK's short name

from fractal_cloud.offers.aws.rds import AwsRdsPostgres as rds_postgres
from fractal_cloud.offers.aws.s3 import AwsS3 as s3

__all__ = ["rds_postgres", "s3"]
