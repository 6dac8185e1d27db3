"""Secrets Manager: what links keep there. What is granted there is written in ``policy``."""

from fractal_cloud.offers.aws.descriptors import Service

SECRETS_MANAGER = Service(name="secretsmanager", conflict=("ResourceExistsException",))
