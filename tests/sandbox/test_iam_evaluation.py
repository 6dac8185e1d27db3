"""The policy language of AWS, by the examples of AWS's own documentation.

Each test names the page of the IAM User Guide that its policy and its outcomes come from; what a page says in words
instead of a table stands here as rows. The rest is what must be an error: anything that is not known.
"""

from __future__ import annotations

from typing import Any

import pytest

from fractal_sandbox.aws.iam_evaluation import AuthorizationRequest, Decision, Policy, PolicyError, decide

KEYS = (
    "aws:MultiFactorAuthPresent",
    "aws:PrincipalTag/*",
    "aws:RequestTag/*",
    "aws:ResourceTag/*",
    "aws:SecureTransport",
    "aws:SourceArn",
    "aws:TagKeys",
    "aws:TokenIssueTime",
    "aws:username",
    "ec2:Attribute",
    "ec2:Attribute/*",
    "ec2:InstanceType",
    "iam:PassedToService",
    "iam:PermissionsBoundary",
    "s3:prefix",
)
ANYTHING = {"Effect": "Allow", "Action": "*", "Resource": "*"}


def policy(*statements: dict[str, Any]) -> Policy:
    return Policy({"Version": "2012-10-17", "Statement": list(statements)}, KEYS)


def asked(action: str, resource: str = "*") -> AuthorizationRequest:
    return AuthorizationRequest(action, resource)


def with_context(action: str, resource: str, context: dict[str, Any]) -> AuthorizationRequest:
    values = {key.lower(): value if isinstance(value, tuple) else (value,) for key, value in context.items()}
    return AuthorizationRequest(action, resource, values)


def outcome(decision: Decision) -> str:
    if decision.is_allowed:
        return "allowed"
    return "explicitly denied" if decision.is_explicit else "implicitly denied"


def applies(statement: dict[str, Any], request: AuthorizationRequest) -> bool:
    """Whether a statement matches a request, as the tables of the documentation say it («Match», «No match»)."""
    return policy(statement).find(request, allows=statement["Effect"] == "Allow") is not None


# --- Policy evaluation logic

CARLOS = policy(
    {
        "Sid": "AllowS3ListRead",
        "Effect": "Allow",
        "Action": ["s3:GetBucketLocation", "s3:ListAllMyBuckets"],
        "Resource": "arn:aws:s3:::*",
    },
    {
        "Sid": "AllowS3Self",
        "Effect": "Allow",
        "Action": "s3:*",
        "Resource": ["arn:aws:s3:::carlossalazar/*", "arn:aws:s3:::carlossalazar"],
    },
    {"Sid": "DenyS3Logs", "Effect": "Deny", "Action": "s3:*", "Resource": "arn:aws:s3:::*log*"},
)
REPORTS = policy(
    {"Sid": "AllowGetList", "Effect": "Allow", "Action": ["iam:Get*", "iam:List*"], "Resource": "*"},
    {"Sid": "DenyReports", "Effect": "Deny", "Action": "iam:*Report", "Resource": "*"},
)


@pytest.mark.parametrize(
    ("of", "action", "resource", "expected"),
    [
        (CARLOS, "s3:PutObject", "arn:aws:s3:::carlossalazar-logs/file", "explicitly denied"),
        (CARLOS, "s3:PutObject", "arn:aws:s3:::carlossalazar/file", "allowed"),
        (CARLOS, "s3:PutObject", "arn:aws:s3:::somebody-else/file", "implicitly denied"),
        (CARLOS, "s3:GetBucketLocation", "arn:aws:s3:::somebody-else", "allowed"),
        (REPORTS, "iam:GetUser", "*", "allowed"),
        (REPORTS, "iam:CreatePolicy", "*", "implicitly denied"),
        (REPORTS, "iam:GetOrganizationsAccessReport", "*", "explicitly denied"),
    ],
)
def test_the_examples_of_policy_evaluation_logic(of: Policy, action: str, resource: str, expected: str) -> None:
    assert outcome(decide(asked(action, resource), [of])) == expected


def test_a_deny_wins_over_what_another_policy_allows() -> None:
    """«Policy evaluation logic»: if someone adds another policy, reports are still denied."""
    wider = policy({"Effect": "Allow", "Action": "iam:GenerateCredentialReport", "Resource": "*"})
    assert outcome(decide(asked("iam:GenerateCredentialReport"), [REPORTS, wider])) == "explicitly denied"


# --- Permissions boundaries for IAM entities

SHIRLEY = policy({"Effect": "Allow", "Action": ["s3:*", "cloudwatch:*", "ec2:*"], "Resource": "*"})
X_COMPANY = "arn:aws:iam::123456789012:policy/XCompanyBoundaries"
ZHANG = policy(
    {
        "Sid": "CreateOrChangeOnlyWithBoundary",
        "Effect": "Allow",
        "Action": [
            "iam:AttachUserPolicy",
            "iam:CreateUser",
            "iam:DeleteUserPolicy",
            "iam:DetachUserPolicy",
            "iam:PutUserPermissionsBoundary",
            "iam:PutUserPolicy",
        ],
        "Resource": "*",
        "Condition": {"StringEquals": {"iam:PermissionsBoundary": X_COMPANY}},
    },
    {
        "Sid": "CloudWatchAndOtherIAMTasks",
        "Effect": "Allow",
        "Action": ["cloudwatch:*", "iam:CreateAccessKey", "iam:GetUser", "iam:SetDefaultPolicyVersion"],
        "Resource": "*",
    },
    {
        "Sid": "NoBoundaryPolicyEdit",
        "Effect": "Deny",
        "Action": [
            "iam:CreatePolicyVersion",
            "iam:DeletePolicy",
            "iam:DeletePolicyVersion",
            "iam:SetDefaultPolicyVersion",
        ],
        "Resource": [X_COMPANY, "arn:aws:iam::123456789012:policy/DelegatedUserBoundary"],
    },
    {
        "Sid": "NoBoundaryUserDelete",
        "Effect": "Deny",
        "Action": "iam:DeleteUserPermissionsBoundary",
        "Resource": "*",
    },
)
ZHANGS_OWN = policy(
    {"Sid": "IAM", "Effect": "Allow", "Action": "iam:*", "Resource": "*"},
    {"Sid": "CloudWatchLimited", "Effect": "Allow", "Action": ["cloudwatch:GetDashboard"], "Resource": "*"},
    {
        "Sid": "S3BucketContents",
        "Effect": "Allow",
        "Action": "s3:ListBucket",
        "Resource": "arn:aws:s3:::ZhangBucket",
    },
)
NIKHIL = "arn:aws:iam::123456789012:user/Nikhil"


def test_a_boundary_limits_and_grants_nothing() -> None:
    """«Permissions boundaries for IAM entities»: ShirleyRodriguez."""
    own = policy({"Effect": "Allow", "Action": "iam:CreateUser", "Resource": "*"})
    assert outcome(decide(asked("iam:CreateUser"), [own], SHIRLEY)) == "implicitly denied"
    assert outcome(decide(asked("s3:GetObject"), [own], SHIRLEY)) == "implicitly denied", "it grants nothing itself"
    assert outcome(decide(asked("s3:GetObject"), [policy(ANYTHING)], SHIRLEY)) == "allowed"
    assert outcome(decide(asked("iam:CreateUser"), [own])) == "allowed", "and without the boundary it would be"


@pytest.mark.parametrize(
    ("action", "resource", "boundary", "expected"),
    [
        ("iam:CreateUser", NIKHIL, X_COMPANY, "allowed"),
        ("iam:CreateUser", NIKHIL, "", "implicitly denied"),
        ("iam:CreateUser", NIKHIL, "arn:aws:iam::aws:policy/AdministratorAccess", "implicitly denied"),
        ("iam:AttachUserPolicy", NIKHIL, X_COMPANY, "allowed"),
        ("iam:AttachUserPolicy", "arn:aws:iam::123456789012:user/Maria", "", "implicitly denied"),
        ("iam:DeleteUserPermissionsBoundary", NIKHIL, X_COMPANY, "explicitly denied"),
        ("iam:CreatePolicyVersion", X_COMPANY, "", "explicitly denied"),
        ("iam:SetDefaultPolicyVersion", X_COMPANY, "", "explicitly denied"),
        ("iam:SetDefaultPolicyVersion", "arn:aws:iam::123456789012:policy/Other", "", "allowed"),
        ("iam:CreateAccessKey", NIKHIL, "", "allowed"),
        ("cloudwatch:GetDashboard", "*", "", "allowed"),
        ("cloudwatch:DeleteDashboards", "*", "", "implicitly denied"),
        ("s3:ListBucket", "arn:aws:s3:::ZhangBucket", "", "implicitly denied"),
    ],
)
def test_who_may_make_users_only_within_a_boundary_is_bound_by_it(
    action: str, resource: str, boundary: str, expected: str
) -> None:
    """«Permissions boundaries for IAM entities»: what María delegates to Zhang."""
    request = with_context(action, resource, {"iam:PermissionsBoundary": boundary} if boundary else {})
    assert outcome(decide(request, [ZHANGS_OWN], ZHANG)) == expected


# --- Multivalued context key examples

TAGS_STARTING = {"Sid": "DenyRestrictedTags", "Effect": "Deny", "Action": ["iam:Tag*", "iam:UnTag*"], "Resource": ["*"]}


@pytest.mark.parametrize(
    ("allowed_keys", "keys", "is_denied"),
    [
        ("key1*", ("key1:legal",), False),
        ("key1*", ("key1:hr", "key1:personnel"), False),
        ("key1*", ("key2:audit",), True),
        ("key1*", (), True),
        (["key1*", "key2*"], ("key1:legal",), False),
        (["key1*", "key2*"], ("key1:hr", "key1:personnel"), False),
        (["key1*", "key2*"], ("key1:hr", "key2:audit"), False),
        (["key1*", "key2*"], ("key3:legal",), True),
        (["key1*", "key2*"], (), True),
    ],
)
def test_the_tables_of_for_all_values(allowed_keys: Any, keys: tuple[str, ...], is_denied: bool) -> None:
    """«Multivalued context key examples»: deny policy with condition set operator ForAllValues."""
    statement = {**TAGS_STARTING, "Condition": {"ForAllValues:StringNotLike": {"aws:TagKeys": allowed_keys}}}
    assert applies(statement, with_context("iam:TagUser", "*", {"aws:TagKeys": keys})) is is_denied


@pytest.mark.parametrize(
    ("keys", "is_denied"),
    [
        (("webserver",), True),
        (("environment", "webserver", "test"), True),
        (("environment", "test"), False),
        ((), False),
    ],
)
def test_the_table_of_for_any_value(keys: tuple[str, ...], is_denied: bool) -> None:
    """«Multivalued context key examples»: deny policy with condition set operator ForAnyValue."""
    statement = {
        "Effect": "Deny",
        "Action": ["ec2:CreateSnapshot", "ec2:CreateSnapshots"],
        "Resource": "arn:aws:ec2:us-west-2::snapshot/*",
        "Condition": {"ForAnyValue:StringEquals": {"aws:TagKeys": "webserver"}},
    }
    request = with_context("ec2:CreateSnapshot", "arn:aws:ec2:us-west-2::snapshot/snap-1", {"aws:TagKeys": keys})
    assert applies(statement, request) is is_denied


def test_for_all_values_with_null_does_not_fit_a_request_without_keys() -> None:
    """«Multivalued context key examples»: a Null of false prevents missing keys from evaluating to true."""
    condition = {"ForAllValues:StringEquals": {"aws:TagKeys": "a"}, "Null": {"aws:TagKeys": "false"}}
    statement = {**ANYTHING, "Condition": condition}
    assert applies(statement, with_context("ec2:DeleteTags", "*", {"aws:TagKeys": ("a",)}))
    assert not applies(statement, with_context("ec2:DeleteTags", "*", {"aws:TagKeys": ()}))
    assert not applies(statement, with_context("ec2:DeleteTags", "*", {"aws:TagKeys": ("",)})), "an empty value is none"


# --- Controlling access to AWS resources using tags


@pytest.mark.parametrize(
    ("tags", "is_allowed"),
    [
        ({"Owner": "richard-roe"}, True),
        ({"owner": "richard-roe"}, True),
        ({"Owner": "somebody"}, False),
        ({}, False),
    ],
)
def test_a_resources_tag_is_compared_whatever_the_case_of_its_key(tags: dict[str, str], is_allowed: bool) -> None:
    """«Controlling access to AWS resources using tags»: controlling access to resources."""
    statement = {
        "Effect": "Allow",
        "Action": ["ec2:StartInstances", "ec2:StopInstances"],
        "Resource": "arn:aws:ec2:*:*:instance/*",
        "Condition": {"StringEquals": {"aws:ResourceTag/Owner": "${aws:username}"}},
    }
    context = {"aws:username": "richard-roe", **{f"aws:ResourceTag/{key}": value for key, value in tags.items()}}
    machine = "arn:aws:ec2:eu-west-1:123456789012:instance/i-1"
    assert applies(statement, with_context("ec2:StartInstances", machine, context)) is is_allowed


@pytest.mark.parametrize(
    ("tags", "is_allowed"),
    [
        ({"environment": "preprod"}, True),
        ({"environment": "production"}, True),
        ({"environment": "test"}, False),
        ({"Environment": "preprod"}, False),
        ({"environment": "preprod", "other": "x"}, False),
        ({}, False),
    ],
)
def test_tags_of_a_request_are_limited_to_a_key_and_its_values(tags: dict[str, str], is_allowed: bool) -> None:
    """«Controlling access to AWS resources using tags»: controlling access during AWS requests."""
    statement = {
        "Effect": "Allow",
        "Action": "ec2:CreateTags",
        "Resource": "arn:aws:ec2:*:*:instance/*",
        "Condition": {
            "StringEquals": {"aws:RequestTag/environment": ["preprod", "production"]},
            "ForAllValues:StringEquals": {"aws:TagKeys": "environment"},
        },
    }
    context = {"aws:TagKeys": tuple(tags), **{f"aws:RequestTag/{key}": value for key, value in tags.items()}}
    machine = "arn:aws:ec2:eu-west-1:123456789012:instance/i-1"
    assert applies(statement, with_context("ec2:CreateTags", machine, context)) is is_allowed


def test_two_tags_that_differ_in_case_alone_match_nothing() -> None:
    """«Controlling access to AWS resources using tags»: controlling tag keys («but not both»)."""
    statement = {**ANYTHING, "Condition": {"StringEquals": {"aws:ResourceTag/TagKey1": "Value1"}}}
    both = AuthorizationRequest("ec2:StopInstances", "*", {"aws:resourcetag/tagkey1": ("Value1", "Value2")})
    with pytest.raises(PolicyError, match="several values"):
        applies(statement, both)


# --- IAM JSON policy elements: Condition operators


@pytest.mark.parametrize(
    ("operator", "wanted", "value", "holds"),
    [
        ("StringEquals", "iamuser-admin", "iamuser-admin", True),
        ("StringEquals", "iamuser-admin", "IAMuser-admin", False),
        ("StringEquals", "iamuser-*", "iamuser-admin", False),
        ("StringEquals", "iamuser-admin", None, False),
        ("StringNotEquals", "iamuser-admin", "iamuser-admin", False),
        ("StringNotEquals", "iamuser-admin", "other", True),
        ("StringNotEquals", "iamuser-admin", None, True),
        ("StringNotEquals", ["a", "b"], "b", False),
        ("StringEqualsIgnoreCase", "iamuser-admin", "IAMuser-admin", True),
        ("StringNotEqualsIgnoreCase", "iamuser-admin", "IAMuser-admin", False),
        ("StringLike", "iamuser-*", "iamuser-admin", True),
        ("StringLike", "iamuser-?", "iamuser-admin", False),
        ("StringLike", "iamuser", "iamuser-admin", False),
        ("StringNotLike", "iamuser-*", "iamuser-admin", False),
        ("StringNotLike", "iamuser-*", None, True),
        ("StringEqualsIfExists", "iamuser-admin", None, True),
        ("StringEqualsIfExists", "iamuser-admin", "other", False),
        ("StringNotEqualsIfExists", "iamuser-admin", None, True),
        ("Null", "true", None, True),
        ("Null", "true", "x", False),
        ("Null", "false", "x", True),
        ("Null", "false", None, False),
    ],
)
def test_string_operators(operator: str, wanted: Any, value: str | None, holds: bool) -> None:
    """«IAM JSON policy elements: Condition operators»: strings, IfExists, Null; and what a missing key means."""
    statement = {**ANYTHING, "Condition": {operator: {"aws:PrincipalTag/job-category": wanted}}}
    context = {} if value is None else {"aws:PrincipalTag/job-category": value}
    assert applies(statement, with_context("iam:CreateAccessKey", "*", context)) is holds


@pytest.mark.parametrize(
    ("operator", "value", "holds"),
    [
        ("Bool", "false", True),
        ("Bool", "true", False),
        ("Bool", None, False),
        ("BoolIfExists", None, True),
    ],
)
def test_boolean_operators(operator: str, value: str | None, holds: bool) -> None:
    """«IAM JSON policy elements: Condition operators»: requests that are not over SSL; NotAction: those without MFA."""
    statement = {**ANYTHING, "Effect": "Deny", "Condition": {operator: {"aws:SecureTransport": "false"}}}
    context = {} if value is None else {"aws:SecureTransport": value}
    assert applies(statement, with_context("s3:GetObject", "*", context)) is holds


FINANCE = "arn:aws:someservice:*:111122223333:finance/*"
STORE = "arn:aws:someservice:us-east-2:999999999999:store/abc:111122223333:finance/document.txt"


@pytest.mark.parametrize(
    ("operator", "value", "holds"),
    [
        ("StringLike", STORE, True),
        ("ArnLike", STORE, False),
        ("ArnEquals", STORE, False),
        ("ArnLike", "arn:aws:someservice:us-east-2:111122223333:finance/document.txt", True),
        ("ArnEquals", "arn:aws:someservice:us-east-2:111122223333:finance/document.txt", True),
        ("ArnNotLike", STORE, True),
        ("ArnNotEquals", "arn:aws:someservice:us-east-2:111122223333:finance/document.txt", False),
        ("ArnLike", None, False),
        ("ArnNotLike", None, True),
        ("ArnLikeIfExists", None, True),
        ("ArnLikeIfExists", STORE, False),
    ],
)
def test_arn_operators_compare_part_by_part(operator: str, value: str | None, holds: bool) -> None:
    """«IAM JSON policy elements: Condition operators»: the pattern that StringLike matches and ArnLike does not."""
    statement = {**ANYTHING, "Condition": {operator: {"aws:SourceArn": FINANCE}}}
    assert applies(statement, with_context("sqs:SendMessage", "*", {"aws:SourceArn": value} if value else {})) is holds


@pytest.mark.parametrize(
    ("operator", "resource", "context", "is_allowed"),
    [
        ("StringLike", "arn:aws:ec2:us-east-1:123456789012:instance/*", {"ec2:InstanceType": "t2.micro"}, True),
        ("StringLike", "arn:aws:ec2:us-east-1::image/ami-1", {}, False),
        ("StringLikeIfExists", "arn:aws:ec2:us-east-1::image/ami-1", {}, True),
        (
            "StringLikeIfExists",
            "arn:aws:ec2:us-east-1:123456789012:instance/*",
            {"ec2:InstanceType": "m5.large"},
            False,
        ),
    ],
)
def test_a_key_that_only_some_resources_have_needs_if_exists(
    operator: str, resource: str, context: dict[str, str], is_allowed: bool
) -> None:
    """«IAM JSON policy elements: Condition operators»: THISPOLICYDOESNOTWORK, and the one that does."""
    statement = {
        "Effect": "Allow",
        "Action": "ec2:RunInstances",
        "Resource": "*",
        "Condition": {operator: {"ec2:InstanceType": ["t1.*", "t2.*", "m3.*"]}},
    }
    assert applies(statement, with_context("ec2:RunInstances", resource, context)) is is_allowed


def test_an_attribute_that_a_request_sets_is_a_condition_key() -> None:
    """«Identity-based policies for Amazon EC2»: ec2:Attribute."""
    image = "arn:aws:ec2:us-east-1::image/ami-1"
    described = {
        "Effect": "Allow",
        "Action": "ec2:ModifyImageAttribute",
        "Resource": "arn:aws:ec2:us-east-1::image/ami-*",
        "Condition": {"StringEquals": {"ec2:Attribute/Description": ["Production", "Development"]}},
    }
    for text, is_allowed in {"Production": True, "Test": False}.items():
        request = with_context("ec2:ModifyImageAttribute", image, {"ec2:Attribute/Description": text})
        assert applies(described, request) is is_allowed
    denied = {**described, "Effect": "Deny", "Condition": {"StringEquals": {"ec2:Attribute": "Description"}}}
    assert applies(denied, with_context("ec2:ModifyImageAttribute", image, {"ec2:Attribute": "Description"}))


# --- IAM JSON policy elements: NotAction, NotResource, Resource, Variables


def test_not_action_matches_everything_else() -> None:
    """«IAM JSON policy elements: NotAction»."""
    but_bucket = {"Effect": "Allow", "NotAction": "s3:DeleteBucket", "Resource": "arn:aws:s3:::*"}
    assert applies(but_bucket, asked("s3:GetObject", "arn:aws:s3:::b/o"))
    assert not applies(but_bucket, asked("s3:DeleteBucket", "arn:aws:s3:::b"))
    assert not applies(but_bucket, asked("s3:ListAllMyBuckets")), "that action requires the resource *"
    assert not applies({"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}, asked("iam:CreateUser"))
    without_mfa = {
        "Effect": "Deny",
        "NotAction": "iam:*",
        "Resource": "*",
        "Condition": {"BoolIfExists": {"aws:MultiFactorAuthPresent": "false"}},
    }
    assert applies(without_mfa, asked("ec2:RunInstances"))
    assert not applies(without_mfa, with_context("ec2:RunInstances", "*", {"aws:MultiFactorAuthPresent": "true"}))
    assert not applies(without_mfa, asked("iam:CreateUser"))


def test_not_resource_matches_all_other_resources() -> None:
    """«IAM JSON policy elements: NotResource»."""
    payroll = ["arn:aws:s3:::HRBucket/Payroll", "arn:aws:s3:::HRBucket/Payroll/*"]
    statement = {"Effect": "Deny", "Action": "s3:*", "NotResource": payroll}
    assert not applies(statement, asked("s3:GetObject", "arn:aws:s3:::HRBucket/Payroll/may"))
    assert applies(statement, asked("s3:GetObject", "arn:aws:s3:::HRBucket/Contracts/may"))


@pytest.mark.parametrize(
    ("pattern", "resource", "fits"),
    [
        ("arn:aws:iam::123456789012:user/accounting/*", "arn:aws:iam::123456789012:user/accounting/Bob", True),
        ("arn:aws:iam::123456789012:user/accounting/*", "arn:aws:iam::123456789012:user/Bob", False),
        ("arn:aws:iam::123456789012:user/accounting/*", "arn:aws:iam::999999999999:user/accounting/Bob", False),
        ("arn:*:iam::*:user/accounting/*", "arn:aws:iam::123456789012:user/accounting/Bob", True),
        ("arn:aws:s3:::my_corporate_bucket/*", "arn:aws:s3:::my_corporate_bucket/a/b:c", True),
        ("arn:aws:s3:::my_corporate_bucket/*", "arn:aws:s3:::my_corporate_bucket", False),
        ("arn:aws:ec2:*:*:instance/i-?", "arn:aws:ec2:eu-west-1:123456789012:instance/i-1", True),
        ("arn:aws:ec2:*:*:instance/i-?", "arn:aws:ec2:eu-west-1:123456789012:instance/I-1", False),
    ],
)
def test_wildcards_of_a_resource(pattern: str, resource: str, fits: bool) -> None:
    """«IAM JSON policy elements: Resource»."""
    assert applies({"Effect": "Allow", "Action": "*", "Resource": pattern}, asked("s3:GetObject", resource)) is fits


def test_actions_are_compared_whatever_their_case() -> None:
    """«IAM JSON policy elements: Action»."""
    statement = {"Effect": "Allow", "Action": "iam:*AccessKey*", "Resource": "*"}
    assert applies(statement, asked("IAM:createaccesskey"))
    assert not applies(statement, asked("iam:CreateUser"))


@pytest.mark.parametrize(
    ("user", "bucket_object", "is_allowed"),
    [
        ("David", "David/file", True),
        ("David", "Adele/file", False),
        (None, "David/file", False),
        ("*", "David/file", False),
    ],
)
def test_a_variable_stands_for_what_the_request_says(user: str | None, bucket_object: str, is_allowed: bool) -> None:
    """«IAM policy elements: Variables and tags»: what is not present makes no match, and a value is no pattern."""
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::mybucket/${aws:username}/*"}
    context = {} if user is None else {"aws:username": user}
    assert applies(statement, with_context("s3:GetObject", f"arn:aws:s3:::mybucket/{bucket_object}", context)) is (
        is_allowed
    )


@pytest.mark.parametrize(
    ("prefix", "user", "is_allowed"),
    [("David/", "David", True), ("Adele/", "David", False), ("anybody/", None, False), ("public/", None, True)],
)
def test_a_variable_in_a_condition_may_have_a_default(prefix: str, user: str | None, is_allowed: bool) -> None:
    """«IAM policy elements: Variables and tags»: specifying default values."""
    wanted = "${aws:username, 'public'}/*"
    statement = {**ANYTHING, "Condition": {"StringLike": {"s3:prefix": wanted}}}
    context = {"s3:prefix": prefix, **({"aws:username": user} if user else {})}
    assert applies(statement, with_context("s3:ListBucket", "arn:aws:s3:::b", context)) is is_allowed


def test_a_wildcard_in_braces_is_itself() -> None:
    """«IAM policy elements: Variables and tags»: special characters."""
    statement = {"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::b/${*}/${?}${$}"}
    assert applies(statement, asked("s3:GetObject", "arn:aws:s3:::b/*/?$"))
    assert not applies(statement, asked("s3:GetObject", "arn:aws:s3:::b/x/y$"))


# --- what is not known


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ({**ANYTHING, "Principal": "*"}, "element 'Principal'"),
        ({**ANYTHING, "Condition": {"NumericLessThan": {"aws:TagKeys": "1"}}}, "operator 'NumericLessThan'"),
        ({**ANYTHING, "Condition": {"IpAddress": {"aws:TagKeys": "10.0.0.0/8"}}}, "operator 'IpAddress'"),
        (
            {**ANYTHING, "Condition": {"ForSomeValues:StringEquals": {"aws:TagKeys": "a"}}},
            "'ForSomeValues:StringEquals'",
        ),
        ({**ANYTHING, "Condition": {"NullIfExists": {"aws:TagKeys": "true"}}}, "operator 'NullIfExists'"),
        ({**ANYTHING, "Condition": {"Null": {"aws:TagKeys": "maybe"}}}, "neither true nor false"),
        ({**ANYTHING, "Condition": {"StringEquals": {"aws:SourceVpc": "vpc-1"}}}, "condition key 'aws:SourceVpc'"),
        ({**ANYTHING, "Condition": {"StringEquals": {"aws:ResourceTagged/a": "b"}}}, "'aws:ResourceTagged/a'"),
        ({**ANYTHING, "Condition": {"StringEquals": {}}}, "without condition keys"),
        ({**ANYTHING, "Condition": {"StringEquals": {"aws:TagKeys": 1}}}, "neither a text nor a list of texts"),
        ({**ANYTHING, "Resource": "${aws:userid}"}, "no ARN"),
        ({**ANYTHING, "Resource": "arn:aws:s3:::${aws:userid}"}, "variable 'aws:userid'"),
        ({**ANYTHING, "Resource": "arn:aws:s3::${aws:username}:b"}, "before the last part"),
        ({**ANYTHING, "Resource": "arn:aws:s3:::${aws:username"}, "cannot be read"),
        ({**ANYTHING, "Resource": "bucket"}, "no ARN"),
        ({**ANYTHING, "Action": "RunInstances"}, "names no service"),
        ({**ANYTHING, "NotAction": "iam:*"}, "either Action or NotAction"),
        ({"Effect": "Allow", "Action": "*"}, "either Resource or NotResource"),
        ({**ANYTHING, "Effect": "Maybe"}, "effect 'Maybe'"),
        ("Allow", "no object"),
    ],
)
def test_what_is_not_known_is_an_error(statement: Any, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        policy(statement)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"Version": "2008-10-17", "Statement": [ANYTHING]}, "version '2008-10-17'"),
        ({"Statement": [ANYTHING]}, "version None"),
        ({"Version": "2012-10-17"}, "without statements"),
        ({"Version": "2012-10-17", "Statement": []}, "without statements"),
        ({"Version": "2012-10-17", "Statement": [ANYTHING], "Rules": []}, "element 'Rules'"),
    ],
)
def test_a_document_of_another_form_is_an_error(document: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        Policy(document, KEYS)
