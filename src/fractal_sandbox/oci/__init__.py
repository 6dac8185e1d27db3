"""Oracle Cloud on this machine: one region of a tenancy, good enough for `oci` and the vendor's SDK."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fractal_sandbox.calls import Actor
from fractal_sandbox.config_files import written
from fractal_sandbox.registry import Mount

if TYPE_CHECKING:
    from fractal_sandbox.oci.cloud import OciCloud

PATH = "/oci"
REGION = "eu-frankfurt-1"
TENANCY = "ocid1.tenancy.oc1..sandbox"
USERS: Mapping[Actor, str] = {"person": "ocid1.user.oc1..sandboxperson", "agent": "ocid1.user.oc1..sandboxagent"}


def _load() -> OciCloud:
    from fractal_sandbox.oci.cloud import OciCloud

    return OciCloud()


def key_id(actor: Actor) -> str:
    """What a request says of the key it is signed with."""
    from fractal_sandbox.oci.keys import fingerprint

    return f"{TENANCY}/{USERS[actor]}/{fingerprint(actor)}"


def environment(url: str, actor: Actor, folder: Path | None) -> Mapping[str, str]:
    """What points `oci`, the vendor's SDK and our agent here: a key and a config file, and without a folder neither."""
    found = {"OCI_CLI_ENDPOINT": f"{url}{PATH}"}
    if folder is None:
        return found
    from fractal_sandbox.oci.keys import fingerprint, private_pem

    key = written(folder, f"oci-{actor}.pem", private_pem(actor))
    lines = {
        "user": USERS[actor],
        "fingerprint": fingerprint(actor),
        "key_file": str(key),
        "tenancy": TENANCY,
        "region": REGION,
    }
    text = "\n".join(["[DEFAULT]", *(f"{name}={value}" for name, value in lines.items())]) + "\n"
    config = written(folder, f"oci-{actor}.config", text)
    return {
        **found,
        "OCI_CLI_CONFIG_FILE": str(config),
        "OCI_CONFIG_FILE": str(config),
        "OCI_CLI_RC_FILE": os.devnull,
        "SUPPRESS_LABEL_WARNING": "True",
    }


MOUNTS = (Mount("oci", "oci", "Oracle Cloud (OCI)", PATH, _load, environment, clears=("OCI_",)),)
