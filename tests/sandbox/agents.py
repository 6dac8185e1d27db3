"""The agents' credentials at each cloud of the sandbox, for tests that do with them whatever they like."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Callable
from email.utils import formatdate
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from fractal_sandbox import Sandbox, agent_env
from fractal_sandbox.aruba import CLIENTS, SECRETS, TOKEN_PATH
from fractal_sandbox.aruba import PATH as ARUBA
from fractal_sandbox.azure import PATH as AZURE
from fractal_sandbox.gcp import PATH as GCP
from fractal_sandbox.gcp import TOKENS
from fractal_sandbox.kubernetes import CLUSTERS
from fractal_sandbox.oci import key_id
from fractal_sandbox.oci.keys import private_pem

Call = Callable[..., Any]


def user_agent(component: str = "thing", reason: str = "drift", live_system: str = "ls-a") -> str:
    return f"fractal-cloud/0 ls/{live_system} component/{component} reason/{reason}"


def send(method: str, url: str, body: Any = None, **headers: str) -> Any:
    """One request; what it answers, also where it is refused: the attempt is what counts."""
    data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    sent = {"Content-Type": "application/json", **headers}
    try:
        with urlopen(Request(url, data, sent, method=method), timeout=20) as answer:
            content = answer.read()
    except HTTPError as error:
        with error:
            content = error.read()
    try:
        return json.loads(content) if content else None
    except ValueError:
        return content


def agent_at(sandbox: Sandbox, cloud: str, component: str = "thing", reason: str = "drift") -> Call:
    """A function that calls a cloud's API by method, path and body, with the agent's own credentials."""
    origin = {"User-Agent": user_agent(component, reason)}
    if cloud == "gcp":
        token = {"Authorization": f"Bearer {TOKENS['agent']}"}
        return lambda method, path, body=None: send(method, f"{sandbox.url}{GCP}{path}", body, **origin, **token)
    if cloud == "azure":
        asked = f"{sandbox.url}{AZURE}/msi/token?resource=x"
        token = {"Authorization": f"Bearer {send('GET', asked, **{'X-IDENTITY-HEADER': 'agent'})['access_token']}"}
        version = "?api-version=2024-05-01"
        return lambda method, path, body=None: send(
            method, f"{sandbox.url}{AZURE}{path}{version}", body, **origin, **token
        )
    if cloud == "aruba":
        form = {"grant_type": "client_credentials", "client_id": CLIENTS["agent"], "client_secret": SECRETS["agent"]}
        answer = send("POST", f"{sandbox.url}{ARUBA}{TOKEN_PATH}", urlencode(form).encode())
        token = {"Authorization": f"Bearer {answer['access_token']}"}
        return lambda method, path, body=None: send(method, f"{sandbox.url}{ARUBA}{path}", body, **origin, **token)
    if cloud == "hetzner":
        env = agent_env(sandbox.url)
        token = {"Authorization": f"Bearer {env['HCLOUD_TOKEN']}"}
        return lambda method, path, body=None: send(method, f"{env['HCLOUD_ENDPOINT']}{path}", body, **origin, **token)
    if cloud == "kubernetes":
        base = f"{sandbox.url}{CLUSTERS['sandbox']}/as/agent"
        return lambda method, path, body=None, kind="application/json": send(
            method, f"{base}{path}", body, **origin, **{"Content-Type": kind}
        )
    assert cloud == "oci", cloud
    return lambda method, path, body=None: _signed(sandbox, method, path, body, origin)


def _signed(sandbox: Sandbox, method: str, path: str, body: Any, origin: dict[str, str]) -> Any:
    """A request to OCI, signed with the agent's key."""
    key: Any = load_pem_private_key(private_pem("agent").encode(), None)
    parts = urlsplit(f"{agent_env(sandbox.url)['OCI_CLI_ENDPOINT']}{path}")
    data = b"" if body is None else json.dumps(body).encode()
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    signed = {"date": formatdate(usegmt=True), "(request-target)": f"{method.lower()} {target}", "host": parts.netloc}
    if method in ("POST", "PUT", "PATCH"):
        digest = b64encode(hashlib.sha256(data).digest()).decode()
        signed |= {"content-length": str(len(data)), "content-type": "application/json", "x-content-sha256": digest}
    text = "\n".join(f"{name}: {value}" for name, value in signed.items())
    signature = b64encode(key.sign(text.encode(), PKCS1v15(), SHA256())).decode()
    said = {"algorithm": "rsa-sha256", "headers": " ".join(signed), "keyId": key_id("agent"), "signature": signature}
    authorization = "Signature " + ",".join(f'{name}="{value}"' for name, value in {**said, "version": "1"}.items())
    sent = {name: value for name, value in signed.items() if name not in ("(request-target)", "content-type")}
    whole = data if method in ("POST", "PUT", "PATCH") else None
    return send(method, parts.geturl(), whole, Authorization=authorization, **sent, **origin)
