"""Clusters that are declared as components: which types there are, and how one is entered, by what it published.

Credentials are the vendors' usual ones, found where their own tools find them. Nothing of a vendor is imported before
such a cluster is declared. Nothing is ever executed because a downloaded kubeconfig says so.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from fractal_cloud.model.errors import Denied, Unreadable
from fractal_cloud.model.wire import Host
from fractal_cloud.offers.rest import Answer, Dialect, RestClient

EKS: Final = "NetworkAndCompute.PaaS.AwsEks"
AKS: Final = "NetworkAndCompute.PaaS.AzureAks"
GKE: Final = "NetworkAndCompute.PaaS.GcpGke"
KAAS: Final = "NetworkAndCompute.PaaS.ArubaKaas"
HOSTS: Final[Mapping[str, tuple[str, ...]]] = {
    EKS: ("clusterArn", "clusterName", "region", "endpoint", "certificateAuthorityData"),
    AKS: ("id", "name", "fqdn"),
    GKE: ("project", "location", "clusterName", "clusterId", "endpoint", "certificateAuthorityData"),
    KAAS: ("id", "kaasUri", "managementIp"),
}
"""The types of clusters, each with the outputs it is reached by; a cluster that is made anew publishes others."""
# The application that stands for the API server of every AKS cluster that knows Entra.
AKS_SERVER: Final = "6dae42f8-4368-4678-94ff-3fdab4bd0d2e"
AKS_VERSION: Final = "2025-03-01"


class _Bearer(Dialect):
    """The few questions that are asked of a vendor here: with a token, and refusals in the vendor's own words."""

    def __init__(self, provider: str, token: Callable[[], str]) -> None:
        self.provider = provider
        self._token = token

    def authorise(self, method: str, url: str, headers: dict[str, str], content: bytes) -> None:
        """Add the token."""
        del method, url, content
        headers["authorization"] = f"Bearer {self._token()}"

    def code_and_message(self, answer: Answer) -> tuple[str, str]:
        """What Azure and Aruba say: an error with a code, or a problem with a title."""
        body = answer.body()
        problem = body if isinstance(body, dict) else {}
        error = problem.get("error")
        error = error if isinstance(error, dict) else {}
        return str(error.get("code") or ""), str(error.get("message") or problem.get("title") or "it was refused")


@dataclass(frozen=True, slots=True)
class Access:
    """How a cluster is entered. ``authority``, ``certificate`` and ``key`` are PEM in base64.

    ``token``: asked before every request, and quick; None where a certificate is enough.
    """

    server: str
    authority: str
    token: Callable[[], str] | None = None
    certificate: str = ""
    key: str = ""

    def kubeconfig(self) -> dict[str, Any]:
        """The same in the form the official client takes; a token is not in it."""
        certificate = {"client-certificate-data": self.certificate, "client-key-data": self.key}
        cluster = {"server": self.server, "certificate-authority-data": self.authority}
        return {
            "current-context": "it",
            "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": "it", "user": certificate if self.certificate else {}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        }


def name_of(host: Host) -> str:
    """What people call a cluster once the vendor's own command has entered it into their kubeconfig."""
    outputs = host.outputs
    match host.type:
        case "NetworkAndCompute.PaaS.AwsEks":
            return outputs["clusterArn"]
        case "NetworkAndCompute.PaaS.GcpGke":
            return f"gke_{outputs['project']}_{outputs['location']}_{outputs['clusterName']}"
        case "NetworkAndCompute.PaaS.AzureAks":
            return outputs["name"]
        case _:
            return outputs["id"]


def access(host: Host) -> Access:
    """How a declared cluster is entered; raises an error of the closed set, saying what is missing."""
    try:
        return _WAYS[host.type](host.outputs)
    except ModuleNotFoundError as missing:
        raise Denied(f"{missing.name!r} is not installed, which clusters of type {host.type} need") from missing


def _eks(outputs: Mapping[str, str]) -> Access:
    from fractal_cloud.offers.aws_login import EksTokens

    tokens = EksTokens(outputs["region"], outputs["clusterName"])
    return Access(outputs["endpoint"], outputs["certificateAuthorityData"], tokens.token)


def _gke(outputs: Mapping[str, str]) -> Access:
    from fractal_cloud.offers.google_login import GoogleTokens

    return Access(f"https://{outputs['endpoint']}", outputs["certificateAuthorityData"], GoogleTokens().token)


def _aks(outputs: Mapping[str, str]) -> Access:
    """By the kubeconfig that every user of the cluster may have.

    Its certificate counts where the cluster has accounts of its own; where it knows Entra instead, a token does.
    The kubeconfig of its administrators would pass by whatever Entra allows the agent, and leave no name in its logs.
    """
    from fractal_cloud.offers import azure_login

    credential = azure_login.credential()
    client = RestClient(
        azure_login.endpoint(), _Bearer("azure", lambda: azure_login.token(credential, azure_login.audience()))
    )
    answer = client.ask(f"{outputs['id']}/listClusterUserCredential", None, {"api-version": AKS_VERSION})
    client.close()
    found = answer.item().get("kubeconfigs") or []
    if not found:
        raise Unreadable(f"Azure returned no kubeconfig for {outputs['name']!r}: it is asked again")
    return _of_kubeconfig(found[0].get("value", ""), lambda: azure_login.token(credential, AKS_SERVER))


def _kaas(outputs: Mapping[str, str]) -> Access:
    """By the kubeconfig that Aruba lets download."""
    from fractal_cloud.offers import aruba_login

    caller = aruba_login.find()
    tokens = aruba_login.Tokens(caller)
    client = RestClient(caller.base, _Bearer("aruba", tokens.token))
    answer = client.read(f"{outputs['kaasUri']}/download", {"api-version": "1.0"})
    client.close()
    tokens.close()
    return _of_kubeconfig(answer.item().get("content", ""))


_WAYS: Final[Mapping[str, Callable[[Mapping[str, str]], Access]]] = {EKS: _eks, AKS: _aks, GKE: _gke, KAAS: _kaas}


def _of_kubeconfig(content: Any, token: Callable[[], str] | None = None) -> Access:
    """What a kubeconfig in base64 says of its current context; ``token``: where it would execute something for one."""
    try:
        kubeconfig = yaml.safe_load(base64.b64decode(content, validate=True))
        contexts = {one["name"]: one["context"] for one in kubeconfig["contexts"]}
        context = contexts[kubeconfig["current-context"]]
        cluster = {one["name"]: one["cluster"] for one in kubeconfig["clusters"]}[context["cluster"]]
        user = {one["name"]: one["user"] for one in kubeconfig["users"]}[context["user"]]
        server, authority = cluster["server"], cluster["certificate-authority-data"]
    except (binascii.Error, yaml.YAMLError, UnicodeError, KeyError, TypeError, ValueError) as error:
        raise Unreadable(f"the kubeconfig that was downloaded cannot be read ({type(error).__name__})") from error
    if user.get("client-certificate-data"):
        return Access(server, authority, None, user["client-certificate-data"], user["client-key-data"])
    if user.get("token"):
        return Access(server, authority, lambda: str(user["token"]))
    if token is None:
        raise Denied("the kubeconfig that was downloaded holds neither a token nor a certificate")
    return Access(server, authority, token)
