"""How a file of realms names projects of Hetzner Cloud, each of which has a token of its own."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from fractal_cloud.model.errors import Denied
from fractal_cloud.offers.hetzner.credentials import DEFAULT_ENDPOINT, Credentials
from fractal_cloud.offers.listed_realms import ListedRealm


class HetznerRealm(ListedRealm):
    """``project``: what distinguishes it from every other, because Hetzner has no call that says it."""

    project: str = Field(pattern=r"^[A-Za-z0-9._-]{1,100}$")
    token_file: Path
    endpoint: str = DEFAULT_ENDPOINT

    @property
    def wanted(self) -> str:
        """A token opens one project."""
        return ""

    @property
    def label(self) -> str:
        """What messages call it."""
        return self.name or self.project

    def credentials(self) -> Credentials:
        """What opens it, as the file has it now."""
        try:
            token = self.token_file.read_text("utf-8").strip()
        except (OSError, ValueError) as error:
            raise Denied(f"the token of project {self.project!r} cannot be read: {error}") from error
        if not token:
            raise Denied(f"the token of project {self.project!r} is empty: {str(self.token_file)!r}")
        return Credentials(token, self.endpoint.rstrip("/"), self.project)
