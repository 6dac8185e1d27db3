"""Oracle's own SDK, from the environment of its command line, against the sandbox, and beside our signatures."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.offers.oci.signing import Key, sign
from fractal_sandbox import Sandbox, sandbox_env
from fractal_sandbox.oci import key_id
from fractal_sandbox.oci.keys import private_pem

OCI = shutil.which("oci")
pytestmark = [
    pytest.mark.clis,
    pytest.mark.timeout(300),
    pytest.mark.skipif(OCI is None, reason="oci, Oracle's command line, is not installed: `make test-clis` brings it"),
]

Script = Callable[[str], Any]

WALK = """
import json, os, oci
from oci.core.models import CreateVcnDetails, UpdateVcnDetails, AddVcnCidrDetails
config = oci.config.from_file(os.environ["OCI_CONFIG_FILE"])
here = dict(service_endpoint=os.environ["OCI_CLI_ENDPOINT"], retry_strategy=oci.retry.NoneRetryStrategy())
identity = oci.identity.IdentityClient(config, **here)
team = next(c for c in identity.list_compartments(config["tenancy"]).data if c.name == "team").id
network = oci.core.VirtualNetworkClient(config, **here)
made = [network.create_vcn(CreateVcnDetails(compartment_id=team, cidr_blocks=["10.0.0.0/16"], display_name=f"net-{n}",
        freeform_tags={"n": str(n)}), opc_retry_token=f"token-{n}") for n in range(5)]
again = network.create_vcn(CreateVcnDetails(compartment_id=team, cidr_blocks=["10.0.0.0/16"], display_name="net-0",
        freeform_tags={"n": "0"}), opc_retry_token="token-0")
first = made[0].data.id
listed = oci.pagination.list_call_get_all_results(network.list_vcns, team, limit=2).data
etag = network.get_vcn(first).headers["etag"]
network.update_vcn(first, UpdateVcnDetails(freeform_tags={"a": "b"}), if_match=etag)
try:
    network.update_vcn(first, UpdateVcnDetails(display_name="x"), if_match=etag)
    refused = None
except oci.exceptions.ServiceError as error:
    refused = [error.status, error.code]
network.add_vcn_cidr(first, AddVcnCidrDetails(cidr_block="10.9.0.0/16"))
store = oci.object_storage.ObjectStorageClient(config, **here)
namespace = store.get_namespace().data
store.create_bucket(namespace, oci.object_storage.models.CreateBucketDetails(name="b", compartment_id=team))
store.put_object(namespace, "b", "letters/first", b"dear")
try:
    store.delete_bucket(namespace, "b")
    full = None
except oci.exceptions.ServiceError as error:
    full = [error.status, error.code]
print(json.dumps({"same": again.data.id == first, "listed": [v.display_name for v in listed], "refused": refused,
    "blocks": network.get_vcn(first).data.cidr_blocks, "full": full}))
"""

SIGN = """
import json, oci, sys
from oci._vendor import requests
asked = json.load(sys.stdin)
signer = oci.signer.Signer(*asked["key_id"].split("/"), None, private_key_content=asked["pem"])
request = requests.Request(asked["method"], asked["url"], data=asked["body"] or None,
    headers={"date": asked["date"], "content-type": "application/json"}).prepare()
print(json.dumps(signer(request).headers["authorization"]))
"""


def _run(script: str, env: dict[str, str], given: str = "") -> Any:
    assert OCI is not None
    python = Path(OCI).resolve().parent / "python"
    result = subprocess.run(
        [str(python), "-c", script], env=env, input=given, capture_output=True, text=True, timeout=200, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads(result.stdout)


def test_the_vendors_sdk_finds_in_the_sandbox_what_it_expects(session_sandbox: Sandbox, tmp_path: Path) -> None:
    session_sandbox.oci.reset()
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **sandbox_env(session_sandbox.url, tmp_path)}
    assert _run(WALK, env) == {
        "same": True,
        "listed": [f"net-{number}" for number in range(5)],
        "refused": [412, "NoEtagMatch"],
        "blocks": ["10.0.0.0/16", "10.9.0.0/16"],
        "full": [409, "BucketNotEmpty"],
    }
    session_sandbox.oci.reset()


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/20160918/vcns?compartmentId=ocid1.x&limit=1000&page=a%2Bb%3D", ""),
        ("PUT", "/20160918/vcns/ocid1.vcn.x", '{"freeformTags": {"a": "\\u00fc"}}'),
        ("POST", "/20160918/instances/ocid1.x?action=SOFTSTOP", ""),
        ("DELETE", "/n/ns/b/objects", ""),
    ],
)
def test_our_signature_is_the_vendors_to_the_letter(tmp_path: Path, method: str, path: str, body: str) -> None:
    url = f"https://iaas.eu-frankfurt-1.oraclecloud.com{path}"
    date = "Mon, 16 Nov 2026 06:00:00 GMT"
    headers = {"date": date, "content-type": "application/json"}
    sign(Key.from_pem(private_pem("agent")), key_id("agent"), method, url, headers, body.encode())
    asked = {"key_id": key_id("agent"), "pem": private_pem("agent"), "method": method, "url": url, "body": body}
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    assert _run(SIGN, env, json.dumps({**asked, "date": date})) == headers["authorization"]
