"""Somebody with kubectl in their operator: plain HTTP to the API server, with a person's own token."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from fractal_sandbox import sandbox_env
from fractal_sandbox.kubernetes import CLUSTERS

Object = dict[str, Any]

PATHS: Final = {
    "deployments": "/apis/apps/v1/namespaces/{}/deployments",
    "services": "/api/v1/namespaces/{}/services",
    "networkpolicies": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "persistentvolumeclaims": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "pods": "/api/v1/namespaces/{}/pods",
    "virtualmachines": "/apis/kubevirt.io/v1/namespaces/{}/virtualmachines",
    "secrets": "/api/v1/namespaces/{}/secrets",
    "mappings": "/apis/getambassador.io/v3alpha1/namespaces/{}/mappings",
    "hosts": "/apis/getambassador.io/v3alpha1/namespaces/{}/hosts",
    "namespaces": "/api/v1/namespaces",
    "serviceaccounts": "/api/v1/namespaces/{}/serviceaccounts",
    "roles": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "storageclasses": "/apis/storage.k8s.io/v1/storageclasses",
}
MANAGED_BY, OWNER, RECONCILE = "app.kubernetes.io/managed-by", "fractal.cloud/owner", "fractal.cloud/reconcile"


class KubernetesPerson:
    """One person at one cluster."""

    def __init__(self, url: str, folder: Path, context: str = "sandbox") -> None:
        self.env = sandbox_env(url, folder)
        self.context = context
        self._url = f"{url}{CLUSTERS[context]}/as/person"

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        """One request; raises where it is refused."""
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self._url}{path}", data, {"Content-Type": kind}, method=method)
        with urlopen(request, timeout=20) as answer:
            return json.loads(answer.read())

    def path(self, plural: str, name: str = "", namespace: str = "default") -> str:
        """Where objects are: by the plural of their kind, or by its whole path."""
        return PATHS.get(plural, plural).format(namespace) + (f"/{name}" if name else "")

    def get(self, plural: str, name: str, namespace: str = "default") -> Object | None:
        """One object, or None."""
        try:
            found: Object = self.call("GET", self.path(plural, name, namespace))
        except HTTPError as error:
            if error.code == 404:
                return None
            raise
        return found

    def create(self, plural: str, body: Object, namespace: str = "default") -> Object:
        """Make an object."""
        made: Object = self.call("POST", self.path(plural, namespace=namespace), body)
        return made

    def merge(self, plural: str, name: str, body: Object, namespace: str = "default", sub: str = "") -> None:
        """Change an object by a merge patch; ``sub`` is a subresource."""
        path = self.path(plural, name, namespace) + (f"/{sub}" if sub else "")
        self.call("PATCH", path, body, "application/merge-patch+json")

    def delete(self, plural: str, name: str, namespace: str = "default") -> None:
        """Delete an object; absent is fine."""
        try:
            self.call("DELETE", self.path(plural, name, namespace))
        except HTTPError as error:
            if error.code != 404:
                raise

    # --- the three tags

    def label(self, plural: str, name: str, namespace: str = "default", **labels: str | None) -> None:
        """Set labels, or remove those that are None; underscores stand for dashes, two for a slash, three for a dot."""
        self.merge(
            plural, name, {"metadata": {"labels": {_key(key): value for key, value in labels.items()}}}, namespace
        )

    def break_glass(self, plural: str, name: str, namespace: str = "default") -> None:
        """What an engineer does at 3 a.m."""
        self.merge(plural, name, {"metadata": {"labels": {MANAGED_BY: None}}}, namespace)

    def hand_back(self, plural: str, name: str, namespace: str = "default") -> None:
        """The two-tag handshake."""
        tags = {"labels": {MANAGED_BY: "fractal-cloud"}, "annotations": {RECONCILE: "reconcile"}}
        self.merge(plural, name, {"metadata": tags}, namespace)

    def tags(self, plural: str, name: str, namespace: str = "default") -> dict[str, str]:
        """Labels and annotations of an object."""
        item = self.get(plural, name, namespace)
        assert item is not None, f"{plural} {name} is not there"
        return {**(item["metadata"].get("labels") or {}), **(item["metadata"].get("annotations") or {})}


def _key(word: str) -> str:
    return word.replace("___", ".").replace("__", "/").replace("_", "-")
