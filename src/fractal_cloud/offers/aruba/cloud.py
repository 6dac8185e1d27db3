"""The session at Aruba Cloud: who calls, and which projects are really reached.

What is asked of the cloud, and why, does not belong here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Final

from fractal_cloud.model.errors import Denied
from fractal_cloud.model.identity import Scope
from fractal_cloud.offers import aruba_login as credentials
from fractal_cloud.offers.aruba.calls import VERSION, Aruba, pages
from fractal_cloud.offers.aruba.errors import ArubaDialect
from fractal_cloud.offers.aruba.tags import style
from fractal_cloud.offers.aruba_login import Tokens
from fractal_cloud.offers.offer import Session
from fractal_cloud.offers.rest import RestClient

PROJECTS: Final = "FRACTAL_ARUBA_PROJECTS"


class ArubaSession(Session):
    """All projects that one API key reaches. Safe to share by threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known_client: RestClient | None = None
        self._owners: dict[str, str] = {}

    def client(self) -> RestClient:
        """The way to the API; opened when it is first needed."""
        with self._lock:
            if self._known_client is None:
                style()  # a style that is misspelled must not wait for the first write
                caller = credentials.find()
                tokens = Tokens(caller)
                self._known_client = RestClient(caller.base, ArubaDialect(tokens.token, tokens.forget))
            return self._known_client

    def realms(self) -> Mapping[str, str]:
        """The projects reached, by their ids and by their names; the empty name is the one meant where none is named.

        Names that two projects share mean neither.
        """
        items = list(pages(self.client(), "/projects"))
        ids = {str(one["metadata"]["id"]): str(one["metadata"]["name"]) for one in items}
        names = list(ids.values())
        found = {**{name: one for one, name in ids.items() if names.count(name) == 1}, **{one: one for one in ids}}
        wanted = [one.strip() for one in os.environ.get(PROJECTS, "").split(",") if one.strip()]
        unknown = [one for one in wanted if one not in found]
        if unknown or not ids:
            which = f"{PROJECTS} names {', '.join(unknown)}, which" if unknown else "no project, so there is none that"
            raise Denied(f"{which} these credentials do not reach: allow it to the API key, or correct it")
        if wanted:
            served = {found[one] for one in wanted}
            return {**{name: one for name, one in found.items() if one in served}, "": found[wanted[0]]}
        usual = [str(one["metadata"]["id"]) for one in items if (one.get("properties") or {}).get("default")]
        meant = usual if len(usual) == 1 else list(ids)
        return {**found, "": meant[0]} if len(meant) == 1 else found

    def realm_now(self, scope: Scope) -> str:
        """The project, as Aruba itself calls the one that every path of the scope names."""
        project = self.client().read(f"/projects/{scope.realm}", {"api-version": VERSION}).item()
        return str(project["metadata"]["id"])

    def at(self, scope: Scope) -> Aruba:
        """One project in one location."""
        return Aruba(self.client(), scope, self._owners)
