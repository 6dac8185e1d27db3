"""One project of Hetzner Cloud: its kinds, its callers, its words of refusal, and everything it answers."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import uuid4

from fractal_sandbox.calls import Actor
from fractal_sandbox.hetzner import AGENT_TOKEN, PERSON_TOKEN, READ_ONLY_TOKEN, servers, volumes
from fractal_sandbox.hetzner.catalog import CATALOG
from fractal_sandbox.hetzner.collection import ACTION, Collection, Numbers, page
from fractal_sandbox.hetzner.firewalls import Firewalls
from fractal_sandbox.hetzner.load_balancers import LoadBalancers
from fractal_sandbox.hetzner.networks import Networks
from fractal_sandbox.hetzner.servers import Servers
from fractal_sandbox.hetzner.ssh_keys import SshKeys
from fractal_sandbox.hetzner.volumes import Volumes
from fractal_sandbox.rest import Body, Draft, Kind, Place, Refused, Reply, Request, RestCloud, Route

__all__ = ["HetznerCloud"]

CALLERS: dict[str, Actor] = {PERSON_TOKEN: "person", AGENT_TOKEN: "agent", READ_ONLY_TOKEN: "agent"}
LIMIT = 3600


def _place(body: Body) -> Place:
    return Place(body["name"], "")


def _labels(body: Body) -> dict[str, str]:
    return dict(body["labels"])


def _kind(name: str, **more: Any) -> Kind:
    labelled = frozenset({"labels"})
    return Kind(name, _place, _labels, tag_fields=labelled, replaces_tags=True, **more)


class HetznerCloud(RestCloud):
    """A project with its servers, networks, firewalls, load balancers and volumes."""

    name = "hetzner"
    kinds: ClassVar[tuple[Kind, ...]] = (
        _kind("server", in_phase=servers.in_phase),
        _kind("network"),
        _kind("firewall"),
        _kind("load_balancer"),
        _kind("volume", in_phase=volumes.in_phase),
        _kind("ssh_key", offered=False),
        Kind(ACTION, lambda body: Place(str(body["id"]), ""), unmonitored="the record that Hetzner keeps of a call"),
    )

    def routes(self) -> list[Route]:
        numbers = Numbers()
        self.collections: dict[str, Collection] = {
            one.kind: one(self.knobs, numbers)
            for one in (Servers, Networks, Firewalls, LoadBalancers, Volumes, SshKeys)
        }
        return [
            *(route for collection in self.collections.values() for route in collection.routes()),
            *(route for plural in CATALOG for route in self._catalog_routes(plural)),
            Route("GET", "/v1/actions", "actions", "list", self._actions),
            Route("GET", "/v1/actions/{id}", "actions", "get", self._action, "id"),
        ]

    def actor_of(self, request: Request) -> Actor:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in CALLERS:
            raise Refused(401, "unauthorized", "unable to authenticate")
        if token == READ_ONLY_TOKEN and request.method not in ("GET", "HEAD"):
            raise Refused(403, "token_readonly", "token is only allowed to perform GET requests")
        return CALLERS[token]

    def refusal(self, refused: Refused) -> Reply:
        error = {"code": refused.code, "message": refused.message, "details": refused.details or None}
        return Reply(refused.status, {"error": error})

    def throttled(self) -> Refused:
        limits = (("RateLimit-Limit", str(LIMIT)), ("RateLimit-Remaining", "0"), ("RateLimit-Reset", "0"))
        return Refused(429, "rate_limit_exceeded", f"limit of {LIMIT} requests per hour reached", headers=limits)

    def unknown(self, request: Request) -> Refused:
        found = super().unknown(request)
        return Refused(found.status, "not_found", found.message)

    def page_of(self, request: Request) -> int:
        text = request.query.get("page", "1")
        return int(text) if text.isdigit() else 1

    def headers(self) -> tuple[tuple[str, str], ...]:
        limits = (("RateLimit-Limit", str(LIMIT)), ("RateLimit-Remaining", str(LIMIT)), ("RateLimit-Reset", "0"))
        return (("X-Correlation-Id", uuid4().hex[:16]), *limits)

    # What is there for everybody

    def _catalog_routes(self, plural: str) -> list[Route]:
        def found(request: Request, draft: Draft) -> Reply:
            del draft
            name = request.query.get("name")
            chosen, meta = page([one for one in CATALOG[plural] if name in (None, one["name"])], request, self.knobs)
            return Reply(200, {plural: chosen, "meta": meta})

        def one(request: Request, draft: Draft) -> Reply:
            del draft
            for entry in CATALOG[plural]:
                if str(entry["id"]) == request.words["id"]:
                    return Reply(200, {plural.removesuffix("s"): entry})
            raise Refused(404, "not_found", f"{plural} {request.words['id']} not found")

        return [
            Route("GET", f"/v1/{plural}", plural, "list", found),
            Route("GET", f"/v1/{plural}/{{id}}", plural, "get", one, "id"),
        ]

    # What becomes of calls

    def _actions(self, request: Request, draft: Draft) -> Reply:
        wanted = set(request.all("id"))
        if not wanted:
            raise Refused(410, "deprecated_api_endpoint", "actions are listed by their ids")
        found = [self._shown(draft, body) for one, body in draft.all(ACTION) if one in wanted]
        chosen, meta = page(found, request, self.knobs)
        return Reply(200, {"actions": chosen, "meta": meta})

    def _action(self, request: Request, draft: Draft) -> Reply:
        body = draft.find(ACTION, request.words["id"])
        if body is None:
            raise Refused(404, "not_found", f"action {request.words['id']} not found")
        return Reply(200, {"action": self._shown(draft, body)})

    def _shown(self, draft: Draft, body: Body) -> Body:
        at_work = any(draft.phase(one["type"], str(one["id"])) for one in body["resources"])
        return {**body, "status": "running", "progress": 50, "finished": None} if at_work else body
