"""What is peculiar to services, policies, claims, machines and gateways."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fractal_cloud.model.errors import DeclarationError
from fractal_cloud.model.sighting import Condition
from fractal_cloud.offers.kubernetes import claim as claim_module
from fractal_cloud.offers.kubernetes.claim import KubernetesPersistentVolumeClaimOffer
from fractal_cloud.offers.kubernetes.errors import Answer, is_unknown_kind
from fractal_cloud.offers.kubernetes.network_policy import KubernetesNetworkPolicy
from fractal_cloud.offers.kubernetes.policy_rules import KubernetesNetworkPolicyRule, from_rules, to_rules
from fractal_cloud.offers.kubernetes.service import KubernetesService
from fractal_cloud.offers.kubernetes.virtual_machine import KubernetesVirtualMachine, KubernetesVirtualMachineOffer
from tests.offers.kubernetes.declaring import claim, gateway, machine, policy, service, workload
from tests.offers.kubernetes.real import KUBECONFIG
from tests.offers.kubernetes.worlds import KubernetesWorld

Json = dict[str, Any]


def there(world: KubernetesWorld, plural: str, name: str) -> Json:
    found = world.kube.get(plural, name)
    assert found is not None
    return found


# --- what admission refuses is no lack of rights


QUOTAS = "/api/v1/namespaces/default/resourcequotas"


def limit_services(world: KubernetesWorld) -> None:
    """Let nobody create a Service: by a quota whose use the test writes, where no controller counts it."""
    if not KUBECONFIG:
        world.cloud.admission.limit("Service", 0)
        return
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}}
    made = world.kube.call("POST", QUOTAS, {**quota, "spec": {"hard": {"services": "0"}}})
    used = {"hard": {"services": "0"}, "used": {"services": "0"}}
    world.kube.call("PUT", f"{QUOTAS}/small/status", {**made, "status": used})


def lift_the_limit(world: KubernetesWorld) -> None:
    if KUBECONFIG:
        world.kube.call("DELETE", f"{QUOTAS}/small")
    else:
        world.cloud.admission.reset()


@pytest.mark.rule("S21")
def test_a_quota_that_is_used_up_is_reported_as_one(world: KubernetesWorld) -> None:
    limit_services(world)
    world.deploy("ls-a", service(workload=None, selector={"app": "x"}))
    world.cycle(2)
    shown = world.component("ls-a", "front")
    assert shown["status"] == "Failed"
    assert "exceeded quota: small" in shown["message"]
    assert "raise the limit" in shown["message"]
    assert "allow it to the agent" not in shown["message"]
    lift_the_limit(world)
    world.deploy("ls-a", service(workload=None, selector={"app": "x"}))
    world.settle()
    assert world.status("ls-a", "front") == "Active"


@pytest.mark.rule("S21")
def test_a_namespace_that_is_being_terminated_is_a_conflict_that_passes(world: KubernetesWorld) -> None:
    name = {"metadata": {"name": "shop", "finalizers": ["example.com/wait"]}}
    world.kube.call("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", **name})
    world.kube.call("DELETE", "/api/v1/namespaces/shop")
    world.deploy("ls-a", service(workload=None, selector={"app": "x"}, namespace="shop"))
    world.cycle(2)
    message = world.component("ls-a", "front")["message"]
    assert "being terminated" in message
    assert "allow it to the agent" not in message


@pytest.mark.rule("S0", "O17")
def test_a_kind_that_was_taken_away_while_its_group_stands_proves_nothing() -> None:
    status: Json = {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "details": {}}
    status["message"] = "the server could not find the requested resource"
    assert is_unknown_kind(Answer(404, json.dumps(status), "", "GET /apis/kubevirt.io/v1/…", is_read=True))
    status["details"] = {"name": "box"}
    assert not is_unknown_kind(Answer(404, json.dumps(status), "", "GET /apis/kubevirt.io/v1/…", is_read=True))


# --- services


@pytest.mark.rule("S13")
def test_a_load_balancer_without_address_is_still_being_made_and_can_be_taken_back(world: KubernetesWorld) -> None:
    with world.slow_creation(60):
        world.deploy("ls-a", service(workload=None, selector={"app": "x"}, serviceType="LoadBalancer"))
        world.cycle()
        front = world.component("ls-a", "front")
        assert front["status"] == "Instantiating"
        assert "outside address" in front["message"]
        world.deploy("ls-a", service(workload=None, selector={"app": "x"}, serviceType="ClusterIP"))
        world.cycle()
    world.settle()
    assert there(world, "services", "front")["spec"]["type"] == "ClusterIP"
    assert world.status("ls-a", "front") == "Active"


def test_a_service_publishes_where_it_is_reached(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload(), service(targetPort="http", serviceType="LoadBalancer"))
    world.settle()
    fields = world.component("ls-a", "front")["outputFields"]
    assert fields["host"] == "front.default.svc"
    assert fields["port"] == 80
    assert fields["targetPort"] == "http"
    assert fields["clusterIP"]
    assert fields["loadBalancerIngress"]


def test_further_ports_of_a_service_are_left_alone(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload(), service())
    world.settle()
    item = there(world, "services", "front")
    item["spec"]["ports"][0]["name"] = "web"
    item["spec"]["ports"].append({"name": "extra", "port": 9000, "protocol": "TCP"})
    world.kube.call("PUT", world.kube.path("services", "front"), item)
    world.deploy("ls-a", workload(), service(port=81))
    world.settle()
    assert [one["port"] for one in there(world, "services", "front")["spec"]["ports"]] == [81, 9000]


def put_ports(world: KubernetesWorld, *ports: Json) -> None:
    """A person writes all ports of the service anew."""
    item = there(world, "services", "front")
    item["spec"]["ports"] = list(ports)
    world.kube.call("PUT", world.kube.path("services", "front"), item)


@pytest.mark.rule("S12", "G15")
def test_a_port_that_somebody_puts_first_is_neither_taken_for_ours_nor_written(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload(), service())
    world.settle()
    theirs = {"name": "metrics", "port": 9100, "protocol": "TCP", "targetPort": 9100}
    ours = {"name": "web", "port": 80, "protocol": "TCP", "targetPort": 80}
    put_ports(world, theirs, ours)
    world.settle()
    shown = world.component("ls-a", "front")
    assert shown["status"] == "Active", shown["message"]
    assert "drift" not in shown["outputFields"]
    assert shown["outputFields"]["port"] == 80
    world.deploy("ls-a", workload(), service(port=81))
    world.settle()
    assert there(world, "services", "front")["spec"]["ports"] == [theirs, {**ours, "port": 81, "targetPort": 81}]
    assert world.output("ls-a", "front", "port") == 81


@pytest.mark.rule("S12")
def test_a_port_of_ours_that_is_gone_among_others_is_added_beside_them(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload(), service())
    world.settle()
    theirs = [{"name": f"port-{n}", "port": n, "protocol": "TCP", "targetPort": n} for n in (9100, 9200)]
    put_ports(world, *theirs)
    world.settle()
    ports = there(world, "services", "front")["spec"]["ports"]
    assert ports[:2] == theirs
    assert [(one["name"], one["port"], one["targetPort"]) for one in ports[2:]] == [("main", 80, 80)]
    assert world.status("ls-a", "front") == "Active"


@pytest.mark.rule("S12", "G15")
def test_the_target_follows_the_port_unless_somebody_chose_another(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload(), service())
    world.settle()
    world.deploy("ls-a", workload(), service(port=81))
    world.settle()
    [port] = there(world, "services", "front")["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (81, 81)
    put_ports(world, {**port, "targetPort": 8080})
    world.deploy("ls-a", workload(), service(port=82))
    world.settle()
    [port] = there(world, "services", "front")["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (82, 8080), "an undeclared target is left as somebody set it"


@pytest.mark.rule("S12", "G15")
def test_a_container_port_that_somebody_puts_first_is_left_alone(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload(containerPort=8080))
    world.settle()
    item = there(world, "deployments", "web")
    [container] = item["spec"]["template"]["spec"]["containers"]
    theirs = {"name": "debug", "containerPort": 5005, "protocol": "TCP"}
    container["ports"] = [theirs, *container["ports"]]
    world.kube.call("PUT", world.kube.path("deployments", "web"), item)
    world.settle()
    assert world.drift("ls-a", "web") is None
    world.deploy("ls-a", workload(containerPort=8081))
    world.settle()
    [container] = there(world, "deployments", "web")["spec"]["template"]["spec"]["containers"]
    assert [one["containerPort"] for one in container["ports"]] == [5005, 8081]


def test_which_pods_are_meant_is_said_once() -> None:
    with pytest.raises(DeclarationError, match="give one of them"):
        KubernetesService(id="a", port=80, workload="web", selector={"app": "x"})
    with pytest.raises(DeclarationError, match="give either workload or podSelector"):
        KubernetesNetworkPolicy(id="a")
    with pytest.raises(DeclarationError, match="give either image or volumeClaim"):
        KubernetesVirtualMachine(id="a")


# --- network policies


RULES: list[Json] = [
    {},
    {"cidr": "10.0.0.0/8"},
    {"cidr": "10.0.0.0/8", "port": 443},
    {"podSelector": "app=web,tier=front", "port": "http", "protocol": "UDP"},
    {"namespaceSelector": "", "podSelector": ""},
    {"namespaceSelector": "team=a", "port": 8000, "endPort": 8100},
]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_rules_come_back_as_they_were_declared(rule: Json) -> None:
    declared = KubernetesNetworkPolicyRule.model_validate(rule)
    assert from_rules(to_rules([declared], "from"), "from") == [rule]


def test_what_kubernetes_bundles_is_listed_one_by_one() -> None:
    ports = [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]
    block = {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}
    odd = {"podSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["c", "b"]}]}}
    assert from_rules([{"from": [block, odd], "ports": ports}], "from") == [
        {"cidr": "10.0.0.0/8 except 10.1.0.0/16", "port": 80},
        {"cidr": "10.0.0.0/8 except 10.1.0.0/16", "port": 53, "protocol": "UDP"},
        {"podSelector": "a in (b,c)", "port": 80},
        {"podSelector": "a in (b,c)", "port": 53, "protocol": "UDP"},
    ]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"cidr": "10.0.0.1/8"}, "write '10.0.0.0/8'"),
        ({"cidr": "10.0.0.0/8", "podSelector": ""}, "not both"),
        ({"podSelector": "b in (x)"}, "no list of labels"),
        ({"protocol": "UDP"}, "give one"),
        ({"port": 80, "protocol": "ICMP"}, "must be one of 'TCP', 'UDP', 'SCTP'"),
        ({"podSelector": {"a b": "c"}}, "podSelector"),
    ],
)
def test_a_rule_that_means_nothing_is_refused_when_it_is_declared(rule: Json, said: str) -> None:
    with pytest.raises(DeclarationError, match=said):
        KubernetesNetworkPolicy.from_parameters("a", {"podSelector": {}, "ingress": [rule]})


def test_a_policy_may_be_about_all_pods_and_allow_nobody(world: KubernetesWorld) -> None:
    world.deploy("ls-a", policy(ingress=[]))
    world.settle()
    assert there(world, "networkpolicies", "fence")["spec"]["podSelector"] == {}
    assert world.output("ls-a", "fence", "podSelector") == {}
    world.kube.merge("networkpolicies", "fence", {"spec": {"podSelector": {"matchLabels": {"app": "x"}}}})
    world.cycle()
    world.settle()
    assert there(world, "networkpolicies", "fence")["spec"]["podSelector"] == {}


# --- claims


def _claim(phase: str, **more: Any) -> Json:
    spec = {"storageClassName": "lazy", "resources": {"requests": {"storage": "2Gi"}}}
    return {"metadata": {}, "spec": spec, "status": {"phase": phase, **more}}


@pytest.mark.rule("S13")
@pytest.mark.parametrize(
    ("item", "lazy", "expected"),
    [
        (_claim("Pending"), frozenset(), Condition.CREATING),
        (_claim("Pending"), frozenset({"lazy"}), Condition.SETTLED),
        (_claim("Lost"), frozenset(), Condition.BROKEN),
        (_claim("Bound", capacity={"storage": "2Gi"}), frozenset(), Condition.SETTLED),
        (_claim("Bound", capacity={"storage": "1Gi"}), frozenset(), Condition.CHANGING),
        (
            _claim(
                "Bound",
                capacity={"storage": "1Gi"},
                conditions=[{"type": "FileSystemResizePending", "status": "True"}],
            ),
            frozenset(),
            Condition.SETTLED,
        ),
    ],
)
def test_the_phase_of_a_claim(item: Json, lazy: frozenset[str], expected: Condition) -> None:
    assert KubernetesPersistentVolumeClaimOffer().state(item, lazy)[0] is expected


@pytest.mark.rule("O15")
def test_a_claim_whose_data_would_go_with_it_is_not_deleted(
    world: KubernetesWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.deploy("ls-a", claim())
    world.settle()
    policies = {"now": "Delete"}
    monkeypatch.setattr(claim_module, "_policy", lambda *_: policies["now"])
    world.delete("ls-a")
    world.cycle(2)
    data = world.component("ls-a", "data")
    assert data["status"] == "Failed"
    assert "reclaim policy is Delete" in data["message"]
    assert world.kube.get("persistentvolumeclaims", "data") is not None
    policies["now"] = "Retain"
    world.settle()
    assert world.kube.get("persistentvolumeclaims", "data") is None


@pytest.mark.rule("S4a")
def test_a_claim_that_vanished_is_not_replaced_by_an_empty_one(world: KubernetesWorld) -> None:
    world.deploy("ls-a", claim())
    world.settle()
    world.kube.delete("persistentvolumeclaims", "data")
    world.cycle(3)
    assert world.status("ls-a", "data") == "Missing"
    world.deploy("ls-a", claim())
    world.settle()
    assert world.status("ls-a", "data") == "Active"


# --- machines


def test_a_machine_with_the_older_running_flag_is_understood_and_changed(world: KubernetesWorld) -> None:
    world.deploy("ls-a", machine())
    world.settle()
    item = there(world, "virtualmachines", "box")
    item["spec"].pop("runStrategy")
    item["spec"]["running"] = False
    world.kube.call("PUT", world.kube.path("virtualmachines", "box"), item)
    world.cycle()
    world.settle()
    spec = there(world, "virtualmachines", "box")["spec"]
    assert (spec.get("runStrategy"), spec.get("running")) == ("Always", None), "running is enforced as if declared"


def test_a_machine_says_when_a_change_waits_for_its_next_start(world: KubernetesWorld) -> None:
    world.deploy("ls-a", machine(cpu=1))
    world.settle()
    waiting = {"conditions": [{"type": "RestartRequired", "status": "True"}]}
    world.kube.merge("virtualmachines", "box", {"status": waiting}, sub="status")
    world.cycle()
    assert world.output("ls-a", "box", "restartRequired") is True
    warnings = KubernetesVirtualMachineOffer().warnings(["cpu", "runStrategy"])
    assert warnings == ["cpu: takes effect when the machine is started the next time", "may stop or start the machine"]


@pytest.mark.rule("S13")
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, Condition.CREATING),
        ({"printableStatus": "Provisioning"}, Condition.CREATING),
        ({"printableStatus": "Starting", "created": True}, Condition.CHANGING),
        ({"printableStatus": "Running"}, Condition.SETTLED),
        ({"printableStatus": "Stopped"}, Condition.SETTLED),
        ({"printableStatus": "ErrorUnschedulable"}, Condition.BROKEN),
        ({"printableStatus": "CrashLoopBackOff"}, Condition.BROKEN),
    ],
)
def test_the_status_of_a_machine(status: Json, expected: Condition) -> None:
    assert KubernetesVirtualMachineOffer().state({"metadata": {}, "spec": {}, "status": status}, None)[0] is expected


# --- gateways


def test_a_gateway_publishes_the_address_of_the_service_in_front_of_emissary(world: KubernetesWorld) -> None:
    world.kube.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "emissary"}})
    labels = {"app.kubernetes.io/component": "ambassador-service"}
    spec = {"type": "LoadBalancer", "ports": [{"port": 443}], "selector": {"app": "emissary"}}
    front = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "in", "labels": labels}, "spec": spec}
    world.kube.create("services", front, "emissary")
    world.deploy("ls-a", gateway())
    world.settle()
    fields = world.component("ls-a", "gate")["outputFields"]
    made = world.kube.get("services", "in", "emissary")
    assert made is not None
    assert fields["address"] == made["status"]["loadBalancer"]["ingress"][0]["ip"]
    assert (fields["hostname"], fields["ambassadorId"]) == ("a.example.com", ["default"])


@pytest.mark.rule("S13")
def test_a_host_that_emissary_cannot_serve_is_failed(world: KubernetesWorld) -> None:
    world.deploy("ls-a", gateway())
    world.settle()
    bad = {"state": "Error", "errorReason": "no such secret"}
    world.kube.merge("hosts", "gate", {"status": bad}, sub="status")
    world.cycle()
    assert world.status("ls-a", "gate") == "Failed"
    assert "no such secret" in world.component("ls-a", "gate")["message"]
