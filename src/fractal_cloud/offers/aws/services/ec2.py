"""EC2: networks and machines."""

from fractal_cloud.offers.aws.descriptors import Paging, Service, Tagging

EC2 = Service(
    name="ec2",
    paging=Paging(smallest=5, largest=1000),
    tagging=Tagging(add="CreateTags", remove="DeleteTags", target="Resources", is_by_id=True, keys=""),
    conflict=(
        "DependencyViolation",
        "IncorrectInstanceState",
        "IncorrectState",
        "InsufficientInstanceCapacity",
        "InvalidGroup.Duplicate",
        "InvalidGroup.InUse",
        "InvalidPermission.Duplicate",
        "InvalidSubnet.Conflict",
        "OperationNotPermitted",
    ),
    # Something else that the request names is not there: the request will not do, as it is, however often it is sent.
    invalid=(
        "IdempotentParameterMismatch",
        "InvalidAMIID.NotFound",
        "InvalidAMIID.Unavailable",
        "InvalidKeyPair.NotFound",
    ),
    limit=("ResourceLimitExceeded",),
    reads=("Describe*",),
    roles_of=("ec2.amazonaws.com",),
    lists={"DescribeSecurityGroupRules": ("SecurityGroupRules", "SecurityGroupRuleId")},
)
