"""Secrets of links: a link deletes what bears its mark, and nothing else of that name."""

from __future__ import annotations

import pytest

from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.link_secrets import drop_secret, put_secret
from fractal_cloud.offers.call_context import CallContext, calling_as
from fractal_sandbox import Sandbox
from tests.offers.aws.conftest import World

pytestmark = pytest.mark.usefixtures("with_links")
NAME, MARK = "fractal-cloud/ls-a/db/web", "ls-a/db=ls-a/web"


@pytest.mark.rule("L17", "L10")
def test_a_secret_of_that_name_that_a_person_made_is_left_alone(world: World, cloud: Aws, sandbox: Sandbox) -> None:
    secrets = world.person("secretsmanager")
    secrets.create_secret(Name=NAME, SecretString="theirs")
    with calling_as(CallContext("ls-a", "db", "link")):
        drop_secret(cloud, NAME, MARK)
    assert secrets.get_secret_value(SecretId=NAME)["SecretString"] == "theirs"
    assert sandbox.aws.monitor.violations == []


@pytest.mark.rule("L10")
def test_the_links_own_secret_is_deleted_and_gone_already_is_success(
    world: World, cloud: Aws, sandbox: Sandbox
) -> None:
    with calling_as(CallContext("ls-a", "db", "link")):
        put_secret(cloud, NAME, MARK, {"password": "p"})
        put_secret(cloud, NAME, MARK, {"password": "q"})
        drop_secret(cloud, NAME, MARK)
        drop_secret(cloud, NAME, MARK)
    assert world.person("secretsmanager").list_secrets()["SecretList"] == []
    assert sandbox.aws.monitor.violations == []
