"""Links inside a cluster: network policies between workloads, and Mappings at a gateway."""

from __future__ import annotations

from typing import Any

import pytest

from tests.linking.test_aws_rules import LS, link
from tests.linking.two_clouds import MAPPINGS, POLICIES, TwoClouds, workload

GATEWAY = {"id": "gateway", "type": "APIManagement.CaaS.Ambassador", "parameters": {"hostname": "api.example.com"}}


def deploy(clouds: TwoClouds, *components: dict[str, Any]) -> None:
    clouds.deploy(LS, *components)
    clouds.settle(at_most=20)


@pytest.mark.rule("L3", "L17")
def test_a_policy_lets_one_workload_reach_one_port_of_another(clouds: TwoClouds) -> None:
    deploy(clouds, workload("producer", link("dashboard", fromPort=8080, protocol="tcp")), workload("dashboard"))
    (policy,) = clouds.objects(POLICIES)
    pods = {"matchLabels": {"app.kubernetes.io/name": "producer"}}
    namespace = {"matchLabels": {"kubernetes.io/metadata.name": "default"}}
    assert policy["spec"]["podSelector"] == {"matchLabels": {"app.kubernetes.io/name": "dashboard"}}
    assert policy["spec"]["ingress"] == [
        {"from": [{"podSelector": pods, "namespaceSelector": namespace}], "ports": [{"port": 8080, "protocol": "TCP"}]}
    ]
    assert policy["metadata"]["annotations"]["fractal.cloud/link"] == "ls-shop/dashboard<ls-shop/producer"
    env = clouds.env("producer")
    assert (env["DASHBOARD_HOST"]["value"], env["DASHBOARD_PORT"]["value"]) == ("dashboard.default.svc", "8080")
    assert clouds.settle() == 1
    clouds.assert_safe()


@pytest.mark.rule("L2")
def test_workloads_that_link_to_each_other_both_come_up(clouds: TwoClouds) -> None:
    deploy(clouds, workload("a", link("b", fromPort=80)), workload("b", link("a", fromPort=81)))
    assert len(clouds.objects(POLICIES)) == 2
    assert {clouds.status(LS, "a"), clouds.status(LS, "b")} == {"Active"}


@pytest.mark.rule("L10", "L14")
def test_a_policy_comes_back_follows_its_link_and_goes_with_it(clouds: TwoClouds) -> None:
    deploy(clouds, workload("a", link("b", fromPort=80)), workload("b"))
    (policy,) = clouds.objects(POLICIES)
    clouds.kube.call("DELETE", f"{POLICIES}/{policy['metadata']['name']}")
    clouds.settle()
    assert len(clouds.objects(POLICIES)) == 1
    deploy(clouds, workload("a", link("b", fromPort=90)), workload("b"))
    (policy,) = clouds.objects(POLICIES)
    assert policy["spec"]["ingress"][0]["ports"] == [{"port": 90, "protocol": "TCP"}]
    deploy(clouds, workload("a"), workload("b"))
    assert clouds.objects(POLICIES) == []
    assert clouds.env("a") == {}


@pytest.mark.rule("L7", "S20")
def test_a_range_of_ports_is_opened_whole_or_refused_in_words(clouds: TwoClouds) -> None:
    """Servers before 1.22 drop the end of a range without a word."""
    deploy(clouds, workload("a", link("b", fromPort=90, toPort=95)), workload("b"))
    (policy,) = clouds.objects(POLICIES)
    (port,) = policy["spec"]["ingress"][0]["ports"]
    if int(clouds.kube.call("GET", "/version")["minor"].rstrip("+")) >= 22:
        assert port == {"port": 90, "endPort": 95, "protocol": "TCP"}
        assert clouds.status(LS, "a") == "Active"
    else:
        assert clouds.status(LS, "a") == "Failed"
        assert "knows no ranges of ports" in clouds.component(LS, "a")["message"]
    assert clouds.settle() == 1


@pytest.mark.rule("L3", "L10")
def test_a_gateway_leads_a_path_to_a_workload(clouds: TwoClouds) -> None:
    shop = workload("shop", link("gateway", prefix="/shop/", hostname="api.example.com", timeoutMs=3000))
    deploy(clouds, GATEWAY, shop)
    (mapping,) = clouds.objects(MAPPINGS)
    assert mapping["spec"] == {
        "hostname": "api.example.com",
        "prefix": "/shop/",
        "service": "shop.default:8080",
        "timeout_ms": 3000,
    }
    assert clouds.output(LS, "shop", "apiGatewayLink.gateway.url") == "http://api.example.com/shop/"
    assert clouds.env("shop")["GATEWAY_URL"]["value"] == "http://api.example.com/shop/"
    deploy(clouds, GATEWAY, workload("shop"))
    assert clouds.objects(MAPPINGS) == []


@pytest.mark.rule("L7")
def test_a_path_that_somebody_else_has_is_not_shared(clouds: TwoClouds) -> None:
    theirs = {
        "apiVersion": "getambassador.io/v3alpha1",
        "kind": "Mapping",
        "metadata": {"name": "theirs"},
        "spec": {"hostname": "api.example.com", "prefix": "/shop/", "service": "other"},
    }
    clouds.kube.call("POST", MAPPINGS, theirs)
    clouds.deploy(LS, GATEWAY, workload("shop", link("gateway", prefix="/shop/", hostname="api.example.com")))
    clouds.cycle(6)
    assert "Mapping 'theirs' leads api.example.com/shop/ somewhere else" in clouds.component(LS, "gateway")["message"]
    assert clouds.objects(MAPPINGS) == []
