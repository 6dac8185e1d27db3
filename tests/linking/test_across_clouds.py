"""Links from workloads in Kubernetes to a database and a bucket on AWS: two agents, two tokens, sealed secrets."""

from __future__ import annotations

from typing import Any

import boto3
import psycopg
import pytest

from fractal_cloud.offers.aws.link_storage import PATH
from tests.linking.test_aws_database import DATABASE
from tests.linking.test_aws_rules import LS, link
from tests.linking.test_aws_storage import BUCKET
from tests.linking.two_clouds import SECRETS, TwoClouds, workload


def shop(clouds: TwoClouds, *links: dict[str, Any]) -> str:
    mutation = clouds.deploy(LS, DATABASE, BUCKET, workload("shop", *links))
    clouds.settle(at_most=20)
    return mutation


@pytest.mark.rule("L4", "L8", "L9", "L11")
def test_a_workload_logs_in_at_a_database_on_another_cloud(clouds: TwoClouds, database: str) -> None:
    mutation = shop(clouds, link("db", database="orders"))
    kept = clouds.secret()
    with psycopg.connect(kept["url"], autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (id int)")
    env = clouds.env("shop")
    (secret,) = clouds.objects(SECRETS)
    reference = {"name": secret["metadata"]["name"], "key": "password"}
    assert env["DB_PASSWORD"]["valueFrom"]["secretKeyRef"] == reference
    assert env["DB_HOST"]["value"] == "127.0.0.1"
    assert env["DB_DATABASE"]["value"] == "orders"
    assert clouds.mutation(LS, mutation)["status"] == "Completed"
    fields = {**clouds.component(LS, "db")["outputFields"], **clouds.component(LS, "shop")["outputFields"]}
    assert "linkedCredentials.shop.sealed" not in fields, "what was received is not kept, not even sealed"
    assert fields["databaseLink.db.received"] == fields["linkedCredentials.shop.version"]
    for path in (
        "",
        "/components/db",
        "/components/shop",
        "/events",
        "/components/db/journal",
        "/components/shop/journal",
    ):
        assert kept["password"] not in clouds.api.get(f"/livesystems/{LS}{path}").text
    kinds = {event["kind"] for event in clouds.events(LS) if event["componentId"] == "shop"}
    assert "LinkChangeApplied" in kinds
    assert not kinds & {"DriftFound", "DriftCorrected"}, "nobody changed anything by hand"
    assert clouds.settle() == 1
    clouds.assert_safe()


@pytest.mark.rule("L9")
def test_agents_that_start_anew_with_new_keys_change_no_password(clouds: TwoClouds, database: str) -> None:
    shop(clouds, link("db", database="orders"))
    before = clouds.secret()
    clouds.restart_agents()
    clouds.settle(at_most=20)
    assert clouds.secret() == before
    psycopg.connect(before["url"]).close()


@pytest.mark.rule("L14")
def test_a_secret_that_was_deleted_is_sealed_and_stored_anew_and_the_pods_are_rolled(
    clouds: TwoClouds, database: str
) -> None:
    shop(clouds, link("db", database="orders"))
    before = clouds.secret()
    (secret,) = clouds.objects(SECRETS)
    clouds.kube.call("DELETE", f"{SECRETS}/{secret['metadata']['name']}")
    clouds.settle(at_most=20)
    after = clouds.secret()
    assert after["password"] != before["password"]
    psycopg.connect(after["url"]).close()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(before["url"])
    (new,) = clouds.objects(SECRETS)
    assert clouds.env("shop")["DB_PASSWORD"]["valueFrom"]["secretKeyRef"]["name"] == new["metadata"]["name"]
    assert new["metadata"]["name"] != secret["metadata"]["name"]


@pytest.mark.rule("L10")
def test_a_link_taken_away_leaves_nothing_on_either_cloud(clouds: TwoClouds, database: str) -> None:
    shop(clouds, link("db", database="orders"), link("files", access="read-only"))
    kept = {item["metadata"]["name"] for item in clouds.objects(SECRETS)}
    assert len(kept) == 2
    shop(clouds)
    assert clouds.objects(SECRETS) == []
    assert clouds.env("shop") == {}
    assert clouds.person.client("iam").list_users(PathPrefix=PATH)["Users"] == []
    with psycopg.connect(database) as owner:
        assert owner.execute("SELECT count(*) FROM pg_roles WHERE rolname LIKE 'fc\\_%'").fetchone() == (0,)
    clouds.assert_safe()


@pytest.mark.rule("L8", "L9")
def test_a_bucket_is_used_from_another_cloud_with_a_key_for_it_alone(clouds: TwoClouds) -> None:
    shop(clouds, link("files"))
    (user,) = clouds.person.client("iam").list_users(PathPrefix=PATH)["Users"]
    assert user["Path"] == "/fractal-cloud/"
    kept = clouds.secret()
    keys = clouds.person.client("iam").list_access_keys(UserName=user["UserName"])["AccessKeyMetadata"]
    assert [key["AccessKeyId"] for key in keys] == [kept["accessKeyId"]]
    make: Any = boto3.client
    theirs = make(
        "s3",
        endpoint_url=clouds.sandbox.url,
        region_name="eu-west-1",
        aws_access_key_id=kept["accessKeyId"],
        aws_secret_access_key=kept["secretAccessKey"],
    )
    theirs.put_object(Bucket="shop-files", Key="a", Body=b"b")
    assert clouds.env("shop")["FILES_BUCKET"]["value"] == "shop-files"
    assert kept["secretAccessKey"] not in clouds.api.get(f"/livesystems/{LS}/components/files").text
    assert clouds.settle() == 1


@pytest.mark.rule("L12", "L13", "O3")
def test_three_in_the_morning(clouds: TwoClouds, database: str) -> None:
    """A workload's database is in override, its owner is another LiveSystem, and it is on another cloud."""
    clouds.deploy("ls-data", DATABASE)
    clouds.settle(at_most=20)
    imported = {**DATABASE, "importOnly": True}
    clouds.deploy(LS, imported, workload("shop", link("db", database="orders")))
    clouds.settle(at_most=20)
    assert "add 'ls-shop' to its linksFrom" in clouds.component(LS, "shop")["message"]
    assert "add 'ls-shop' to its linksFrom" in clouds.component("ls-data", "db")["message"]
    allowed = {**DATABASE, "linksFrom": [LS]}
    clouds.deploy("ls-data", allowed)
    clouds.settle(at_most=20)
    kept = clouds.secret()
    psycopg.connect(kept["url"]).close()
    assert clouds.component("ls-data", "db")["outputFields"]["linkedCredentials.ls-shop/shop.database"] == "orders"
    arn = clouds.output("ls-data", "db", "dbInstanceArn")
    rds = clouds.person.client("rds")
    rds.remove_tags_from_resource(ResourceName=arn, TagKeys=["managed-by"])
    clouds.settle(at_most=20)
    assert clouds.status("ls-data", "db") == "ManualOverride"
    clouds.deploy(LS, imported, workload("shop"))
    clouds.settle(at_most=20)
    psycopg.connect(kept["url"]).close()  # nothing is revoked during a manual override
    clouds.deploy(LS, imported, workload("shop", link("db", database="orders")))
    clouds.settle(at_most=20)
    psycopg.connect(kept["url"]).close()
    clouds.deploy(LS, imported, workload("shop"))
    clouds.settle(at_most=20)
    tags = [{"Key": "managed-by", "Value": "fractal-cloud"}, {"Key": "fractal-cloud", "Value": "reconcile"}]
    rds.add_tags_to_resource(ResourceName=arn, Tags=tags)
    clouds.settle(at_most=20)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(kept["url"])
    clouds.assert_safe()


@pytest.mark.rule("L17", "L14")
def test_a_secret_of_that_name_that_a_person_made_is_neither_published_nor_changed(clouds: TwoClouds) -> None:
    shop(clouds, link("files"))
    (secret,) = clouds.objects(SECRETS)
    name = secret["metadata"]["name"]
    clouds.kube.call("DELETE", f"{SECRETS}/{name}")
    theirs = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"theirs": "aGFuZHMgb2Zm"}}
    clouds.kube.call("POST", SECRETS, theirs)
    clouds.cycle(3)
    shown = clouds.component(LS, "shop")
    assert f"Secret '{name}' is there and was not made by this link" in shown["message"]
    assert shown["outputFields"]["storageLink.files.secretKeys"] == "accessKeyId,secretAccessKey", "theirs is not read"
    shop(clouds)
    kept = clouds.kube.call("GET", f"{SECRETS}/{name}")
    assert kept["data"] == theirs["data"], "a link that is taken away leaves it, too"
    assert "not made" not in clouds.component(LS, "shop")["message"]
    clouds.assert_safe()
