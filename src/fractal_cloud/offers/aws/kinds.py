"""Kinds of values that several AWS types share, checked when they are declared and so before anything is called."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import IPv4Network, ip_network
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from fractal_cloud.model.component import Component, parameter
from fractal_cloud.model.identity import is_id
from fractal_cloud.model.reference import output_reference

_BUCKET: Final = re.compile(r"(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]\Z")
_DATABASE: Final = re.compile(r"(?!.*--)[a-z]([a-z0-9-]{0,61}[a-z0-9])?\Z")
_ECS: Final = re.compile(r"[A-Za-z0-9_-]{1,255}\Z")
_EKS: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}\Z")
_IPV4: Final = r"^\d{1,3}(\.\d{1,3}){3}/\d{1,2}$"
SMALLEST, LARGEST = 28, 16


def _canonical_block(text: str) -> str:
    try:
        block = IPv4Network(text, strict=False)
    except ValueError as error:
        raise ValueError(f"{text!r} is no IPv4 block: write it like '10.0.0.0/16'") from error
    if not LARGEST <= block.prefixlen <= SMALLEST:
        raise ValueError(f"{text!r} is of the size AWS refuses: take a block between /{LARGEST} and /{SMALLEST}")
    if str(block) != text:
        raise ValueError(f"{text!r} has bits set behind its prefix: write {str(block)!r}")
    return text


def canonical_network(text: str) -> str:
    """A network as AWS writes it, IPv4 or IPv6; raises where it is none."""
    try:
        return str(ip_network(text, strict=False))
    except ValueError as error:
        raise ValueError(f"{text!r} is no network: write it like '10.0.0.0/8' or '::/0'") from error


def bucket_name(name: str) -> str:
    """A name S3 takes for a bucket: 3 to 63 of a-z, 0-9, - and dots; raises where it is none."""
    if not _BUCKET.match(name):
        raise ValueError(
            f"{name!r} is no bucket name: take 3 to 63 of a-z, 0-9, . and -, not beginning or ending with . or -"
        )
    return name


def database_name(name: str) -> str:
    """A name RDS takes for an instance and keeps as it is; raises where it is none."""
    if not _DATABASE.match(name):
        raise ValueError(
            f"{name!r} is no name for a database instance: take up to 63 of a-z, 0-9 and single -, with a letter first"
        )
    return name


def group_name(name: str) -> str:
    """A name EC2 takes for a security group; raises where it is none."""
    if name.lower().startswith("sg-"):
        raise ValueError(f"{name!r} is no name for a security group: it must not start with 'sg-'")
    return name


def ecs_name(name: str) -> str:
    """A name ECS takes for a cluster or a service; raises where it is none."""
    if not _ECS.match(name):
        raise ValueError(f"{name!r} is no name for ECS: take up to 255 letters, digits, - and _")
    return name


def eks_name(name: str) -> str:
    """A name EKS takes for a cluster; raises where it is none."""
    if not _EKS.match(name):
        raise ValueError(f"{name!r} is no name for EKS: take up to 100 letters, digits, - and _, not - or _ first")
    return name


def _id(pattern: str, what: str, example: str, output: str) -> Callable[[str], str]:
    """A check that a text is an id of AWS's form, or stands for one that the agent fills in."""

    def check(text: str) -> str:
        if re.fullmatch(pattern, text) or output_reference(text) is not None:
            return text
        meant = f'; if {text!r} is a component here, write {{"$output": "{text}.{output}"}}' if is_id(text) else ""
        raise ValueError(f"{text!r} is no {what}: write one like {example!r}{meant}")

    return check


def by_output(output: str) -> BeforeValidator:
    """A component stands for its output."""
    return BeforeValidator(lambda value: str(value.output(output)) if isinstance(value, Component) else value)


GroupId = Annotated[
    str,
    AfterValidator(_id(r"sg-[0-9a-f]{8}([0-9a-f]{9})?", "id of a security group", "sg-0123456789abcdef0", "groupId")),
    by_output("groupId"),
]
"""The id of a security group that the agent need not know; a component, in Python, or its output stands for one."""

ImageId = Annotated[
    str,
    AfterValidator(_id(r"ami-([0-9a-z]{8}|[0-9a-z]{17})", "id of an image", "ami-0123456789abcdef0", "ImageId")),
    by_output("ImageId"),
]
"""The id of a machine image, in the form that cfn-lint has for it: AWS answers with the id, whatever stood for it."""

PrefixListId = Annotated[
    str,
    AfterValidator(_id(r"pl-[0-9a-f]{8}([0-9a-f]{9})?", "id of a prefix list", "pl-0123456789abcdef0", "PrefixListId")),
]

TargetGroupArn = Annotated[
    str,
    AfterValidator(
        _id(
            r"arn:[\w-]+:elasticloadbalancing:[\w-]+:\d{12}:targetgroup/.+",
            "ARN of a target group",
            "arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/web/0123456789abcdef",
            "TargetGroupArn",
        )
    ),
]

Arn = Annotated[str, AfterValidator(_id(r"arn:[\w-]+:[\w-]+:[\w-]*:(\d{12}|aws)?:.+", "ARN", "arn:aws:…", "Arn"))]
"""Any ARN; what it names is the business of the parameter."""

KeyArn = Annotated[
    str,
    AfterValidator(
        _id(
            r"arn:[\w-]+:kms:[\w-]+:\d{12}:key/[\w-]+",
            "ARN of a KMS key",
            "arn:aws:kms:eu-west-1:123456789012:key/01234567-89ab-cdef-0123-456789abcdef",
            "Arn",
        )
    ),
    by_output("Arn"),
]
"""The ARN of a key; its aliases are none, for AWS answers with the key itself."""

EncryptionKey = Annotated[
    str,
    AfterValidator(
        _id(
            r"arn:[\w-]+:kms:[\w-]+:\d{12}:(key/[\w-]+|alias/[\w/-]+)|alias/[\w/-]+"
            r"|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|mrk-[0-9a-f]{32}",
            "KMS key: its ARN, its id or an alias",
            "arn:aws:kms:eu-west-1:123456789012:key/01234567-89ab-cdef-0123-456789abcdef",
            "Arn",
        )
    ),
    by_output("Arn"),
]
"""A key as services take it that answer with what they were given."""

RoleArn = Annotated[
    str,
    AfterValidator(
        _id(r"arn:[\w-]+:iam::\d{12}:role/.+", "ARN of a role", "arn:aws:iam::123456789012:role/monitoring", "Arn")
    ),
    by_output("Arn"),
]

InstanceProfile = Annotated[
    str,
    AfterValidator(
        _id(
            r"[\w+=,.@-]{1,128}|arn:[\w-]+:iam::\d{12}:instance-profile/.+",
            "name or ARN of an instance profile",
            "arn:aws:iam::123456789012:instance-profile/web",
            "Arn",
        )
    ),
    by_output("Arn"),
]

Block = Annotated[
    str, StringConstraints(pattern=_IPV4), AfterValidator(_canonical_block), Field(examples=["10.0.0.0/16"])
]
"""The IPv4 block of a VPC or a subnet."""

Network = Annotated[str, AfterValidator(canonical_network)]
"""Any network, brought into AWS's spelling."""

Region = Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-\d+$", examples=["eu-west-1"])]


class AwsComponent(Component):
    """What all components of AWS declare."""

    provider = "aws"

    account: str | None = parameter(
        default=None,
        immutable=True,
        description="Id of the account it is in, or its name in the agent's file of realms; the agent's own account if "
        "not given.",
    )
