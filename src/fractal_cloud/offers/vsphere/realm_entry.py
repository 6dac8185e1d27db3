"""How a file of realms names vCenters, each of which has an address and a login of its own."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field

from fractal_cloud.model.errors import Denied
from fractal_cloud.offers.listed_realms import ListedRealm
from fractal_cloud.offers.vsphere.credentials import Credentials, of_address


class VsphereRealm(ListedRealm):
    """A vCenter. ``authorities``: a file of certificates, in place of those that the machine trusts."""

    url: str = Field(min_length=1, max_length=2_000)
    user: str = Field(min_length=1)
    password_file: Path
    authorities: str = ""
    insecure: bool = False

    @property
    def wanted(self) -> str:
        """An address leads to one vCenter."""
        return ""

    @property
    def label(self) -> str:
        """What messages call it."""
        return self.name or urlsplit(self.url if "://" in self.url else f"//{self.url}").hostname or "vCenter"

    def credentials(self) -> Credentials:
        """What opens it, as the file has it now."""
        try:
            password = self.password_file.read_text("utf-8").removesuffix("\n")
        except (OSError, ValueError) as error:
            raise Denied(f"the password of the vCenter at {self.label!r} cannot be read: {error}") from error
        return of_address(self.url, self.user, password, is_insecure=self.insecure, authorities=self.authorities)
