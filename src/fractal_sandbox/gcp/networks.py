"""Networks, subnets and firewall rules of Compute Engine: they carry no labels, so nobody can own them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from ipaddress import IPv4Network

from fractal_sandbox.gcp.common import Service, fingerprint, good, new_number, not_found, now, taken
from fractal_sandbox.gcp.compute_operations import begun, target_path
from fractal_sandbox.rest import Body, Draft, Kind, Place, Refused, Reply, Request, Route

__all__ = ["FIREWALL", "NETWORK", "REGIONS", "SUBNETWORK", "Networks"]

REGIONS = ("europe-west1", "europe-west3", "us-central1")
NETWORK = Kind("network", lambda body: Place(body["name"], body["project"]), is_made_once=True)
SUBNETWORK = Kind(
    "subnetwork", lambda body: Place(body["name"], f"{body['project']}/{body['place']}"), is_made_once=True
)
FIREWALL = Kind("firewall", lambda body: Place(body["name"], body["project"]), is_made_once=True)
# What Google calls each kind, and where it lies.
_PLURALS = {"network": "networks", "subnetwork": "subnetworks", "firewall": "firewalls"}


class Networks(Service):
    """What people lay out before machines come."""

    def routes(self) -> list[Route]:
        found: list[Route] = []
        for kind, plural in _PLURALS.items():
            where = "regions/{place}" if kind == "subnetwork" else "global"
            base = f"/compute/v1/projects/{{project}}/{where}/{plural}"
            found += [
                Route("GET", base, "compute", f"list{kind.title()}s", partial(self._list, kind)),
                Route("GET", f"{base}/{{name}}", "compute", f"get{kind.title()}", partial(self._get, kind), "name"),
                Route("POST", base, "compute", f"insert{kind.title()}", partial(self._insert, kind), kind=kind),
                Route(
                    "PATCH",
                    f"{base}/{{name}}",
                    "compute",
                    f"patch{kind.title()}",
                    partial(self._patch, kind),
                    "name",
                    kind=kind,
                ),
                Route(
                    "DELETE",
                    f"{base}/{{name}}",
                    "compute",
                    f"delete{kind.title()}",
                    partial(self._delete, kind),
                    "name",
                    kind=kind,
                ),
            ]
        return found

    @staticmethod
    def make_defaults(draft: Draft, projects: Iterable[str]) -> None:
        """Make the network `default`, as every new project has it, and one that somebody laid out: `inner`."""
        for project in projects:
            for second, (name, is_auto) in enumerate({"default": True, "inner": False}.items()):
                network = _made("network", {"name": name, "autoCreateSubnetworks": is_auto}, project, "")
                draft.put("network", _id(project, "", name), network)
                for third, region in enumerate(REGIONS):
                    block = f"10.{128 + second}.{16 * third}.0/20"
                    body = {"name": name, "network": _path(project, "", "network", name), "ipCidrRange": block}
                    draft.put("subnetwork", _id(project, region, name), _made("subnetwork", body, project, region))

    def _list(self, kind: str, request: Request, draft: Draft) -> Reply:
        here = (request.words["project"], request.words.get("place", ""))
        found, more = self.page(request, draft, kind, lambda body: (body["project"], body["place"]) == here, 500)
        items = [shown(request, body, kind) for _, body in found]
        return good({"kind": f"compute#{kind}List", "items": items, **more})

    def _get(self, kind: str, request: Request, draft: Draft) -> Reply:
        body = draft.find(kind, _asked(request))
        if body is None:
            raise not_found(target_path(request))
        return good(shown(request, body, kind))

    def _insert(self, kind: str, request: Request, draft: Draft) -> Reply:
        body = self.body_of(request)
        project, place = request.words["project"], request.words.get("place", "")
        resource_id = _id(project, place, body["name"])
        if kind == "subnetwork" and not body.get("ipCidrRange"):
            raise Refused(400, "required", "Required field 'resource.ipCidrRange' not specified")
        if draft.peek(kind, resource_id) is not None:
            raise taken(resource_id)
        draft.put(kind, resource_id, _made(kind, body, project, place))
        return begun(request, draft, "insert", (kind, resource_id), f"{target_path(request)}/{body['name']}")

    def _patch(self, kind: str, request: Request, draft: Draft) -> Reply:
        resource_id = _asked(request)
        draft.put(kind, resource_id, {**self._there(kind, request, draft), **self.body_of(request)})
        return begun(request, draft, "patch", (kind, resource_id), target_path(request))

    def _delete(self, kind: str, request: Request, draft: Draft) -> Reply:
        resource_id = _asked(request)
        self._there(kind, request, draft)
        if kind == "network":
            mine = _path(request.words["project"], "", "network", request.words["name"])
            users = [one for one, body in draft.everything("subnetwork") if body["network"] == mine]
            if users:
                raise Refused(400, "resourceInUseByAnotherResource", f"{mine} is used by {', '.join(users)}")
        draft.remove(kind, resource_id)
        return begun(request, draft, "delete", (kind, resource_id), target_path(request))

    def _there(self, kind: str, request: Request, draft: Draft) -> Body:
        body = draft.peek(kind, _asked(request))
        if body is None:
            raise not_found(target_path(request))
        return body


def subnetwork_of(draft: Draft, path: str) -> Body | None:
    """Return a subnet by `projects/…`, or by `regions/…` where the project is given separately."""
    words = path.split("/")
    return draft.peek("subnetwork", _id(words[1], words[3], words[5])) if len(words) == 6 else None


def shown(request: Request, body: Body, kind: str) -> Body:
    """Return a resource as Google shows it."""
    path = _path(body["project"], body["place"], kind, body["name"])
    link = f"{request.base}/compute/v1/{path}"
    fields = {key: value for key, value in body.items() if key not in ("project", "place")}
    region = {"region": f"{request.base}/compute/v1/projects/{body['project']}/regions/{body['place']}"}
    if "network" in fields:
        fields["network"] = f"{request.base}/compute/v1/{fields['network']}"
    return {"kind": f"compute#{kind}", **fields, "selfLink": link, **(region if body["place"] else {})}


def _made(kind: str, body: Body, project: str, place: str) -> Body:
    body = {"id": new_number(), "creationTimestamp": now(), **body, "project": project, "place": place}
    if kind == "network":
        return {"autoCreateSubnetworks": False, "mtu": 1460, "routingConfig": {"routingMode": "REGIONAL"}, **body}
    body["network"] = body["network"][body["network"].index("projects/") :]
    if kind == "subnetwork":
        gateway = str(IPv4Network(body["ipCidrRange"])[1])
        return {"privateIpGoogleAccess": False, "gatewayAddress": gateway, "fingerprint": fingerprint(body), **body}
    return {"direction": "INGRESS", "priority": 1000, "disabled": False, **body}


def _path(project: str, place: str, kind: str, name: str) -> str:
    where = f"regions/{place}" if place else "global"
    return f"projects/{project}/{where}/{_PLURALS[kind]}/{name}"


def _id(project: str, place: str, name: str) -> str:
    return f"{project}/{place}/{name}" if place else f"{project}/{name}"


def _asked(request: Request) -> str:
    return _id(request.words["project"], request.words.get("place", ""), request.words["name"])
