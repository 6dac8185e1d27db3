"""What AWS's refusals become: a table, because the agent decides by the kind of error and never by its text."""

from __future__ import annotations

import pytest

from fractal_cloud.model.errors import (
    CloudError,
    Conflict,
    Denied,
    Invalid,
    LimitReached,
    NotFound,
    Throttled,
    Transient,
    Unreadable,
)
from fractal_cloud.offers.aws.errors import Answer, error_of

# code, status, as a write, as a read, why
TABLE: list[tuple[str, int, type[CloudError], type[CloudError], str]] = [
    ("RequestLimitExceeded", 503, Throttled, Throttled, "EC2 throttles with a server's status"),
    ("Throttling", 400, Throttled, Throttled, "RDS throttles with a client's status"),
    ("SlowDown", 503, Throttled, Throttled, "S3 throttles"),
    ("SomethingNew", 429, Throttled, Throttled, "the status alone says it"),
    ("UnauthorizedOperation", 403, Denied, Denied, "EC2 denies, also by a condition on tags"),
    ("AccessDeniedException", 400, Denied, Denied, "ECS and EKS deny"),
    ("403", 403, Denied, Denied, "HeadBucket has no body that would say more"),
    ("ExpiredToken", 400, Denied, Denied, "credentials ran out"),
    ("InvalidVpcID.NotFound", 400, NotFound, NotFound, "EC2 says it in the code"),
    ("DBInstanceNotFound", 404, NotFound, NotFound, "RDS"),
    ("ClusterNotFoundException", 400, NotFound, NotFound, "ECS"),
    ("ResourceNotFoundException", 404, NotFound, NotFound, "EKS"),
    ("NoSuchBucket", 404, NotFound, NotFound, "S3"),
    ("NoSuchPublicAccessBlockConfiguration", 404, NotFound, NotFound, "S3 has many that begin like this"),
    ("ServerSideEncryptionConfigurationNotFoundError", 404, NotFound, NotFound, "and one that ends like this"),
    ("404", 404, NotFound, Unreadable, "a bare status may come from something in between"),
    ("SomethingElse", 404, NotFound, Unreadable, "a code that is not known to mean absence"),
    ("InvalidAMIID.NotFound", 400, Invalid, Unreadable, "an image that is missing is a fault of the declaration"),
    ("InvalidKeyPair.NotFound", 400, Invalid, Unreadable, "so is a key pair"),
    ("DependencyViolation", 400, Conflict, Unreadable, "something is still in it"),
    ("IncorrectInstanceState", 400, Conflict, Unreadable, "the machine is not stopped yet"),
    ("ResourceInUseException", 409, Conflict, Unreadable, "EKS is at work"),
    ("InvalidDBInstanceState", 400, Conflict, Unreadable, "RDS is at work"),
    ("BucketNotEmpty", 409, Conflict, Unreadable, "a bucket holds something"),
    ("ClusterContainsServicesException", 400, Conflict, Unreadable, "services are still in the cluster"),
    ("VpcLimitExceeded", 400, LimitReached, Unreadable, "a quota is no throttling: a person must raise it"),
    ("VcpuLimitExceeded", 400, LimitReached, Unreadable, "of instances"),
    ("RulesPerSecurityGroupLimitExceeded", 400, LimitReached, Unreadable, "of rules"),
    ("StorageQuotaExceeded", 400, LimitReached, Unreadable, "RDS"),
    ("InstanceQuotaExceeded", 400, LimitReached, Unreadable, "RDS"),
    ("LimitExceededException", 400, LimitReached, Unreadable, "ECS says it of too many tags"),
    ("ResourceLimitExceededException", 400, LimitReached, Unreadable, "EKS"),
    ("TooManyBuckets", 400, LimitReached, Unreadable, "S3"),
    ("InsufficientInstanceCapacity", 500, Conflict, Unreadable, "AWS is short of machines, which passes"),
    ("BucketAlreadyExists", 409, Invalid, Unreadable, "the name belongs to another account for good"),
    ("InvalidParameterValue", 400, Invalid, Unreadable, "AWS will never take it"),
    ("ValidationError", 400, Invalid, Unreadable, "nor this"),
    ("InternalError", 500, Transient, Unreadable, "a server fault leaves the effect unknown"),
    ("ServiceUnavailable", 503, Transient, Unreadable, "so does this one"),
    ("ReadTimeoutError", 0, Transient, Unreadable, "no answer at all"),
    ("", 400, Invalid, Unreadable, "a refusal without a code"),
]


@pytest.mark.rule("S0")
@pytest.mark.parametrize(("code", "status", "write", "read", "reason"), TABLE, ids=[row[0] or "none" for row in TABLE])
def test_a_refusal_becomes_an_error_of_the_closed_set(
    code: str, status: int, write: type[CloudError], read: type[CloudError], reason: str
) -> None:
    assert type(error_of(Answer("no", code, "r-1", "DoIt", status, is_read=False))) is write, reason
    assert type(error_of(Answer("no", code, "r-1", "DoIt", status, is_read=True))) is read, reason


@pytest.mark.rule("S0", "O17")
def test_the_head_of_a_bucket_has_no_other_way_to_say_that_there_is_none() -> None:
    assert type(error_of(Answer("Not Found", "404", "r-1", "HeadBucket", 404, is_read=True))) is NotFound


def test_an_error_says_the_cause_first_and_how_to_find_it() -> None:
    answer = Answer(
        "The vpc 'vpc-1' has\n dependencies.", "DependencyViolation", "r-1", "DeleteVpc", 400, is_read=False
    )
    error = error_of(answer)
    assert error.message == ("The vpc 'vpc-1' has dependencies (DependencyViolation, DeleteVpc): it is tried again")
    assert (error.code, error.request_id) == ("DependencyViolation", "r-1")
