"""What the server fills in and how it spells things: no declaration names these, and none of them is drift.

The exact answers hold on a real server too; what newer servers add, or only a cluster with controllers has, is tried
on the sandbox alone.
"""

from __future__ import annotations

import pytest

from tests.sandbox.kubernetes.conftest import (
    CLAIMS,
    DEPLOYMENTS,
    POLICIES,
    SECRETS,
    SERVICES,
    Api,
    claim,
    deployment,
    service,
)

NEW = {DEPLOYMENTS: deployment("new"), SERVICES: service("new"), CLAIMS: claim("new")}


def test_a_deployment_is_filled_in(api: Api, name: str) -> None:
    container = {
        "name": "web",
        "image": "web",
        "env": [{"name": "EMPTY", "value": ""}],
        "args": [],
        "ports": [{"containerPort": 80}],
        "readinessProbe": {"httpGet": {"port": 80}},
        "resources": {"requests": {"cpu": "0.5", "memory": "1024Mi"}, "limits": {"cpu": 2}},
    }
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], "nodeSelector": {}}}
    content = {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": name}}, "template": template}}
    spec = api.make(DEPLOYMENTS, content)["spec"]
    api.delete(f"{DEPLOYMENTS}/{name}")
    pod = spec.pop("template")["spec"]
    assert spec == {
        "replicas": 1,
        "selector": {"matchLabels": {"app": name}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    }
    assert pod.pop("containers") == [
        {
            "name": "web",
            "image": "web",
            "env": [{"name": "EMPTY"}],
            "ports": [{"containerPort": 80, "protocol": "TCP"}],
            "readinessProbe": {
                "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
                "timeoutSeconds": 1,
                "periodSeconds": 10,
                "successThreshold": 1,
                "failureThreshold": 3,
            },
            "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "2"}},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "imagePullPolicy": "Always",
        }
    ]
    assert pod == {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
    }


@pytest.mark.parametrize(
    ("given", "answered"),
    [
        ("0.5", "500m"),
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1024", "1024"),
        ("1000k", "1M"),
        ("1e3", "1e3"),
        ("0.0001", "1m"),
        ("0", "0"),
        ("0.5Mi", "512Ki"),
    ],
)
def test_a_quantity_has_one_spelling(api: Api, name: str, given: str, answered: str) -> None:
    resources = {"requests": {"memory": given}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    template["spec"]["containers"][0]["resources"] = resources  # type: ignore[index]
    content = {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": name}}, "template": template}}
    made = api.make(DEPLOYMENTS, content)
    api.delete(f"{DEPLOYMENTS}/{name}")
    assert made["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"] == {"memory": answered}


def test_a_network_policy_is_filled_in(api: Api, name: str) -> None:
    rule = {"from": [{"podSelector": {"matchLabels": {"app": "front"}}}], "ports": [{"port": 80}]}
    spec = api.make(POLICIES, {"metadata": {"name": name}, "spec": {"podSelector": {}, "ingress": [rule]}})["spec"]
    assert spec["policyTypes"] == ["Ingress"]
    assert spec["ingress"][0]["ports"] == [{"port": 80, "protocol": "TCP"}]
    api.delete(f"{POLICIES}/{name}")
    open_out = {"metadata": {"name": name}, "spec": {"podSelector": {}, "egress": [{}], "ingress": []}}
    assert api.make(POLICIES, open_out)["spec"] == {
        "podSelector": {},
        "egress": [{}],
        "policyTypes": ["Ingress", "Egress"],
    }
    api.delete(f"{POLICIES}/{name}")


def test_a_service_a_claim_and_a_secret_are_filled_in(api: Api, name: str) -> None:
    spec = api.make(SERVICES, service(name))["spec"]
    assert spec["ports"] == [{"protocol": "TCP", "port": 80, "targetPort": 80}]
    assert (spec["type"], spec["sessionAffinity"]) == ("ClusterIP", "None")
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert spec["clusterIP"].startswith("10.96.")
    wanted = api.make(CLAIMS, claim(name, "1024Mi"))["spec"]
    assert (wanted["volumeMode"], wanted["resources"]) == ("Filesystem", {"requests": {"storage": "1Gi"}})
    assert api.make(SECRETS, {"metadata": {"name": name}})["type"] == "Opaque"
    for path in (SERVICES, CLAIMS, SECRETS):
        api.delete(f"{path}/{name}")


def test_a_newer_server_fills_more_into_a_service(person: Api, name: str) -> None:
    spec = person.make(SERVICES, service(name, type="LoadBalancer"))["spec"]
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")
    assert (spec["internalTrafficPolicy"], spec["allocateLoadBalancerNodePorts"]) == ("Cluster", True)


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({"containers": []}, "spec.template.spec.containers"),
        ({"containers": [{"name": "web"}]}, "spec.template.spec.containers[0].image"),
        ({"containers": [{"name": "A_B", "image": "web"}]}, "spec.template.spec.containers[0].name"),
        (
            {"containers": [{"name": "web", "image": "web", "ports": [{"containerPort": 70000}]}]},
            "spec.template.spec.containers[0].ports[0].containerPort",
        ),
        (
            {
                "containers": [
                    {
                        "name": "web",
                        "image": "web",
                        "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
                    }
                ]
            },
            "spec.template.spec.containers[0].resources.requests",
        ),
    ],
)
def test_an_invalid_field_is_named(api: Api, name: str, content: dict[str, object], field: str) -> None:
    template = {"metadata": {"labels": {"app": name}}, "spec": content}
    refused = api.post(
        DEPLOYMENTS,
        {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": name}}, "template": template}},
    )
    assert refused.outcome == (422, "Invalid")
    assert [cause["field"] for cause in refused.json["details"]["causes"]] == [field]


def test_a_value_of_a_wrong_type_cannot_be_read(api: Api, name: str) -> None:
    text = {"metadata": {"name": name}, "spec": {"replicas": "three"}}
    assert api.post(DEPLOYMENTS, text).outcome == (400, "BadRequest")
    bad = {"metadata": {"name": name}, "data": {"key": "!!"}}
    assert api.post(SECRETS, bad).outcome == (400, "BadRequest")
    assert api.post(SECRETS, "{").outcome == (400, "BadRequest")


def test_a_field_nobody_knows_is_dropped(api: Api, name: str) -> None:
    wanted = deployment(name)
    wanted["spec"]["replica"] = 3
    wanted["spec"]["template"]["spec"]["containers"][0]["imagePolicy"] = "Always"
    made = api.make(DEPLOYMENTS, wanted)
    assert "replica" not in made["spec"]
    assert "imagePolicy" not in made["spec"]["template"]["spec"]["containers"][0]
    assert "replica" not in api.patch(f"{DEPLOYMENTS}/{name}", {"spec": {"replica": 3}}).json["spec"]
    api.delete(f"{DEPLOYMENTS}/{name}")


def test_a_newer_server_refuses_unknown_fields_when_asked_to(person: Api, name: str) -> None:
    wanted = deployment(name)
    wanted["spec"]["replica"] = 3
    refused = person.post(DEPLOYMENTS, wanted, fieldValidation="Strict")
    assert refused.outcome == (400, "BadRequest")
    assert 'strict decoding error: unknown field "spec.replica"' in refused.json["message"]


def test_what_is_new_has_a_status_before_any_controller_observed_it(api: Api, name: str) -> None:
    made = {path: api.make(path, {**content, "metadata": {"name": name}}) for path, content in NEW.items()}
    for path in made:
        api.delete(f"{path}/{name}")
    assert [one["status"] for one in made.values()] == [{}, {"loadBalancer": {}}, {"phase": "Pending"}]
