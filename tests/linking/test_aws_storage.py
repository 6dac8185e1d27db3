"""Links from AWS to an S3 bucket: a role for that bucket alone, as IAM itself shows it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fractal_cloud.offers.aws.link_storage import PATH
from tests.aws_rights import ACCOUNT
from tests.linking.test_aws_rules import LS, link, machine
from tests.world import World, security_group, subnet, vpc

BUCKET = {"id": "files", "type": "Storage.PaaS.AwsS3", "parameters": {"name": "shop-files", "region": "eu-west-1"}}


def deploy(world: World, *links: dict[str, Any]) -> None:
    shop = machine("shop", "group", *links)
    world.deploy(LS, vpc(), subnet(), security_group("group"), BUCKET, shop)
    world.settle()


def roles(world: World) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.person.client("iam").list_roles(PathPrefix="/fractal-cloud/")["Roles"]
    return found


def actions(world: World, role: str) -> set[str]:
    found = world.person.client("iam").get_role_policy(RoleName=role, PolicyName="bucket")["PolicyDocument"]
    document = json.loads(found) if isinstance(found, str) else found
    assert {part for s in document["Statement"] for part in [s["Resource"].removesuffix("/*")]} == {
        "arn:aws:s3:::shop-files"
    }
    return {action for statement in document["Statement"] for action in statement["Action"]}


@pytest.mark.rule("L8", "L17")
def test_inside_aws_the_source_gets_a_role_for_that_bucket_and_no_key(world: World) -> None:
    deploy(world, link("files"))
    (role,) = roles(world)
    assert "s3:PutObject" in actions(world, role["RoleName"])
    fields = world.component(LS, "shop")["outputFields"]
    assert fields["storageLink.files.roleArn"] == role["Arn"]
    assert fields["storageLink.files.bucket"] == "shop-files"
    tags = world.person.client("iam").list_role_tags(RoleName=role["RoleName"])["Tags"]
    assert {"Key": "fractal-cloud-link", "Value": "ls-shop/files=ls-shop/shop"} in tags
    assert world.person.client("iam").list_users(PathPrefix=PATH)["Users"] == []
    assert world.settle() == 1
    world.assert_safe()


@pytest.mark.rule("L10")
def test_access_is_narrowed_and_taken_away(world: World) -> None:
    deploy(world, link("files"))
    deploy(world, link("files", access="read-only"))
    (role,) = roles(world)
    assert "s3:PutObject" not in actions(world, role["RoleName"])
    deploy(world)
    assert roles(world) == []


@pytest.mark.rule("L14")
def test_a_role_that_was_deleted_by_hand_comes_back(world: World) -> None:
    deploy(world, link("files"))
    (role,) = roles(world)
    iam = world.person.client("iam")
    iam.delete_role_policy(RoleName=role["RoleName"], PolicyName="bucket")
    iam.delete_role(RoleName=role["RoleName"])
    world.settle()
    assert len(roles(world)) == 1


@pytest.mark.rule("L7")
def test_a_bucket_that_is_not_the_target_is_refused_in_words(world: World) -> None:
    deploy(world, link("files", bucket="another"))
    assert "the link asks for bucket 'another', but 'files' is 'shop-files'" in world.component(LS, "files")["message"]
    assert roles(world) == []


@pytest.mark.rule("L17")
def test_a_role_of_that_name_that_a_person_made_is_left_alone(world: World) -> None:
    deploy(world, link("files"))
    (role,) = roles(world)
    name, iam = role["RoleName"], world.person.client("iam")
    iam.delete_role_policy(RoleName=name, PolicyName="bucket")
    iam.delete_role(RoleName=name)
    iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": []}))
    world.settle()
    assert iam.list_role_policies(RoleName=name)["PolicyNames"] == []
    assert f"IAM role '{name}' is there and was not made by this link" in world.component(LS, "files")["message"]
    deploy(world)
    assert iam.get_role(RoleName=name)["Role"]["Path"] == "/"
    assert "not made" not in world.component(LS, "files")["message"]
    world.assert_safe()


BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/fractal-cloud/boundary"


@pytest.mark.rule("A7")
def test_what_a_link_makes_is_held_by_the_boundary(world: World) -> None:
    deploy(world, link("files"))
    (role,) = roles(world)
    found = world.person.client("iam").get_role(RoleName=role["RoleName"])["Role"]
    assert found["PermissionsBoundary"]["PermissionsBoundaryArn"] == BOUNDARY
    assert found["Path"] == PATH


@pytest.mark.rule("A7", "C4")
def test_without_the_boundary_nothing_is_made_and_the_message_says_how_to_create_it(world: World) -> None:
    world.person.client("iam").delete_policy(PolicyArn=BOUNDARY)
    deploy(world, link("files"))
    assert roles(world) == []
    message = world.component(LS, "files")["message"]
    assert f"the permissions boundary {BOUNDARY!r} is not there" in message
    assert "`fractal agent policy --provider aws --boundary` prints" in message
    world.assert_safe()


@pytest.mark.rule("A7", "C4")
@pytest.mark.parametrize("other", ["", "arn:aws:iam::123456789012:policy/wider"])
def test_an_identity_of_a_link_without_the_boundary_gets_no_rights_and_the_message_has_the_command(
    world: World, other: str
) -> None:
    iam = world.person.client("iam")
    deploy(world, link("files"))
    (role,) = roles(world)
    name = role["RoleName"]
    if other:
        iam.create_policy(PolicyName="wider", PolicyDocument=json.dumps(ANYTHING))
        iam.put_role_permissions_boundary(RoleName=name, PermissionsBoundary=other)
    else:
        iam.delete_role_permissions_boundary(RoleName=name)
    deploy(world, link("files", access="read-only"))
    assert "s3:PutObject" in actions(world, name), "nothing was written"
    message = world.component(LS, "files")["message"]
    command = f"`aws iam put-role-permissions-boundary --role-name {name} --permissions-boundary {BOUNDARY}`"
    assert command in message
    iam.put_role_permissions_boundary(RoleName=name, PermissionsBoundary=BOUNDARY)
    world.settle()
    assert "s3:PutObject" not in actions(world, name)
    world.assert_safe()


ANYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
