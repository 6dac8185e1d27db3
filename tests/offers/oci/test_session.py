"""Credentials as the vendor's users have them, compartments by path and id, and where a region's services answer."""

from __future__ import annotations

import json
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from fractal_cloud.model.errors import Denied, Invalid, Unreadable
from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.oci import credentials, regions
from fractal_cloud.offers.oci.calls import Oci, Subscription, Vnic
from fractal_cloud.offers.oci.cloud import OciSession
from fractal_cloud.offers.oci.errors import OciDialect
from fractal_cloud.offers.rest import RestClient
from fractal_sandbox import Sandbox
from fractal_sandbox.http_server import Environ, HttpServer, StartResponse
from fractal_sandbox.oci import REGION, TENANCY, USERS, key_id
from fractal_sandbox.oci.keys import fingerprint, private_pem
from tests.offers.oci.worlds import alone

TEAM, NETWORK = "ocid1.compartment.oc1..sandboxteam", "ocid1.compartment.oc1..sandboxnetwork"


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Nothing in the environment, and an empty home."""
    alone(monkeypatch)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def settings(folder: Path, **more: str) -> dict[str, str]:
    key = folder / "key.pem"
    key.write_text(private_pem("agent"))
    own = {"user": USERS["agent"], "fingerprint": fingerprint("agent"), "key_file": str(key)}
    return {**own, "tenancy": TENANCY, "region": REGION, **more}


def profile(name: str, values: dict[str, str]) -> str:
    return "\n".join([f"[{name}]", *(f"{key}={value}" for key, value in values.items())]) + "\n"


def token(**claims: Any) -> str:
    body = urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"head.{body}.signature"


# --- credentials


def test_the_config_file_of_the_home_is_found(nobody: Path) -> None:
    (nobody / ".oci").mkdir()
    (nobody / ".oci" / "config").write_text(profile("DEFAULT", settings(nobody)))
    caller = credentials.find()
    assert (caller.tenancy, caller.region, caller.key()[0]) == (TENANCY, REGION, key_id("agent"))


def test_a_profile_inherits_from_the_default_and_the_environment_comes_before_both(
    nobody: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = profile("DEFAULT", settings(nobody)) + profile("prod", {"region": "uk-london-1", "user": "ocid1.user.x"})
    (nobody / "config").write_text(own)
    monkeypatch.setenv("OCI_CONFIG_FILE", str(nobody / "config"))
    monkeypatch.setenv("OCI_CLI_PROFILE", "prod")
    monkeypatch.setenv("OCI_CLI_USER", USERS["agent"])
    caller = credentials.find()
    assert (caller.region, caller.key()[0]) == ("uk-london-1", key_id("agent"))


def test_the_environment_alone_is_enough(nobody: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in settings(nobody).items():
        if name != "key_file":
            monkeypatch.setenv(f"OCI_CLI_{name.upper()}", value)
    monkeypatch.setenv("OCI_CLI_KEY_CONTENT", private_pem("agent"))
    assert credentials.find().key()[0] == key_id("agent")


def test_a_key_may_have_a_passphrase(nobody: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = rsa.generate_private_key(65537, 2048)
    sealed = serialization.BestAvailableEncryption(b"open sesame")
    pem = own.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, sealed).decode()
    for name, value in settings(nobody, key_content=pem, pass_phrase="wrong").items():
        monkeypatch.setenv(f"OCI_CLI_{'PASSPHRASE' if name == 'pass_phrase' else name.upper()}", value)
    with pytest.raises(Denied, match="pass_phrase"):
        credentials.find()
    monkeypatch.setenv("OCI_CLI_PASSPHRASE", "open sesame")
    credentials.find()


def test_what_is_missing_is_named(nobody: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCI_CLI_TENANCY", TENANCY)
    with pytest.raises(Denied, match=r"user, fingerprint, region, key_file are missing.*oci setup config"):
        credentials.find()
    monkeypatch.setenv("OCI_CLI_AUTH", "pkcs11")
    with pytest.raises(Denied, match=r"'pkcs11'.*instance_principal"):
        credentials.find()


def test_a_session_token_is_read_again_before_it_ends(nobody: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token_file = nobody / "token"
    own = settings(nobody, security_token_file=str(token_file))
    del own["user"]
    (nobody / "config").write_text(profile("DEFAULT", own))
    monkeypatch.setenv("OCI_CLI_CONFIG_FILE", str(nobody / "config"))
    first = token(exp=time.time() + 3600)
    token_file.write_text(first)
    caller = credentials.find()
    assert caller.key()[0] == f"ST${first}"
    over = credentials.find()
    token_file.write_text(token(exp=time.time() - 1))
    monkeypatch.setattr(credentials, "RENEWED_BEFORE", 7200.0)
    with pytest.raises(Denied, match="oci session refresh"):
        over.key()
    monkeypatch.setattr(credentials, "RENEWED_BEFORE", 120.0)
    second = token(exp=time.time() + 7200)
    token_file.write_text(second)
    assert over.key()[0] == f"ST${second}"


def test_a_resource_principal_comes_from_the_files_its_variables_name(
    nobody: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (nobody / "rpst").write_text(token(exp=time.time() + 3600, res_tenant=TENANCY))
    (nobody / "pem").write_text(private_pem("agent"))
    prefix = "OCI_RESOURCE_PRINCIPAL"
    for name, value in {
        "VERSION": "2.2",
        "RPST": nobody / "rpst",
        "PRIVATE_PEM": nobody / "pem",
        "REGION": REGION,
    }.items():
        monkeypatch.setenv(f"{prefix}_{name}", str(value))
    caller = credentials.find()
    assert (caller.tenancy, caller.region) == (TENANCY, REGION)
    assert caller.key()[0].startswith("ST$head.")


# --- instance principals, against a metadata service of our own


class Metadata:
    """What a machine of OCI can ask for, and the service that gives tokens for certificates."""

    def __init__(self) -> None:
        self.key = rsa.generate_private_key(65537, 2048)
        name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, f"opc-tenant:{TENANCY}")])
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(self.key.public_key())
        now = datetime.now(UTC)
        builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(hours=1))
        self.certificate = builder.sign(self.key, hashes.SHA256())
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, environ: Environ, start_response: StartResponse) -> list[bytes]:
        path = environ["PATH_INFO"]
        pem = self.certificate.public_bytes(serialization.Encoding.PEM)
        private = self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        answers = {
            "/opc/v2/identity/cert.pem": pem,
            "/opc/v2/identity/intermediate.pem": pem,
            "/opc/v2/identity/key.pem": private,
            "/opc/v2/instance/regionInfo": json.dumps({"regionIdentifier": REGION}).encode(),
        }
        if path in answers and environ.get("HTTP_AUTHORIZATION") == "Bearer Oracle":
            start_response("200 OK", [])
            return [answers[path]]
        if path == "/v1/x509":
            self.asked.append((environ["HTTP_AUTHORIZATION"], json.loads(environ["wsgi.input"].read())))
            start_response("200 OK", [])
            return [json.dumps({"token": token(exp=time.time() + 3600, number=len(self.asked))}).encode()]
        start_response("404 Not Found", [])
        return [b"no"]


@pytest.fixture
def metadata(nobody: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Metadata]:
    served = Metadata()
    server = HttpServer("127.0.0.1", 0, served)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    monkeypatch.setenv("OCI_CLI_AUTH", "instance_principal")
    monkeypatch.setenv("OCI_METADATA_BASE_URL", f"http://127.0.0.1:{server.port}/opc/v2")
    monkeypatch.setenv("OCI_CLI_FEDERATION_ENDPOINT", f"http://127.0.0.1:{server.port}/v1/x509")
    yield served
    server.stop()


def test_a_machine_trades_its_certificate_for_a_token_and_comes_again(
    metadata: Metadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = credentials.find()
    assert (caller.tenancy, caller.region) == (TENANCY, REGION)
    first = caller.key()[0]
    assert caller.key()[0] == first, "a token is used until it ends"
    authorization, body = metadata.asked[0]
    print_of = ":".join(f"{byte:02X}" for byte in metadata.certificate.fingerprint(hashes.SHA1()))
    assert f'keyId="{TENANCY}/fed-x509/{print_of}"' in authorization
    assert 'headers="date (request-target) content-length content-type x-content-sha256"' in authorization
    assert set(body) == {"certificate", "publicKey", "intermediateCertificates"}
    assert "BEGIN" not in json.dumps(body)
    monkeypatch.setattr(credentials, "RENEWED_BEFORE", 7200.0)
    with pytest.raises(Denied):
        caller.key()
    assert len(metadata.asked) == 2


def test_a_machine_that_is_none_of_ocis_is_reported(nobody: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCI_CLI_AUTH", "instance_principal")
    monkeypatch.setenv("OCI_METADATA_BASE_URL", "http://127.0.0.1:9/opc/v2")
    with pytest.raises(Denied, match="instance principals need a machine of OCI"):
        credentials.find()


# --- compartments and regions


def test_compartments_are_reached_by_path_and_by_id(session: OciSession) -> None:
    found = session.realms()
    assert (found[""], found["team"], found["team/network"]) == (TENANCY, TEAM, NETWORK)
    assert found[NETWORK] == NETWORK


def test_a_setting_narrows_them_and_the_first_is_meant(session: OciSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRACTAL_OCI_COMPARTMENTS", f"team/network, {TEAM}")
    assert session.realms() == {"": NETWORK, "team": TEAM, TEAM: TEAM, "team/network": NETWORK, NETWORK: NETWORK}
    monkeypatch.setenv("FRACTAL_OCI_COMPARTMENTS", "team,elsewhere")
    with pytest.raises(Denied, match="elsewhere"):
        session.realms()


def test_many_compartments_come_page_by_page(session: OciSession, tenancy: Sandbox) -> None:
    tenancy.oci.knobs.page_size = 1
    assert session.realms()["team/network"] == NETWORK


@pytest.mark.rule("S0")
def test_one_endpoint_is_one_region(session: OciSession) -> None:
    with pytest.raises(Unreadable, match="leads to 'eu-frankfurt-1' only"):
        session.at(Scope("oci", TEAM, "uk-london-1"))


def test_sovereign_and_private_clouds_have_domains_of_their_own(nobody: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert regions.address("core", "eu-frankfurt-1") == "https://iaas.eu-frankfurt-1.oraclecloud.com"
    assert regions.address("identity", "eu-frankfurt-2") == "https://identity.eu-frankfurt-2.oci.oraclecloud.eu"
    assert regions.address("core", "us-gov-ashburn-1") == "https://iaas.us-gov-ashburn-1.oraclegovcloud.com"
    here = {"regionIdentifier": "me-own-1", "realmDomainComponent": "cloud.own.example"}
    monkeypatch.setenv("OCI_REGION_METADATA", json.dumps(here))
    assert regions.address("objectstorage", "me-own-1") == "https://objectstorage.me-own-1.cloud.own.example"
    monkeypatch.delenv("OCI_REGION_METADATA")
    (nobody / ".oci").mkdir()
    (nobody / ".oci" / "regions-config.json").write_text(json.dumps([here]))
    assert regions.domain("me-own-1") == "cloud.own.example"
    monkeypatch.setenv("OCI_CLI_ENDPOINT", "http://127.0.0.1:1/oci/")
    assert regions.address("core", "me-own-1") == "http://127.0.0.1:1/oci"


def test_the_key_of_another_is_refused_by_the_cloud(tenancy: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    own = rsa.generate_private_key(65537, 2048)
    pem = own.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    monkeypatch.setenv("OCI_CLI_KEY_CONTENT", pem.decode())
    with pytest.raises(Denied, match="NotAuthenticated"):
        OciSession().realms()


# --- identities


class TwoRegions:
    """A session of a tenancy at home in another region, that only notes which doors are asked for."""

    def __init__(self) -> None:
        self.vnics: dict[str, Vnic] = {}
        self.asked: list[tuple[str, str]] = []

    def client(self, service: str, region: str) -> RestClient:
        self.asked.append((service, region))
        return RestClient("http://127.0.0.1:9", OciDialect(credentials.find))

    def namespace(self, region: str) -> str:
        return region

    def tenancy(self) -> str:
        return TENANCY

    def subscribed(self) -> dict[str, Subscription]:
        return {REGION: Subscription("FRA", is_home=False), "us-ashburn-1": Subscription("IAD", is_home=True)}


def test_identities_are_dealt_with_in_the_home_region_and_everything_else_where_it_is(nobody: Path) -> None:
    clients = TwoRegions()
    cloud = Oci(clients, Scope("oci", TEAM, REGION))
    for service in ("identity", "core", "objectstorage"):
        with pytest.raises(Denied):
            cloud.find(service, "/somewhere")
    assert clients.asked == [("identity", "us-ashburn-1"), ("core", REGION), ("objectstorage", REGION)]
    assert cloud.region_key == "FRA"
    with pytest.raises(Invalid, match="not subscribed to 'sa-bogota-1'"):
        _ = Oci(clients, Scope("oci", TEAM, "sa-bogota-1")).region_key


def test_what_speaks_as_s3_has_an_address_of_its_own_in_every_realm(nobody: Path) -> None:
    assert regions.s3_address("ns", REGION) == f"https://ns.compat.objectstorage.{REGION}.oraclecloud.com"
    assert regions.s3_address("ns", "us-gov-phoenix-1").endswith(".us-gov-phoenix-1.oraclegovcloud.com")
