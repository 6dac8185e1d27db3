"""Ways from the agent's rights in a cluster to more of them, and how they are tried: with its credentials alone."""

from __future__ import annotations

import json
import urllib.request
from typing import Any, Final
from urllib.error import HTTPError

from fractal_sandbox import Sandbox
from fractal_sandbox.kubernetes import AGENT_TOKEN
from tests.offers.kubernetes.real import KUBECONFIG
from tests.offers.kubernetes.rights import AGENT
from tests.offers.kubernetes.server import Server

Object = dict[str, Any]
RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
IN_SYSTEM: Final = "/apis/apps/v1/namespaces/kube-system/deployments"
POD: Final = {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "x", "image": "x"}]}}


def _bound(kind: str, role: str) -> Object:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    subjects = [{"kind": "ServiceAccount", "name": "fractal-cloud-agent", "namespace": "fractal-cloud-agent"}]
    return {"kind": kind, "metadata": {"name": "x"}, "roleRef": reference, "subjects": subjects}


# Each way to more rights that Kubernetes' own «Role Based Access Control Good Practices» warns of, and those of Unit
# 42's «Kubernetes Privilege Escalation: Excessive Permissions in Popular Platforms»: method, path, body.
ATTEMPTS: Final[dict[str, tuple[str, str, Object | None]]] = {
    "list the secrets of the cluster": ("GET", "/api/v1/secrets", None),
    "watch the secrets of the cluster": ("GET", "/api/v1/secrets?watch=true", None),
    "list the secrets of kube-system": ("GET", "/api/v1/namespaces/kube-system/secrets", None),
    "read a secret of another namespace": ("GET", "/api/v1/namespaces/kube-public/secrets/admin-token", None),
    "read a token of the agent's own home": ("GET", "/api/v1/namespaces/fractal-cloud-agent/secrets/token", None),
    "bind cluster-admin to itself": (
        "POST",
        f"{RBAC}/clusterrolebindings",
        _bound("ClusterRoleBinding", "cluster-admin"),
    ),
    "bind cluster-admin to itself in a namespace": (
        "POST",
        f"{RBAC}/namespaces/default/rolebindings",
        _bound("RoleBinding", "cluster-admin"),
    ),
    "change its own role": ("PATCH", f"{RBAC}/clusterroles/fractal-cloud-agent", {"rules": []}),
    "change its own role of a namespace": (
        "PATCH",
        f"{RBAC}/namespaces/default/roles/fractal-cloud-agent",
        {"rules": []},
    ),
    "make a role that may everything": (
        "POST",
        f"{RBAC}/clusterroles",
        {"metadata": {"name": "x"}, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]},
    ),
    "request a token of another service account": (
        "POST",
        "/api/v1/namespaces/kube-system/serviceaccounts/clusterrole-aggregation-controller/token",
        {"spec": {}},
    ),
    "request a token of a service account beside it": (
        "POST",
        "/api/v1/namespaces/default/serviceaccounts/default/token",
        {"spec": {}},
    ),
    "make a service account": ("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "x"}}),
    "run a command in a pod": ("POST", "/api/v1/namespaces/default/pods/web/exec?command=sh", None),
    "attach to a pod": ("POST", "/api/v1/namespaces/default/pods/web/attach", None),
    "forward a port of a pod": ("POST", "/api/v1/namespaces/default/pods/web/portforward", None),
    "put a container into a running pod": (
        "PATCH",
        "/api/v1/namespaces/default/pods/web/ephemeralcontainers",
        {"spec": {"ephemeralContainers": [{"name": "x", "image": "x"}]}},
    ),
    "read the log of a pod": ("GET", "/api/v1/namespaces/default/pods/web/log", None),
    "create a bare pod": ("POST", "/api/v1/namespaces/default/pods", POD),
    "create a pod in kube-system": ("POST", "/api/v1/namespaces/kube-system/pods", POD),
    "create a workload in kube-system": ("POST", IN_SYSTEM, {"metadata": {"name": "x"}}),
    "change a workload in kube-system": ("PATCH", f"{IN_SYSTEM}/coredns", {"spec": {}}),
    "create a workload in another team's namespace": (
        "POST",
        "/apis/apps/v1/namespaces/another/deployments",
        {"metadata": {"name": "x"}},
    ),
    "create a DaemonSet": ("POST", "/apis/apps/v1/namespaces/default/daemonsets", {"metadata": {"name": "x"}}),
    "create a StatefulSet": ("POST", "/apis/apps/v1/namespaces/default/statefulsets", {"metadata": {"name": "x"}}),
    "create a Job": ("POST", "/apis/batch/v1/namespaces/default/jobs", {"metadata": {"name": "x"}}),
    "create a CronJob": ("POST", "/apis/batch/v1/namespaces/default/cronjobs", {"metadata": {"name": "x"}}),
    "create a ReplicaSet": ("POST", "/apis/apps/v1/namespaces/default/replicasets", {"metadata": {"name": "x"}}),
    "reach a kubelet through a node": ("GET", "/api/v1/nodes/one/proxy/runningpods/", None),
    "run a command through a node": ("POST", "/api/v1/nodes/one/proxy/run/kube-system/x/y", None),
    "change a node": ("PATCH", "/api/v1/nodes/one", {"metadata": {"labels": {"a": "b"}}}),
    "reach a pod through the server": ("GET", "/api/v1/namespaces/default/pods/web/proxy/", None),
    "reach a service through the server": ("GET", "/api/v1/namespaces/default/services/web/proxy/", None),
    "ask for a certificate": (
        "POST",
        "/apis/certificates.k8s.io/v1/certificatesigningrequests",
        {"metadata": {"name": "x"}},
    ),
    "approve a certificate": (
        "PATCH",
        "/apis/certificates.k8s.io/v1/certificatesigningrequests/x/approval",
        {"status": {}},
    ),
    "sign a certificate": ("PATCH", "/apis/certificates.k8s.io/v1/certificatesigningrequests/x/status", {"status": {}}),
    "have a webhook change what others write": (
        "POST",
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
        {"metadata": {"name": "x"}},
    ),
    "have a webhook see what others write": (
        "POST",
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
        {"metadata": {"name": "x"}},
    ),
    "take its own admission policy away": (
        "DELETE",
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/fractal-cloud-agent-deployments",
        None,
    ),
    "create a volume of a node's files": ("POST", "/api/v1/persistentvolumes", {"metadata": {"name": "x"}}),
    "loosen the pod security of a namespace": (
        "PATCH",
        "/api/v1/namespaces/default",
        {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}},
    ),
    "make a namespace": ("POST", "/api/v1/namespaces", {"metadata": {"name": "x"}}),
    "serve an API of its own": ("POST", "/apis/apiregistration.k8s.io/v1/apiservices", {"metadata": {"name": "x"}}),
    "define a kind": ("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {"metadata": {"name": "x"}}),
    "change a config map": ("PATCH", "/api/v1/namespaces/kube-system/configmaps/coredns", {"data": {}}),
    "point a service's endpoints elsewhere": (
        "POST",
        "/api/v1/namespaces/default/endpoints",
        {"metadata": {"name": "kubernetes"}},
    ),
    "delete all workloads at once": ("DELETE", "/apis/apps/v1/namespaces/default/deployments", None),
    "replace a workload": ("PUT", "/apis/apps/v1/namespaces/default/deployments/web", {"metadata": {"name": "web"}}),
    "bind a pod to a node": ("POST", "/api/v1/namespaces/default/pods/web/binding", {"target": {"name": "one"}}),
    "review what others may do": ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": {}}),
    "read the server's metrics": ("GET", "/metrics", None),
}
POD_SPECS: Final[dict[str, Object]] = {
    "run as another service account": {"serviceAccountName": "admin"},
    "run as another service account by its old name": {"serviceAccount": "admin"},
    "mount a secret": {"volumes": [{"name": "v", "secret": {"secretName": "db"}}]},
    "mount a token": {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]},
    "mount the node's files": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
    "mount a driver's volume": {"volumes": [{"name": "v", "csi": {"driver": "secrets-store.csi.k8s.io"}}]},
    "share the node's network": {"hostNetwork": True},
    "share the node's processes": {"hostPID": True},
    "share the node's memory": {"hostIPC": True},
    "choose its node": {"nodeName": "control-plane"},
    "set the node's own parameters": {"securityContext": {"sysctls": [{"name": "net.core.somaxconn", "value": "1"}]}},
    "have no system call refused": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
    "run something before it": {
        "initContainers": [{"name": "i", "image": "x", "securityContext": {"privileged": True}}]
    },
    "pull with somebody's credentials": {"imagePullSecrets": [{"name": "registry"}]},
    "be debugged": {"ephemeralContainers": [{"name": "d", "image": "x"}]},
    "run in another runtime": {"runtimeClassName": "privileged"},
    "mount a claim made for it": {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]},
}
CONTAINERS: Final[dict[str, Object]] = {
    "be privileged": {"securityContext": {"privileged": True}},
    "add a capability": {"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}},
    "take its environment from a secret": {"envFrom": [{"secretRef": {"name": "db"}}]},
    "take a variable from somebody's secret": {
        "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}]
    },
    "take rights that its image did not have": {"securityContext": {"allowPrivilegeEscalation": True}},
    "run something on the node when it ends": {"lifecycle": {"preStop": {"httpGet": {"host": "10.0.0.1", "port": 1}}}},
    "take a port of its node": {"ports": [{"containerPort": 80, "hostPort": 443}]},
    "have its node ask somebody": {"livenessProbe": {"httpGet": {"host": "169.254.169.254", "port": 80}}},
    "have its node connect to somebody": {"readinessProbe": {"tcpSocket": {"host": "127.0.0.1", "port": 10250}}},
    "see the node's processes unmasked": {"securityContext": {"procMount": "Unmasked"}},
    "mount a part of what is there": {"volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "etc"}]},
    "use a device of its node": {"volumeDevices": [{"name": "v", "devicePath": "/dev/sda"}]},
    "mount what is there": {"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
}
TEMPLATES: Final[dict[str, Object]] = {
    "have no profile by an annotation": {
        "metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/main": "unconfined"}}
    },
    "join another network": {"metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": "kube-system/management"}}},
    "be somebody in the cloud": {"metadata": {"annotations": {"iam.amazonaws.com/role": "admin"}}},
}


def deployment(pod: Object | None = None, container: Object | None = None, name: str = "evil") -> Object:
    """A workload with this in its pods and in its container."""
    containers = [{"name": "main", "image": "x", **(container or {})}]
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers, **(pod or {})}}
    spec = {"selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


class AsTheAgent:
    """Requests with the agent's credentials, straight to the cluster."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._url = f"{sandbox.url}/kubernetes"
        self._server = Server(KUBECONFIG) if KUBECONFIG else None

    def ask(self, method: str, path: str, body: Object | None = None) -> tuple[int, str]:
        """The status and the text of the answer."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        content = None if body is None else json.dumps(body).encode()
        if self._server is not None:
            reply = self._server.ask(method, path, content, Impersonate_User=AGENT.name, Content_Type=kind)
            return reply.status, reply.body.decode()
        headers = {"Authorization": f"Bearer {AGENT_TOKEN}", "Content-Type": kind}
        request = urllib.request.Request(f"{self._url}{path}", content, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as refusal:
            return refusal.code, refusal.read().decode()
