"""An agent sends its credentials to a declared cluster only where the vendor itself says that it answers, and only to
the vendor's host names; what a component published, and what an answer redirects to, is never an address (A6).
"""

from __future__ import annotations

import base64
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from fractal_cloud.control.store.schema import components
from fractal_cloud.model.errors import CloudError, Unreadable
from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.aruba.kaas import ArubaKaasOffer
from fractal_cloud.offers.aws.eks import AwsEksOffer
from fractal_cloud.offers.azure.aks import AzureAksOffer
from fractal_cloud.offers.cluster_access import ALLOWED, Access, Addresses, check_access
from fractal_cloud.offers.gcp.gke import GcpGkeOffer
from fractal_cloud.offers.kubernetes.calls import Kubernetes
from fractal_cloud.offers.kubernetes.cloud import KubernetesSession
from fractal_cloud.offers.kubernetes.kinds import NAMESPACE
from fractal_sandbox import Sandbox
from tests.clusters.test_other_vendors import EACH
from tests.clusters.worlds import WithClusters, eks, network, web, with_clusters

CERTIFICATE = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nQQ==\n-----END CERTIFICATE-----\n").decode()
HASH = "EXAMPLE0A04F01705DD065655C30CC3D".replace("X", "A").replace("M", "B").replace("P", "C").replace("L", "D")
OFFERS: dict[str, Any] = {
    "EKS": AwsEksOffer,
    "GKE": GcpGkeOffer,
    "AKS": AzureAksOffer,
    "KaaS": ArubaKaasOffer,
}
HONEST = [
    ("EKS", f"https://{HASH}.yl4.us-west-2.eks.amazonaws.com"),
    ("EKS", f"https://{HASH}.gr7.eu-west-1.eks.amazonaws.com:443"),
    ("EKS", f"https://{HASH}.gr7.us-west-2.api.aws"),
    ("EKS", f"https://{HASH}.yl4.cn-north-1.eks.amazonaws.com.cn"),
    ("EKS", f"https://{HASH}.cn-north-1.api.amazonwebservices.com.cn"),
    ("GKE", "https://34.118.0.7"),
    ("GKE", "https://10.0.0.2"),
    ("GKE", "https://gke-0123456789abcdef.europe-west1.gke.goog"),
    ("AKS", "https://prod-1a2b3c4d.hcp.westeurope.azmk8s.io:443"),
    ("AKS", "https://prod-1a2b3c4d.1f2e3d4c.privatelink.westeurope.azmk8s.io"),
    ("AKS", "https://prod-1a2b.hcp.usgovvirginia.cx.aks.containerservice.azure.us"),
    ("AKS", "https://prod-1a2b.hcp.chinaeast2.cx.prod.service.azk8s.cn"),
    ("KaaS", "https://203.0.113.7:6443"),
]
GOOD = f"{HASH}.gr7.eu-west-1.eks.amazonaws.com"
HOSTILE = [
    f"http://{GOOD}",
    f"HTTPS+unix://{GOOD}",
    f"https://{GOOD}@evil.example",
    f"https://{GOOD}:443@evil.example",
    f"https://user:word@{GOOD}",
    f"https://{GOOD}.evil.example",
    "https://evil.example",
    "https://evil.example/.eks.amazonaws.com",
    "https://evil.example#.eks.amazonaws.com",
    "https://evil.example?.eks.amazonaws.com",
    f"https://{GOOD}:8443",
    f"https://{GOOD}/elsewhere",
    f"https://{GOOD}\\@evil.example",
    f"https://{GOOD}\n.evil.example",
    f" https://{GOOD}",
    "https://evilеks.eks.amazonaws.com",  # a letter that only looks Latin
    "https://xn--e1awd7f.example",
    "https://eks.amazonaws.com",
    "https://evileks.amazonaws.com",
    "https://abc123.execute-api.eu-west-1.api.aws",
    "https://127.0.0.1",
    "https://[::1]",
    "https://169.254.169.254",
    "https://[fe80::1]",
    "https://0.0.0.0",
    "https://34.118.0.7:8443",
    "https://2130706433",
    "https://0x7f.1",
    "",
]


def _check(vendor: str, server: str, authority: str = CERTIFICATE) -> None:
    addresses: Addresses = OFFERS[vendor].cluster_addresses
    check_access(Access("prod", server, authority), addresses)


@pytest.mark.rule("A6")
@pytest.mark.parametrize(("vendor", "server"), HONEST)
def test_the_vendors_own_addresses_are_followed(vendor: str, server: str) -> None:
    _check(vendor, server)


@pytest.mark.rule("A6")
@pytest.mark.parametrize("server", HOSTILE)
@pytest.mark.parametrize("vendor", OFFERS)
def test_no_other_address_is_followed_whatever_the_cloud_answers(vendor: str, server: str) -> None:
    with pytest.raises(Unreadable):
        _check(vendor, server)


@pytest.mark.rule("A6")
@pytest.mark.parametrize("vendor", OFFERS)
def test_one_vendors_addresses_are_not_anothers(vendor: str) -> None:
    for other, server in HONEST:
        if other != vendor and not server.startswith(("https://34", "https://10")):
            with pytest.raises(Unreadable):
                _check(vendor, server)


@pytest.mark.rule("A6")
@pytest.mark.parametrize("authority", ["", "none", "QQ==", base64.b64encode(b"no certificate").decode()])
def test_nothing_is_sent_where_the_vendor_names_no_authority(authority: str) -> None:
    with pytest.raises(Unreadable, match="by which authority"):
        _check("GKE", "https://34.118.0.7", authority)


@pytest.mark.rule("A6")
def test_a_setting_allows_further_hosts_and_never_plain_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALLOWED, "k8s.corp.example, *.clusters.example:6443")
    for server in ("https://k8s.corp.example", "https://a.clusters.example:6443/below/a-path"):
        _check("EKS", server)
    refused = (
        *("http://k8s.corp.example", "https://k8s.corp.example:444", "https://a.clusters.example"),
        *("https://k8s.corp.example.evil.example", "https://k8s.corp.example@evil.example"),
    )
    for server in refused:
        with pytest.raises(Unreadable):
            _check("EKS", server)
    with pytest.raises(Unreadable, match=f"allow it: {ALLOWED}=evil.example:8443"):
        _check("EKS", "https://evil.example:8443")


# --- in the whole product


class Listener:
    """Somebody who waits for requests that are not for him."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.heard = 0
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while True:
            try:
                caller, _ = self._socket.accept()
            except OSError:
                return
            self.heard += 1
            caller.close()

    def close(self) -> None:
        """Stop listening."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)


@pytest.fixture
def listener() -> Iterator[Listener]:
    """Somebody who waits on a port of this machine."""
    made = Listener()
    yield made
    made.close()


def _forge(world: WithClusters, component: str, **outputs: str) -> None:
    """Let a component have published this: what an agent that lies, or was taken over, reports of it."""
    here = components.c.component_id == component
    with world.app.state.store.write() as tx:
        fields = tx.connection.execute(select(components.c.output_fields).where(here)).scalar_one()
        tx.connection.execute(update(components).where(here).values(output_fields={**fields, **outputs}))


@pytest.mark.rule("A6")
def test_a_forged_output_leads_no_agent_anywhere(
    session_sandbox: Sandbox, tmp_path: Path, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    with with_clusters(session_sandbox, tmp_path) as world:
        # Even if the address itself were allowed: outputs are no addresses.
        sandbox_host = session_sandbox.url.removeprefix("http://")
        monkeypatch.setenv(ALLOWED, f"{sandbox_host},127.0.0.1:{listener.port}")
        world.deploy("ls-a", *network(), eks(), web())
        world.settle(20)
        assert world.deployments() == ["web"]
        _forge(world, "prod", endpoint=f"https://127.0.0.1:{listener.port}", certificateAuthorityData=CERTIFICATE)
        world.deploy("ls-a", *network(), eks(), web(), web("more"))
        world.restart_agents()
        for _ in range(4):
            world.other_agent.run_once()  # the vendor's own agent, which would report what is true, does not come to it
        assert listener.heard == 0
        assert world.deployments() == ["more", "web"], "the cluster itself is entered"
        world.assert_safe()


def _led_away(body: bytes, home: str, away: str) -> bytes:
    """An answer in which every address of a cluster is another one, in kubeconfigs too."""

    def inside(found: re.Match[bytes]) -> bytes:
        try:
            text = base64.b64decode(found[0], validate=True)
        except ValueError:
            return found[0]
        changed = text.replace(f"{home}/api-servers".encode(), away.encode())
        return base64.b64encode(changed) if changed != text else found[0]

    body = body.replace(f"{home}/api-servers".encode(), away.encode())
    return re.sub(rb"[A-Za-z0-9+/=]{200,}", inside, body)


@pytest.mark.rule("A6")
@pytest.mark.parametrize("vendor", ["EKS", *EACH])
def test_a_cloud_that_answers_with_another_address_is_not_followed(
    session_sandbox: Sandbox, tmp_path: Path, listener: Listener, vendor: str
) -> None:
    kind, parts, _ = EACH.get(vendor, (WithClusters, [*network(), eks()], ""))
    with with_clusters(session_sandbox, tmp_path, kind) as world:
        world.deploy("ls-a", *parts)
        world.settle(25)
        home = session_sandbox.url.removeprefix("http://")
        knobs = getattr(session_sandbox, kind.sides[0]).knobs
        away = f"127.0.0.1:{listener.port}/api-servers"
        knobs.rewrite(lambda body: _led_away(body, home, away))
        world.deploy("ls-a", *parts, web())
        for _ in range(4):
            world.cycle()
        assert listener.heard == 0
        assert world.deployments() == []
        assert "none of its host names: nothing is sent there" in world.message("web")


@contextmanager
def _redirecting(to: int) -> Iterator[int]:
    """A server that sends everybody elsewhere."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(307)
            self.send_header("Location", f"http://127.0.0.1:{to}{self.path}")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join(5)


@pytest.mark.rule("A6")
def test_a_cluster_that_redirects_is_not_followed(listener: Listener) -> None:
    session = KubernetesSession()
    with _redirecting(listener.port) as port:
        settings = session._sdk.client.Configuration(host=f"http://127.0.0.1:{port}")
        settings.api_key["authorization"] = "Bearer secret"
        cluster = session._cluster("it", settings)
        with pytest.raises(CloudError):
            Kubernetes(cluster, Scope("kubernetes", "", "kube-system")).find(NAMESPACE, "kube-system")
    assert listener.heard == 0
