"""Where OCI's services answer: by region and realm, as the vendor's own tools find it; or all at one address."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

ENDPOINT: Final = "OCI_CLI_ENDPOINT"
DEFAULT_DOMAIN: Final = "oraclecloud.com"
_HOSTS: Final = {
    "core": "iaas.{region}.{domain}",
    "identity": "identity.{region}.oci.{domain}",
    "objectstorage": "objectstorage.{region}.{domain}",
    "auth": "auth.{region}.{domain}",
}
# Sovereign and dedicated realms by their domains; every other region is one of the commercial realm.
_DOMAINS: Final = {
    "oraclegovcloud.com": "us-langley-1 us-luke-1 us-gov-ashburn-1 us-gov-chicago-1 us-gov-phoenix-1",
    "oraclegovcloud.uk": "uk-gov-london-1 uk-gov-cardiff-1",
    "oraclecloud8.com": "ap-chiyoda-1 ap-ibaraki-1",
    "oraclecloud9.com": "me-dcc-muscat-1 me-ibri-1",
    "oraclecloud10.com": "ap-dcc-canberra-1",
    "oraclecloud14.com": (
        "eu-dcc-milan-1 eu-dcc-milan-2 eu-dcc-dublin-1 eu-dcc-dublin-2 eu-dcc-rating-1 eu-dcc-rating-2"
    ),
    "oraclecloud15.com": "ap-dcc-gazipur-1",
    "oraclecloud.eu": "eu-madrid-2 eu-frankfurt-2",
    "oraclecloud20.com": "eu-jovanovac-1",
    "oraclecloud21.com": "me-dcc-doha-1 me-alrayyan-1",
    "oraclecloud23.com": "us-somerset-1 us-thames-1",
    "oraclecloud24.com": "eu-dcc-zurich-1 eu-crissier-1",
    "oraclecloud26.com": "me-abudhabi-3 me-alain-1",
    "oraclecloud29.com": "me-abudhabi-2 me-abudhabi-4",
    "oraclecloud35.com": "ap-seoul-2 ap-suwon-1 ap-chuncheon-2",
    "oraclecloud42.com": "us-ashburn-2 us-newark-1",
    "oraclecloud51.com": "eu-budapest-1",
    "oraclecloud52.com": "sa-riodejaneiro-1",
}
_BY_REGION: Final = {region: domain for domain, regions in _DOMAINS.items() for region in regions.split()}


def override() -> str:
    """The one address at which all services answer, where the environment names one; else empty."""
    return os.environ.get(ENDPOINT, "").rstrip("/")


def address(service: str, region: str) -> str:
    """Where a service answers in a region."""
    return override() or "https://" + _HOSTS[service].format(region=region, domain=domain(region))


def s3_address(namespace: str, region: str) -> str:
    """Where Object Storage speaks as S3 does, for those who sign with a customer secret key."""
    if override():
        return f"{override()}/compat"
    return f"https://{namespace}.compat.objectstorage.{region}.{domain(region)}"


def domain(region: str) -> str:
    """The second-level domain of a region: from the environment or the user's own list, else the one we know."""
    for region_facts in (_json(os.environ.get("OCI_REGION_METADATA", "")), *_own_list()):
        if isinstance(region_facts, dict) and str(region_facts.get("regionIdentifier", "")).lower() == region:
            return str(region_facts["realmDomainComponent"])
    return _BY_REGION.get(region) or os.environ.get("OCI_DEFAULT_REALM") or DEFAULT_DOMAIN


def _own_list() -> list[Any]:
    path = Path.home() / ".oci" / "regions-config.json"
    found = _json(path.read_text()) if path.is_file() else None
    return found if isinstance(found, list) else []


def _json(text: str) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None
