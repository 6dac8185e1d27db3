"""The session at Oracle Cloud: who calls, which compartments are really reached, and the doors to its services.

What is asked of the cloud, and why, does not belong here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any, Final

from fractal_cloud.model.errors import Denied, Unreadable
from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.oci import credentials, regions
from fractal_cloud.offers.oci.calls import CORE, LIMIT, Oci, Subscription, Vnic, next_page
from fractal_cloud.offers.oci.credentials import Caller
from fractal_cloud.offers.oci.errors import OciDialect
from fractal_cloud.offers.offer import Session
from fractal_cloud.offers.rest import RestClient

COMPARTMENTS: Final = "FRACTAL_OCI_COMPARTMENTS"


class OciSession(Session):
    """One tenancy, with the credentials of this process. Safe to share by threads."""

    def __init__(self) -> None:
        try:
            import cryptography
        except ModuleNotFoundError as missing:
            raise ModuleNotFoundError(
                f"{missing.name!r} is not installed: `pip install 'fractal-cloud[oci]'` brings it", name=missing.name
            ) from missing
        del cryptography
        self._lock = threading.RLock()
        self._known_caller: Caller | None = None
        self._clients: dict[str, RestClient] = {}
        self._namespace = ""
        self._subscribed: Mapping[str, Subscription] = {}
        self._dialect = OciDialect(self.caller)
        self.vnics: dict[str, Vnic] = {}

    def caller(self) -> Caller:
        """Who calls; found once, when it is first asked for."""
        with self._lock:
            if self._known_caller is None:
                self._known_caller = credentials.find()
            return self._known_caller

    def client(self, service: str, region: str) -> RestClient:
        """The way to one service in one region."""
        base = regions.address(service, region)
        with self._lock:
            if base not in self._clients:
                self._clients[base] = RestClient(base, self._dialect)
            return self._clients[base]

    def realms(self) -> Mapping[str, str]:
        """The compartments reached, by their ids and by their paths of names; the empty name is the one meant."""
        found = self._compartments()
        wanted = [one.strip() for one in os.environ.get(COMPARTMENTS, "").split(",") if one.strip()]
        unknown = [one for one in wanted if one not in found]
        if unknown:
            raise Denied(
                f"{COMPARTMENTS} names {', '.join(unknown)}, which these credentials do not reach: "
                "allow the agent to inspect them, or correct it"
            )
        if not wanted:
            return {**found, "": self.caller().tenancy}
        served = {found[one] for one in wanted}
        return {**{name: one for name, one in found.items() if one in served}, "": found[wanted[0]]}

    def _compartments(self) -> dict[str, str]:
        """Every compartment that may be seen, by id and by path; the tenancy itself is the root."""
        caller = self.caller()
        query = {
            "compartmentId": caller.tenancy,
            "compartmentIdInSubtree": "true",
            "accessLevel": "ACCESSIBLE",
            "lifecycleState": "ACTIVE",
            "limit": str(LIMIT),
        }
        pages = self.client("identity", caller.region).pages("/20160918/compartments", query, next_page(query))
        items: dict[str, dict[str, Any]] = {one["id"]: one for page in pages for one in page.body() or ()}
        paths = {one: _path(items, one) for one in items}
        return {caller.tenancy: caller.tenancy, **{one: one for one in items}, **{paths[one]: one for one in items}}

    def realm_now(self, scope: Scope) -> str:
        """The compartment, as Oracle itself calls the one that every call of the scope names."""
        compartment = self.client("identity", self.caller().region).read(f"{CORE}/compartments/{scope.realm}").item()
        return str(compartment["id"])

    def at(self, scope: Scope) -> Oci:
        """One compartment in one region."""
        region = self.caller().region
        if regions.override() and scope.place != region:
            raise Unreadable(
                f"{regions.ENDPOINT} leads to {region!r} only, so {scope.place!r} is not reached: "
                "take it away, or declare the region it leads to"
            )
        return Oci(self, scope)

    def namespace(self, region: str) -> str:
        """The name under which Object Storage keeps the tenancy's buckets; it never changes."""
        if not self._namespace:
            name = self.client("objectstorage", region).read("/n").body()
            if not isinstance(name, str) or not name:
                raise Unreadable("Object Storage does not return the namespace of the tenancy")
            self._namespace = name
        return self._namespace

    def tenancy(self) -> str:
        """The OCID of the tenancy."""
        return self.caller().tenancy

    def subscribed(self) -> Mapping[str, Subscription]:
        """The regions the tenancy is subscribed to, by their names; asked once, and again after a failure."""
        if not self._subscribed:
            caller = self.caller()
            path = f"{CORE}/tenancies/{caller.tenancy}/regionSubscriptions"
            listed = self.client("identity", caller.region).read(path).body() or ()
            self._subscribed = {
                str(one["regionName"]): Subscription(str(one["regionKey"]), bool(one.get("isHomeRegion")))
                for one in listed
            }
        return self._subscribed


def _path(items: Mapping[str, Mapping[str, Any]], compartment: str) -> str:
    """The names from below the root down to a compartment; what lies below one that is hidden begins there."""
    names: list[str] = []
    here = compartment
    while here in items and len(names) < len(items):
        names.append(str(items[here]["name"]))
        here = str(items[here].get("compartmentId"))
    return "/".join(reversed(names))
