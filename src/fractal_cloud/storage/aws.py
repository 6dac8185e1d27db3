"""Buckets and databases of AWS under their short names."""

from fractal_cloud.offers.aws.rds import AwsRdsPostgres as rds_postgres
from fractal_cloud.offers.aws.s3 import AwsS3 as s3

__all__ = ["rds_postgres", "s3"]
