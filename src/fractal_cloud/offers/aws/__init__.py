"""The component types of AWS; cloud.py alone knows boto3, and nothing here decides."""

from fractal_cloud.offers.offer import Provider, Session


def _connect() -> Session:
    from fractal_cloud.offers.aws.cloud import AwsSession

    return AwsSession()


PROVIDER = Provider(name="aws", title="AWS", connect=_connect, packages=("boto3",), is_at_hand=lambda: True)
