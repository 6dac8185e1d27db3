"""What no schema of Kubernetes says: which fields never change, what holds data, which zero is as good as nothing.

By kind in whichever version (``batch/CronJob``). Learned kinds are in none of these tables unless they stand here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

IMMUTABLE: Final[Mapping[str, tuple[str, ...]]] = {
    "ConfigMap": (),
    "PersistentVolume": ("spec.csi", "spec.nfs", "spec.hostPath", "spec.local", "spec.volumeMode"),
    "PersistentVolumeClaim": (
        *("spec.accessModes", "spec.dataSource", "spec.dataSourceRef", "spec.selector"),
        *("spec.storageClassName", "spec.volumeMode", "spec.volumeName"),
    ),
    "ReplicationController": (),
    "Secret": ("type",),
    "Service": ("spec.clusterIP", "spec.clusterIPs"),
    "apps/DaemonSet": ("spec.selector",),
    "apps/Deployment": ("spec.selector",),
    "apps/ReplicaSet": ("spec.selector",),
    "apps/StatefulSet": (
        *("spec.selector", "spec.serviceName", "spec.podManagementPolicy", "spec.volumeClaimTemplates"),
    ),
    "batch/Job": ("spec.completionMode", "spec.selector", "spec.template"),
    "apiextensions.k8s.io/CustomResourceDefinition": ("spec.group", "spec.scope"),
    "networking.k8s.io/IngressClass": ("spec.controller",),
    "node.k8s.io/RuntimeClass": ("handler",),
    "rbac.authorization.k8s.io/ClusterRoleBinding": ("roleRef",),
    "rbac.authorization.k8s.io/RoleBinding": ("roleRef",),
    "scheduling.k8s.io/PriorityClass": ("preemptionPolicy", "value"),
    "storage.k8s.io/CSIDriver": ("spec.attachRequired", "spec.volumeLifecycleModes"),
    "storage.k8s.io/StorageClass": ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"),
    "storage.k8s.io/VolumeAttributesClass": ("driverName", "parameters"),
}

HOLDS_DATA: Final[Mapping[str, str]] = {
    "PersistentVolume": "what is stored on it",
    "PersistentVolumeClaim": "what is stored on its volume, where the volume's reclaim policy is Delete",
    "Namespace": "everything that lies in it goes with it",
    "apiextensions.k8s.io/CustomResourceDefinition": "every object of its kind goes with it",
}
"""Not here: a Secret's values are known to whoever declares it, and a StatefulSet leaves its claims behind."""

FALSE_SAYS_SOMETHING: Final = frozenset(
    {
        *("allowPrivilegeEscalation", "allocateLoadBalancerNodePorts", "automountServiceAccountToken"),
        *("enableServiceLinks", "hostUsers"),
    }
)
"""Flags that are true, or the cluster's own choice, where they are not said: false is no default of theirs."""

ZERO_IS_NOTHING: Final = frozenset(
    {"healthCheckNodePort", "hostPort", "initialDelaySeconds", "minReadySeconds", "nodePort", "partition", "weight"}
)
"""Numbers that the server leaves out where they are zero; any other zero says something (a user id, a time to live)."""

EMPTY_SAYS_SOMETHING: Final = frozenset({"ingressClassName", "storageClassName", "volumeAttributesClassName"})
"""Texts that mean something where they are empty."""

OUTPUTS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "Service": {
        "clusterIP": ("spec.clusterIP", "its address inside the cluster"),
        "loadBalancerIngress": ("status.loadBalancer.ingress", "where the world reaches it"),
    },
    "PersistentVolumeClaim": {
        "phase": ("status.phase", "Pending, Bound or Lost"),
        "volumeName": ("spec.volumeName", "the volume it is bound to"),
    },
    "PersistentVolume": {"phase": ("status.phase", "Available, Bound, Released or Failed")},
    "Namespace": {"phase": ("status.phase", "Active or Terminating")},
    "apps/Deployment": {
        "readyReplicas": ("status.readyReplicas", "how many of it are ready"),
        "selector": ("spec.selector.matchLabels", "labels of its pods, by which services and policies choose them"),
    },
    "apps/StatefulSet": {
        "readyReplicas": ("status.readyReplicas", "how many of it are ready"),
        "selector": ("spec.selector.matchLabels", "labels of its pods, by which services and policies choose them"),
    },
    "apps/DaemonSet": {
        "readyReplicas": ("status.numberReady", "how many of it are ready"),
        "selector": ("spec.selector.matchLabels", "labels of its pods, by which services and policies choose them"),
    },
    "networking.k8s.io/Ingress": {
        "loadBalancerIngress": ("status.loadBalancer.ingress", "where the world reaches it"),
    },
}

NEVER_SHOWN: Final = frozenset(
    {"conditions", "currentMetrics", "images", "lastScheduleTime", "observedGeneration", "nodeInfo", "addresses"}
)
"""Fields of a status that change by themselves, or say what the message says; they are no outputs."""

DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "core.v1.ContainerPort": {"protocol": "TCP"},
    "core.v1.ServicePort": {"protocol": "TCP"},
    "networking.v1.NetworkPolicyPort": {"protocol": "TCP"},
    "core.v1.HTTPGetAction": {"scheme": "HTTP"},
}
"""What the server fills in, where a list's elements are known by it or people leave it out as often as not."""

FILLED_IN: Final = frozenset(
    {"default", "defaultRequest", "limits", "max", "maxLimitRequestRatio", "min", "overhead", "requests"}
)
"""Maps of amounts to which the server adds entries that nobody declared: they are others'."""

POD_TEMPLATES: Final[Mapping[str, str]] = {
    "Pod": "",
    "PodTemplate": "template",
    "ReplicationController": "spec.template",
    "apps/DaemonSet": "spec.template",
    "apps/Deployment": "spec.template",
    "apps/ReplicaSet": "spec.template",
    "apps/StatefulSet": "spec.template",
    "batch/CronJob": "spec.jobTemplate.spec.template",
    "batch/Job": "spec.template",
}
"""Where the pods of a kind are described."""

READY: Final = frozenset(
    {
        *("cert-manager.io/Certificate", "cert-manager.io/ClusterIssuer", "cert-manager.io/Issuer"),
        *("external-secrets.io/ExternalSecret", "external-secrets.io/SecretStore"),
        *("helm.toolkit.fluxcd.io/HelmRelease", "kustomize.toolkit.fluxcd.io/Kustomization"),
        *("serving.knative.dev/Service", "source.toolkit.fluxcd.io/GitRepository"),
    }
)
"""Kinds of others whose condition ``Ready`` says whether what is declared is there."""
