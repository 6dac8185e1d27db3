"""IAM and STS: who calls, and the identities that links make. What is granted there is written in ``policy``."""

from fractal_cloud.offers.aws.descriptors import Service

IAM = Service(
    name="iam",
    cursor=("Marker", "Marker"),
    not_found=("NoSuchEntity",),
    conflict=("DeleteConflict", "EntityAlreadyExists"),
)
STS = Service(name="sts", reads=("GetCallerIdentity",))
