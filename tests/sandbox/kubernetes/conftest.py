"""Plain HTTP to a Kubernetes API server: the sandbox's, and for facts also a real one.

Facts run against the sandbox always, and unchanged against the server in `KUBECONFIG_REAL` too, where that is set:
`eval "$(scripts/kube-apiserver start)"`. Modules that are `ON_A_REAL_SERVER` try what stands before such a server.
"""

from __future__ import annotations

import base64
import json
import ssl
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml

from fractal_sandbox import Sandbox
from fractal_sandbox.kubernetes import kubeconfig
from fractal_sandbox.kubernetes.cloud import KubernetesCloud
from tests.offers.kubernetes.real import KUBECONFIG, over_a_real_server

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SERVICES = "/api/v1/namespaces/default/services"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
SECRETS = "/api/v1/namespaces/default/secrets"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
MACHINES = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
MAPPINGS = "/apis/getambassador.io/v3alpha1/namespaces/default/mappings"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

MANAGED = {"app.kubernetes.io/managed-by": "fractal-cloud", "fractal.cloud/owner": "ls-a"}
GUARD = {"op": "test", "path": "/metadata/labels/app.kubernetes.io~1managed-by", "value": "fractal-cloud"}


class Answer:
    """Status and content of an answer; the content is text where it is no JSON."""

    def __init__(self, answer: httpx2.Response) -> None:
        self.status = answer.status_code
        self.headers = answer.headers
        self.text = answer.text
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        self.json: Any = answer.json() if is_json else None

    @property
    def reason(self) -> str:
        return str(self.json["reason"])

    @property
    def outcome(self) -> tuple[int, str]:
        return self.status, self.reason

    @property
    def version(self) -> str:
        return str(self.json["metadata"]["resourceVersion"])

    @property
    def uid(self) -> str:
        return str(self.json["metadata"]["uid"])


class Api:
    """One caller of one API server."""

    def __init__(self, config: str, user_agent: str = "test") -> None:
        read = yaml.safe_load(config)
        cluster = read["clusters"][0]["cluster"]
        authority = cluster.get("certificate-authority-data")
        verify = ssl.create_default_context(cadata=base64.b64decode(authority).decode()) if authority else False
        self._server = cluster["server"]
        headers = {"Authorization": f"Bearer {read['users'][0]['user']['token']}", "User-Agent": user_agent}
        self._client = httpx2.Client(verify=verify, trust_env=False, headers=headers, timeout=30)

    def close(self) -> None:
        self._client.close()

    def ask(self, method: str, path: str, content: Any = None, form: str = "", /, **query: Any) -> Answer:
        accept = query.pop("accept", "application/json")
        body = content if content is None or isinstance(content, str) else json.dumps(content)
        headers = {"Accept": accept, "Content-Type": form or "application/json"}
        url = self._server + path
        return Answer(self._client.request(method, url, content=body, headers=headers, params=query or None))

    def get(self, path: str, /, **query: Any) -> Answer:
        return self.ask("GET", path, **query)

    def post(self, path: str, content: Any, /, **query: Any) -> Answer:
        return self.ask("POST", path, content, **query)

    def put(self, path: str, content: Any) -> Answer:
        return self.ask("PUT", path, content)

    def patch(self, path: str, patch: Any, form: str = MERGE_PATCH, /, **query: Any) -> Answer:
        return self.ask("PATCH", path, patch, form, **query)

    def delete(self, path: str, options: Any = None) -> Answer:
        return self.ask("DELETE", path, options)

    def make(self, path: str, content: Any) -> Any:
        """Create something that nothing speaks against; returns it."""
        made = self.post(path, content)
        assert made.status == 201, made.text
        return made.json


def deployment(name: str, **labels: str) -> dict[str, Any]:
    container = {"name": "web", "image": "web:1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {**MANAGED, **labels}},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
        },
    }


def mapping(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "getambassador.io/v3alpha1",
        "kind": "Mapping",
        "metadata": {"name": name, "labels": MANAGED},
        "spec": {"hostname": "*", "prefix": "/web/", "service": "web"},
    }


def machine(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name, "labels": MANAGED},
        "spec": {"runStrategy": "Always", "template": {"spec": {"domain": {}}}, **spec},
    }


def claim(name: str, storage: str = "1Gi") -> dict[str, Any]:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    return {"metadata": {"name": name, "labels": MANAGED}, "spec": {"storageClassName": "standard", **wanted}}


def service(name: str, **spec: Any) -> dict[str, Any]:
    wanted = {"selector": {"app": name}, "ports": [{"port": 80}], **spec}
    return {"metadata": {"name": name, "labels": MANAGED}, "spec": wanted}


@pytest.fixture(scope="module")
def running(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """The sandbox; in modules that are `ON_A_REAL_SERVER`, over the server of `KUBECONFIG_REAL` where there is one."""
    is_real = getattr(request.module, "ON_A_REAL_SERVER", False)
    with over_a_real_server(Sandbox(port=0)) if is_real else Sandbox(port=0) as sandbox:
        yield sandbox


@pytest.fixture
def name() -> str:
    """A name that nothing bears yet, also on a real server that was tested before."""
    return f"t{uuid.uuid4().hex[:10]}"


@pytest.fixture
def cluster(sandbox: Sandbox) -> KubernetesCloud:
    cluster: KubernetesCloud = sandbox.kubernetes
    return cluster


@pytest.fixture
def person(sandbox: Sandbox) -> Iterator[Api]:
    api = Api(kubeconfig(sandbox.url, "person"))
    yield api
    api.close()


@pytest.fixture
def agent(sandbox: Sandbox) -> Iterator[Api]:
    api = agent_api(sandbox)
    yield api
    api.close()


def agent_api(sandbox: Sandbox, live_system: str = "ls-a", component: str = "web", reason: str = "deploy") -> Api:
    words = f"fractal-cloud/0.1.0 ls/{live_system} component/{component} reason/{reason}"
    return Api(kubeconfig(sandbox.url, "agent"), words)


@pytest.fixture(params=["sandbox", pytest.param("real", marks=pytest.mark.real_cluster)])
def api(request: pytest.FixtureRequest) -> Iterator[Api]:
    """The sandbox's server, and then a real one: a fact must hold on both."""
    if request.param == "sandbox":
        config = kubeconfig(request.getfixturevalue("sandbox").url, "person")
    elif KUBECONFIG:
        config = Path(KUBECONFIG).read_text()
    else:
        pytest.skip('no real API server: eval "$(scripts/kube-apiserver start)" sets KUBECONFIG_REAL')
    api = Api(config)
    yield api
    api.close()
