"""Cloud Control: one API for the resources of all services, by the schemas of their types."""

from fractal_cloud.offers.aws.descriptors import Paging, Service

CLOUD_CONTROL = Service(
    name="cloudcontrol",
    paging=Paging(default=20, largest=100),
    iam="cloudformation",
    conflict=(
        "AlreadyExistsException",
        "ClientTokenConflictException",
        "ConcurrentModificationException",
        "ConcurrentOperationException",
        "NotStabilizedException",
        "ResourceConflictException",
    ),
    # A type that is not there says nothing of a resource.
    invalid=("PrivateTypeException", "TypeNotFoundException", "UnsupportedActionException"),
)
