"""A complete valid declaration of every Kubernetes type with its parents, other values for its parameters, and how a
person would edit each of them.

Plain data for suites that run over the whole registry; nothing here asserts anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fractal_cloud.model.component import Component
from fractal_cloud.offers.kubernetes.ambassador import Ambassador
from fractal_cloud.offers.kubernetes.claim import KubernetesPersistentVolumeClaim
from fractal_cloud.offers.kubernetes.network_policy import KubernetesNetworkPolicy
from fractal_cloud.offers.kubernetes.service import KubernetesService
from fractal_cloud.offers.kubernetes.virtual_machine import KubernetesVirtualMachine
from fractal_cloud.offers.kubernetes.workload import KubernetesWorkload

Object = dict[str, Any]
Edit = Callable[[Object, str, Any], None]
"""Edit one parameter of an object in place, as a person with `kubectl edit` would."""


@dataclass(frozen=True)
class Example:
    """``components``: declarations in dependency order, the last one is under test; ``plural``: where it lies."""

    components: list[dict[str, Any]]
    changes: dict[str, Any]
    plural: str
    edit: Edit
    immutable_changes: Mapping[str, Any]


def _component(kind: type[Component], component_id: str, **parameters: Any) -> dict[str, Any]:
    return {"id": component_id, "type": kind.type, "provider": kind.provider, "parameters": parameters}


def _edit_workload(item: Object, name: str, value: Any) -> None:
    container = item["spec"]["template"]["spec"]["containers"][0]
    if name == "replicas":
        item["spec"]["replicas"] = value
    elif name == "containerPort":
        container["ports"][0]["containerPort"] = value
    elif name == "env":
        container["env"] = [{"name": key, "value": text} for key, text in value.items()]
    elif name in ("cpu", "memory"):
        container["resources"]["requests"][name] = value
    else:
        container[name] = value


def _edit_service(item: Object, name: str, value: Any) -> None:
    spec = item["spec"]
    if name in ("port", "targetPort", "protocol"):
        spec["ports"][0][name] = value
    elif name == "serviceType":
        spec["type"] = value
    else:
        spec["selector"] = value


def _edit_policy(item: Object, name: str, value: Any) -> None:
    spec = item["spec"]
    if name == "workload":
        spec["podSelector"] = {"matchLabels": value}
    elif name == "policyTypes":
        spec["policyTypes"] = value
    else:
        peers = "from" if name == "ingress" else "to"
        spec[name] = [
            {peers: [{"ipBlock": {"cidr": rule["cidr"]}}], "ports": [{"port": rule["port"], "protocol": "TCP"}]}
            for rule in value
        ]


def _edit_claim(item: Object, name: str, value: Any) -> None:
    assert name == "storage"
    item["spec"]["resources"]["requests"]["storage"] = value


def _edit_machine(item: Object, name: str, value: Any) -> None:
    guest = item["spec"]["template"]["spec"]
    if name == "runStrategy":
        item["spec"]["runStrategy"] = value
    elif name == "cpu":
        guest["domain"]["cpu"]["cores"] = value
    elif name == "memory":
        guest["domain"]["memory"]["guest"] = value
    else:
        guest["volumes"][0]["persistentVolumeClaim"] = {"claimName": value}


def _edit_gateway(item: Object, name: str, value: Any) -> None:
    spec = item["spec"]
    match name:
        case "hostname":
            spec["hostname"] = value
        case "tlsSecret":
            spec["tlsSecret"] = {"name": value}
        case "insecureAction":
            spec["requestPolicy"] = {"insecure": {"action": value}}
        case "acmeAuthority":
            spec["acmeProvider"] = {"authority": value}
        case _:
            spec["ambassador_id"] = value


WORKLOAD = _component(
    KubernetesWorkload,
    "shop",
    image="registry.example.com/shop:1.4",
    replicas=2,
    containerPort=8080,
    env={"MODE": "live", "REGION": "north"},
    cpu="500m",
    memory="1Gi",
    command=["shop", "--serve"],
)
OTHER_WORKLOAD = _component(KubernetesWorkload, "other", image="registry.example.com/other:1")
CLAIM = _component(
    KubernetesPersistentVolumeClaim,
    "data",
    storage="10Gi",
    accessModes=["ReadWriteOnce"],
    storageClassName="standard",
    volumeMode="Filesystem",
)
OTHER_CLAIM = _component(KubernetesPersistentVolumeClaim, "spare", storage="5Gi")
INSIDE = {"cidr": "10.0.0.0/8", "port": 8080}
OUTSIDE = {"cidr": "192.0.2.0/24", "port": 443}

EXAMPLES: dict[type[Component], Example] = {
    KubernetesWorkload: Example(
        components=[WORKLOAD],
        changes={
            "image": "registry.example.com/shop:1.5",
            "replicas": 3,
            "containerPort": 9090,
            "env": {"MODE": "test", "EXTRA": ""},
            "cpu": "250m",
            "memory": "512Mi",
            "command": ["shop"],
        },
        plural="deployments",
        edit=_edit_workload,
        immutable_changes={},
    ),
    KubernetesService: Example(
        components=[
            WORKLOAD,
            OTHER_WORKLOAD,
            _component(
                KubernetesService,
                "front",
                workload="shop",
                port=80,
                targetPort=8080,
                protocol="TCP",
                serviceType="ClusterIP",
            ),
        ],
        changes={
            "port": 81,
            "targetPort": 9090,
            "protocol": "UDP",
            "workload": "other",
            "serviceType": "LoadBalancer",
        },
        plural="services",
        edit=_edit_service,
        immutable_changes={},
    ),
    KubernetesNetworkPolicy: Example(
        components=[
            WORKLOAD,
            OTHER_WORKLOAD,
            _component(
                KubernetesNetworkPolicy,
                "fence",
                workload="shop",
                policyTypes=["Ingress", "Egress"],
                ingress=[INSIDE],
                egress=[OUTSIDE],
            ),
        ],
        changes={
            "ingress": [OUTSIDE, INSIDE],
            "egress": [],
            "workload": "other",
            "policyTypes": ["Egress"],
        },
        plural="networkpolicies",
        edit=_edit_policy,
        immutable_changes={},
    ),
    KubernetesPersistentVolumeClaim: Example(
        components=[CLAIM],
        changes={"storage": "20Gi"},
        plural="persistentvolumeclaims",
        edit=_edit_claim,
        immutable_changes={
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "fast",
            "volumeMode": "Block",
        },
    ),
    KubernetesVirtualMachine: Example(
        components=[
            CLAIM,
            OTHER_CLAIM,
            _component(KubernetesVirtualMachine, "box", volumeClaim="data", cpu=2, memory="2Gi", runStrategy="Always"),
        ],
        changes={"cpu": 4, "memory": "4Gi", "runStrategy": "Halted", "volumeClaim": "spare"},
        plural="virtualmachines",
        edit=_edit_machine,
        immutable_changes={},
    ),
    Ambassador: Example(
        components=[
            _component(
                Ambassador,
                "gate",
                hostname="shop.example.com",
                tlsSecret="shop-tls",
                insecureAction="Redirect",
                acmeAuthority="none",
                ambassadorId=["default"],
            )
        ],
        changes={
            "hostname": "shop.example.org",
            "tlsSecret": "other-tls",
            "insecureAction": "Reject",
            "acmeAuthority": "https://acme.example.com/directory",
            "ambassadorId": ["inner", "default"],
        },
        plural="hosts",
        edit=_edit_gateway,
        immutable_changes={},
    ),
}
