"""Components as people declare them, for tests that are about something else."""

from __future__ import annotations

from typing import Any

Declaration = dict[str, Any]


def component(kind: str, component_id: str, **parameters: Any) -> Declaration:
    """One component of a Kubernetes type."""
    return {"id": component_id, "type": kind, "provider": "kubernetes", "parameters": parameters}


def workload(component_id: str = "web", **parameters: Any) -> Declaration:
    """A workload."""
    return component("CustomWorkloads.CaaS.KubernetesWorkload", component_id, **{"image": "web:1", **parameters})


def service(component_id: str = "front", workload: str | None = "web", **parameters: Any) -> Declaration:
    """A service in front of a workload."""
    before = {"workload": workload} if workload else {}
    return component("NetworkAndCompute.CaaS.KubernetesService", component_id, **{"port": 80, **before, **parameters})


def claim(component_id: str = "data", **parameters: Any) -> Declaration:
    """A claim of storage."""
    kind = "Storage.CaaS.KubernetesPersistentVolumeClaim"
    return component(kind, component_id, **{"storage": "1Gi", **parameters})


def machine(component_id: str = "box", **parameters: Any) -> Declaration:
    """A virtual machine."""
    disk = {} if "volumeClaim" in parameters else {"image": "disk:1"}
    return component("NetworkAndCompute.CaaS.KubernetesVirtualMachine", component_id, **{**disk, **parameters})


def policy(component_id: str = "fence", **parameters: Any) -> Declaration:
    """A network policy."""
    pods: Declaration = {} if "workload" in parameters else {"podSelector": {}}
    return component("NetworkAndCompute.CaaS.KubernetesNetworkPolicy", component_id, **{**pods, **parameters})


def gateway(component_id: str = "gate", **parameters: Any) -> Declaration:
    """A gateway."""
    return component("APIManagement.CaaS.Ambassador", component_id, **{"hostname": "a.example.com", **parameters})
