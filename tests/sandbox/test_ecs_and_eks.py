"""The sandbox's ECS and EKS where moto alone would differ from the real ones."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fractal_sandbox import Sandbox
from tests.sandbox.conftest import Tools
from tests.sandbox.making import as_list, error_of, make_eks, make_service, make_vpc, tags_for


def cluster_of(tools: Tools, name: str = "kube") -> Any:
    return tools.eks.describe_cluster(name=name)["cluster"]


def service_of(tools: Tools, name: str = "web", cluster: str = "c") -> Any:
    return tools.ecs.describe_services(cluster=cluster, services=[name], include=["TAGS"])["services"][0]


def test_a_cluster_created_again_is_the_one_there_is_with_its_tags(person: Tools) -> None:
    person.ecs.create_cluster(clusterName="c", tags=as_list(tags_for(), "key", "value"))
    again = person.ecs.create_cluster(clusterName="c")["cluster"]
    assert again["status"] == "ACTIVE"
    (shown,) = person.ecs.describe_clusters(clusters=["c"], include=["TAGS"])["clusters"]
    assert shown["tags"] == as_list(tags_for(), "key", "value")


def test_an_untagged_cluster_shows_an_empty_list_of_tags(person: Tools) -> None:
    person.ecs.create_cluster(clusterName="c")
    assert person.ecs.describe_clusters(clusters=["c"], include=["TAGS"])["clusters"][0]["tags"] == []


def test_a_service_created_again_is_refused_unless_the_token_is_the_same(person: Tools) -> None:
    arn = make_service(person, clientToken="once", tags=as_list(tags_for(), "key", "value"))
    assert make_service(person, clientToken="once", tags=as_list(tags_for(), "key", "value")) == arn
    others: list[dict[str, Any]] = [{}, {"clientToken": "other"}]
    for more in others:
        with pytest.raises(ClientError) as refused:
            make_service(person, **more)
        assert error_of(refused) == ("InvalidParameterException", 400)
        assert "Creation of service was not idempotent" in str(refused.value)
    assert service_of(person)["tags"] == as_list(tags_for(), "key", "value")


def test_the_tasks_of_a_service_come_up(person: Tools) -> None:
    make_service(person, count=2)
    assert service_of(person)["runningCount"] == 2
    person.ecs.get_waiter("services_stable").wait(cluster="c", services=["web"], WaiterConfig={"MaxAttempts": 1})
    person.ecs.update_service(cluster="c", service="web", desiredCount=3)
    assert service_of(person)["runningCount"] == 3
    assert service_of(person)["deployments"][0]["rolloutState"] == "COMPLETED"


def test_a_slow_rollout_keeps_the_old_count_for_a_while(sandbox: Sandbox, person: Tools) -> None:
    sandbox.aws.knobs.slow_creation(reads=1, kind="ecs-service")
    sandbox.aws.knobs.slow_modification(reads=1, kind="ecs-service")
    make_service(person, count=2)
    assert [service_of(person)["runningCount"] for _ in range(2)] == [0, 2]
    person.ecs.update_service(cluster="c", service="web", desiredCount=3)
    shown = [service_of(person) for _ in range(2)]
    assert [one["runningCount"] for one in shown] == [2, 3]
    assert [one["deployments"][0]["rolloutState"] for one in shown] == ["IN_PROGRESS", "COMPLETED"]


def test_at_most_ten_services_are_described_and_ten_are_listed_at_once(person: Tools) -> None:
    for number in range(12):
        make_service(person, f"web-{number}")
    first = person.ecs.list_services(cluster="c")
    assert len(first["serviceArns"]) == 10
    assert len(person.ecs.list_services(cluster="c", nextToken=first["nextToken"])["serviceArns"]) == 2
    assert len(person.ecs.list_services(cluster="c", maxResults=100)["serviceArns"]) == 12
    with pytest.raises(ClientError, match="InvalidParameterException"):
        person.ecs.describe_services(cluster="c", services=[f"web-{number}" for number in range(11)])


def test_clusters_come_in_pages_of_the_wanted_size(person: Tools) -> None:
    for number in range(3):
        person.ecs.create_cluster(clusterName=f"c-{number}")
    first = person.ecs.list_clusters(maxResults=2)
    assert len(first["clusterArns"]) == 2
    assert len(person.ecs.list_clusters(maxResults=2, nextToken=first["nextToken"])["clusterArns"]) == 1


def test_services_are_listed_only_for_their_own_cluster(person: Tools) -> None:
    make_service(person, cluster="blue")
    person.ecs.create_cluster(clusterName="ue")
    assert person.ecs.list_services(cluster="ue")["serviceArns"] == []


@pytest.mark.rule("S13")
def test_dead_services_and_clusters_are_described_but_not_listed(sandbox: Sandbox, person: Tools) -> None:
    make_service(person)
    sandbox.aws.knobs.slow_deletion(reads=1, kind="ecs-service")
    person.ecs.delete_service(cluster="c", service="web", force=True)
    assert person.ecs.list_services(cluster="c")["serviceArns"] == []
    with pytest.raises(ClientError, match="ServiceNotActiveException"):
        person.ecs.update_service(cluster="c", service="web", desiredCount=1)
    assert [service_of(person)["status"] for _ in range(2)] == ["DRAINING", "INACTIVE"]
    person.ecs.delete_cluster(cluster="c")
    assert person.ecs.list_clusters()["clusterArns"] == []
    assert person.ecs.describe_clusters(clusters=["c"])["clusters"][0]["status"] == "INACTIVE"
    with pytest.raises(ClientError, match="ClusterNotFoundException"):
        person.ecs.create_service(cluster="c", serviceName="new", taskDefinition="web", desiredCount=0)


def test_a_cluster_with_a_service_stays(person: Tools) -> None:
    make_service(person)
    with pytest.raises(ClientError) as refused:
        person.ecs.delete_cluster(cluster="c")
    assert error_of(refused) == ("ClusterContainsServicesException", 400)
    person.ecs.delete_service(cluster="c", service="web", force=True)
    person.ecs.delete_cluster(cluster="c")


def test_an_eks_cluster_shows_its_settings_and_the_defaults(person: Tools) -> None:
    vpc = make_vpc(person)
    subnet = person.ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"]
    role = "arn:aws:iam::123456789012:role/eks"
    wanted = {"subnetIds": [subnet], "endpointPrivateAccess": True}
    person.eks.create_cluster(name="kube", roleArn=role, resourcesVpcConfig=wanted, deletionProtection=True)
    shown = cluster_of(person)
    assert shown["resourcesVpcConfig"]["vpcId"] == vpc
    assert shown["resourcesVpcConfig"]["endpointPublicAccess"] is True
    assert shown["resourcesVpcConfig"]["endpointPrivateAccess"] is True
    assert shown["deletionProtection"] is True
    assert shown["accessConfig"]["authenticationMode"] == "CONFIG_MAP"
    with pytest.raises(ClientError, match="InvalidRequestException"):
        person.eks.delete_cluster(name="kube")


def test_an_update_merges_into_the_configuration_and_answers_with_an_update(person: Tools) -> None:
    make_eks(person)
    person.eks.update_cluster_config(name="kube", resourcesVpcConfig={"publicAccessCidrs": ["10.0.0.0/8"]})
    update = person.eks.update_cluster_config(name="kube", resourcesVpcConfig={"endpointPrivateAccess": True})["update"]
    assert update["status"] == "InProgress"
    shown = cluster_of(person)["resourcesVpcConfig"]
    assert (shown["publicAccessCidrs"], shown["endpointPrivateAccess"]) == (["10.0.0.0/8"], True)
    assert person.eks.describe_update(name="kube", updateId=update["id"])["update"]["status"] == "Successful"
    assert update["id"] in person.eks.list_updates(name="kube")["updateIds"]


def test_an_update_changes_one_kind_of_setting_and_must_change_something(person: Tools) -> None:
    make_eks(person)
    logging = {"clusterLogging": [{"types": ["api"], "enabled": True}]}
    with pytest.raises(ClientError, match="InvalidParameterException"):
        person.eks.update_cluster_config(
            name="kube", resourcesVpcConfig={"endpointPrivateAccess": True}, logging=logging
        )
    person.eks.update_cluster_config(name="kube", logging=logging)
    shown = {one["enabled"]: one["types"] for one in cluster_of(person)["logging"]["clusterLogging"]}
    assert shown[True] == ["api"]
    assert set(shown[False]) == {"audit", "authenticator", "controllerManager", "scheduler"}
    with pytest.raises(ClientError, match="already at the desired configuration"):
        person.eks.update_cluster_config(name="kube", logging=logging)


def test_the_version_goes_up_one_minor_at_a_time(person: Tools) -> None:
    make_eks(person, version="1.30")
    with pytest.raises(ClientError, match="InvalidParameterException"):
        person.eks.update_cluster_version(name="kube", version="1.32")
    assert person.eks.update_cluster_version(name="kube", version="1.31")["update"]["type"] == "VersionUpdate"
    assert cluster_of(person)["version"] == "1.31"


def test_one_update_at_a_time(sandbox: Sandbox, person: Tools) -> None:
    make_eks(person)
    sandbox.aws.knobs.slow_modification(reads=1, kind="eks-cluster")
    update = person.eks.update_cluster_config(name="kube", resourcesVpcConfig={"endpointPrivateAccess": True})["update"]
    assert person.eks.describe_update(name="kube", updateId=update["id"])["update"]["status"] == "InProgress"
    with pytest.raises(ClientError) as refused:
        person.eks.update_cluster_config(name="kube", deletionProtection=True)
    assert error_of(refused) == ("ResourceInUseException", 409)
    assert [cluster_of(person)["status"] for _ in range(2)] == ["UPDATING", "ACTIVE"]
    assert person.eks.describe_update(name="kube", updateId=update["id"])["update"]["status"] == "Successful"
    person.eks.update_cluster_config(name="kube", deletionProtection=True)


def test_several_tags_of_a_cluster_go_in_one_call(person: Tools) -> None:
    make_eks(person)
    arn = cluster_of(person)["arn"]
    person.eks.tag_resource(resourceArn=arn, tags={"a": "1", "b": "2", "c": "3"})
    person.eks.untag_resource(resourceArn=arn, tagKeys=["a", "b"])
    assert set(cluster_of(person)["tags"]) & {"a", "b", "c"} == {"c"}
