"""RDS: databases."""

from fractal_cloud.offers.aws.descriptors import Paging, Service, Tagging

RDS = Service(
    name="rds",
    cursor=("Marker", "Marker"),
    paging=Paging(limit="MaxRecords", default=100, smallest=20, largest=100, bad_token="InvalidParameterValue"),
    tagging=Tagging(add="AddTagsToResource", remove="RemoveTagsFromResource", target="ResourceName"),
    conflict=(
        "DBInstanceAlreadyExists",
        "DBSnapshotAlreadyExists",
        "InsufficientDBInstanceCapacity",
        "InvalidDBInstanceState",
        "InvalidDBInstanceStateFault",
    ),
    invalid=("DBSubnetGroupNotFoundFault",),
    roles_of=("monitoring.rds.amazonaws.com",),
    reads=("ListTagsForResource",),
    noun="Database",
    scope=("arn:*:rds:*:*:db:*",),
)
