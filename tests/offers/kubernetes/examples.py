"""A complete valid declaration of every Kubernetes type with its parents, other values for its parameters, and how a
person would edit each of them.

Plain data for suites that run over the whole registry; nothing here asserts anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fractal_cloud.model.component import Component
from fractal_cloud.offers.kubernetes.ambassador import Ambassador
from fractal_cloud.offers.kubernetes.claim import KubernetesPersistentVolumeClaim
from fractal_cloud.offers.kubernetes.network_policy import KubernetesNetworkPolicy
from fractal_cloud.offers.kubernetes.service import KubernetesService
from fractal_cloud.offers.kubernetes.virtual_machine import KubernetesVirtualMachine
from fractal_cloud.offers.kubernetes.workload import KubernetesWorkload
from fractal_cloud.offers.registry import installed
from tests.offers.kubernetes.server import minor_version

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


def _edit_metadata(edit: Edit) -> Edit:
    """Labels and annotations, which every kind has; the rest as the kind has it."""

    def edited(item: Object, name: str, value: Any) -> None:
        if name in ("labels", "annotations"):
            item["metadata"][name] = {**item["metadata"].get(name, {}), **value}
        else:
            edit(item, name, value)

    return edited


OF_POD: Final[Mapping[str, str]] = {
    "podSecurityContext": "securityContext",
    **{name: name for name in ("automountServiceAccountToken", "nodeSelector", "tolerations", "volumes")},
    "terminationGracePeriodSeconds": "terminationGracePeriodSeconds",
}


def _edit_workload(item: Object, name: str, value: Any) -> None:
    template = item["spec"]["template"]
    if name in ("podLabels", "podAnnotations"):
        field = name.removeprefix("pod").lower()
        template["metadata"][field] = {**template["metadata"].get(field, {}), **value}
    elif name in OF_POD:
        template["spec"][OF_POD[name]] = value
    elif name in ("containers", "initContainers"):
        ours = template["spec"]["containers"][:1] if name == "containers" else []
        template["spec"][name] = [*ours, *(_as_kubernetes_has_it(one) for one in value)]
    elif name in ("replicas", "strategy"):
        item["spec"][name] = value
    else:
        _edit_container(template["spec"]["containers"][0], name, value)


def _edit_container(container: Object, name: str, value: Any) -> None:
    if name == "containerPort":
        container["ports"][0]["containerPort"] = value
    elif name == "env":
        taken = [one for one in container["env"] if "valueFrom" in one]
        container["env"] = [*({"name": key, "value": text} for key, text in value.items()), *taken]
    elif name == "envValueFrom":
        plain = [one for one in container["env"] if "valueFrom" not in one]
        container["env"] = [*plain, *({"name": key, "valueFrom": source} for key, source in value.items())]
    elif name in ("cpu", "memory"):
        container["resources"]["requests"][name] = value
    elif name in ("limits", "requests"):
        container["resources"][name] = {**container["resources"].get(name, {}), **value}
    else:
        container[name] = value


def _as_kubernetes_has_it(declared: Object) -> Object:
    """A further container, written as in a manifest."""
    apart = {"env", "limits", "requests"}
    found = {name: value for name, value in declared.items() if name not in apart}
    if "env" in declared:
        found["env"] = [{"name": key, "value": text} for key, text in declared["env"].items()]
    return {**found, "resources": {name: declared[name] for name in ("limits", "requests") if name in declared}}


def _edit_service(item: Object, name: str, value: Any) -> None:
    spec = item["spec"]
    if name in ("port", "targetPort", "protocol", "portName"):
        spec["ports"][0]["name" if name == "portName" else name] = value
    elif name == "sessionAffinity":
        spec[name] = value
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
        spec[name] = [{peers: [_peer(rule)], "ports": [{"port": rule["port"], "protocol": "TCP"}]} for rule in value]


def _peer(rule: Object) -> Object:
    return (
        {"ipBlock": {"cidr": rule["cidr"]}} if "cidr" in rule else {"podSelector": {"matchLabels": rule["podSelector"]}}
    )


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
    args=["--verbose"],
    workingDir="/srv",
    imagePullPolicy="IfNotPresent",
    envValueFrom={"POD": {"fieldRef": {"fieldPath": "metadata.name"}}},
    envFrom=[{"configMapRef": {"name": "settings"}}],
    requests={"ephemeral-storage": "1Gi"},
    limits={"memory": "2Gi"},
    livenessProbe={"httpGet": {"path": "/live", "port": 8080}, "periodSeconds": 20},
    readinessProbe={"tcpSocket": {"port": 8080}},
    startupProbe={"exec": {"command": ["shop", "--check"]}, "failureThreshold": 30},
    securityContext={"readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}},
    podSecurityContext={"runAsNonRoot": True, "fsGroup": 1000},
    volumes=[{"name": "scratch", "emptyDir": {}}, {"name": "config", "configMap": {"name": "settings"}}],
    volumeMounts=[{"name": "scratch", "mountPath": "/tmp"}],
    initContainers=[{"name": "prepare", "image": "registry.example.com/prepare:1", "args": ["--once"]}],
    containers=[{"name": "log", "image": "registry.example.com/log:1", "limits": {"cpu": "100m"}}],
    automountServiceAccountToken=False,
    podLabels={"app": "shop", "tier": "front"},
    podAnnotations={"example.com/scrape": "true"},
    nodeSelector={"disk": "fast"},
    tolerations=[{"key": "spot", "operator": "Exists"}],
    terminationGracePeriodSeconds=5,
    strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
    labels={"declared.example.com/team": "shop"},
    annotations={"declared.example.com/owner": "shop team"},
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
PEERS = {"podSelector": {"app": "shop"}, "port": 8080, "protocol": "TCP"}


def _edit_field(item: Object, name: str, value: Any) -> None:
    item[name] = value


ACCOUNT = installed("kubernetes")["v1/ServiceAccount"].component
ROLE = installed("kubernetes")["rbac.authorization.k8s.io/v1/Role"].component
CLASS = installed("kubernetes")["storage.k8s.io/v1/StorageClass"].component
"""Kinds by their own names: one whose field is a flag, one whose field is a list, and one that lies in no namespace."""


_GROWING: dict[str, Any] = {"provisioner": "example.com/none", "allowVolumeExpansion": True}


def _rules(*verbs: str) -> list[dict[str, Any]]:
    """Rights that the agent has itself: a real server lets nobody grant others."""
    return [{"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": list(verbs)}]


CALLED = "grpc" if minor_version() >= 24 else "tcpSocket"  # what servers before 1.24 do not know, they leave out


EXAMPLES: dict[type[Component], Example] = {
    ACCOUNT: Example(
        components=[_component(ACCOUNT, "subject", automountServiceAccountToken=False)],
        changes={"automountServiceAccountToken": True},
        plural="serviceaccounts",
        edit=_edit_field,
        immutable_changes={},
    ),
    ROLE: Example(
        components=[_component(ROLE, "subject", rules=_rules("get"))],
        changes={"rules": _rules("get", "list")},
        plural="roles",
        edit=_edit_field,
        immutable_changes={},
    ),
    CLASS: Example(
        components=[
            _component(
                CLASS, "subject", provisioner="example.com/none", allowVolumeExpansion=True, reclaimPolicy="Retain"
            )
        ],
        changes={"allowVolumeExpansion": False},
        plural="storageclasses",
        edit=_edit_field,
        immutable_changes={"reclaimPolicy": "Delete"},
    ),
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
            "args": ["--quiet", "--fast"],
            "workingDir": "/",
            "imagePullPolicy": "Always",
            "envValueFrom": {"POD": {"fieldRef": {"fieldPath": "status.podIP"}}},
            "envFrom": [{"configMapRef": {"name": "other"}, "prefix": "O_"}],
            "requests": {"ephemeral-storage": "2Gi"},
            "limits": {"memory": "3Gi"},
            "livenessProbe": {"exec": {"command": ["true"]}},
            "readinessProbe": {"httpGet": {"port": 8080, "scheme": "HTTPS"}, "timeoutSeconds": 3},
            "startupProbe": {CALLED: {"port": 9000}, "failureThreshold": 3},
            "securityContext": {"readOnlyRootFilesystem": False, "capabilities": {"drop": ["NET_RAW"]}},
            "podSecurityContext": {"runAsNonRoot": True, "fsGroup": 2000},
            "volumes": [
                {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}},
                {"name": "config", "configMap": {"name": "other"}},
            ],
            "volumeMounts": [{"name": "scratch", "mountPath": "/var/tmp"}],
            "initContainers": [{"name": "prepare", "image": "registry.example.com/prepare:2", "args": []}],
            "containers": [{"name": "log", "image": "registry.example.com/log:2", "limits": {"cpu": "200m"}}],
            "podLabels": {"app": "store", "tier": "back"},
            "podAnnotations": {"example.com/scrape": "false"},
            "nodeSelector": {"disk": "slow"},
            "tolerations": [],
            "terminationGracePeriodSeconds": 60,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}},
            "labels": {"declared.example.com/team": "store"},
            "annotations": {"declared.example.com/owner": "store team"},
        },
        plural="deployments",
        edit=_edit_metadata(_edit_workload),
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
                portName="http",
                sessionAffinity="None",
                labels={"declared.example.com/team": "shop"},
                annotations={"declared.example.com/owner": "shop team"},
            ),
        ],
        changes={
            "port": 81,
            "targetPort": 9090,
            "protocol": "UDP",
            "workload": "other",
            "serviceType": "LoadBalancer",
            "portName": "web",
            "sessionAffinity": "ClientIP",
            "labels": {"declared.example.com/team": "store"},
            "annotations": {"declared.example.com/owner": "store team"},
        },
        plural="services",
        edit=_edit_metadata(_edit_service),
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
            "ingress": [OUTSIDE, PEERS],
            "egress": [],
            "workload": "other",
            "policyTypes": ["Egress"],
        },
        plural="networkpolicies",
        edit=_edit_metadata(_edit_policy),
        immutable_changes={},
    ),
    KubernetesPersistentVolumeClaim: Example(
        components=[CLAIM],
        changes={"storage": "20Gi"},
        plural="persistentvolumeclaims",
        edit=_edit_metadata(_edit_claim),
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
        edit=_edit_metadata(_edit_machine),
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
        edit=_edit_metadata(_edit_gateway),
        immutable_changes={},
    ),
}
