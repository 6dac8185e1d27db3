"""Aruba Cloud: a token endpoint, two projects, and the providers in them."""

from __future__ import annotations

from typing import ClassVar, Final
from urllib.parse import parse_qs
from uuid import uuid4

from fractal_sandbox.aruba import CLIENTS, SECRETS, TOKEN_PATH, clusters, common, networks, servers, storage
from fractal_sandbox.aruba.collection import PROJECT, existing
from fractal_sandbox.calls import Actor
from fractal_sandbox.rest import Body, Draft, Kind, Refused, Reply, Request, RestCloud, Route

__all__ = ["PROJECTS", "ArubaCloud"]

# What there is from the start, by name: ids are plain, so that examples can name them.
PROJECTS: Final = {"team": "66f0aaaaaaaaaaaaaaaaaa01", "strict": common.STRICT}
_ACTORS: Final[tuple[Actor, ...]] = ("person", "agent")
_TOKENS: Final[dict[str, Actor]] = {f"sandbox-token-of-the-{actor}": actor for actor in _ACTORS}
_TOKEN_SECONDS: Final = 3600
_COLLECTIONS: Final = (
    *networks.COLLECTIONS,
    *storage.COLLECTIONS,
    *clusters.COLLECTIONS,
    *servers.COLLECTIONS,
)


class ArubaCloud(RestCloud):
    """Two projects: in the second one, tags follow the vendor's newer rule."""

    name: ClassVar[str] = "aruba"
    kinds: ClassVar[tuple[Kind, ...]] = (PROJECT, *(one.kind for one in _COLLECTIONS))

    def routes(self) -> list[Route]:
        found = [
            Route("POST", TOKEN_PATH, "auth", "issueToken", _issue, read="a token, which is no resource"),
            Route("GET", "/projects", "project", "listProjects", self._projects),
            Route("GET", "/projects/{project}", "project", "getProject", _one_project),
        ]
        found.append(Route("GET", clusters.DOWNLOAD, "container", "downloadKubeconfig", clusters.download, "id"))
        for collection in _COLLECTIONS:
            found += collection.routes(self.knobs)
        return found

    def actor_of(self, request: Request) -> Actor:
        if request.path == TOKEN_PATH:
            return _client_of(request)
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if token not in _TOKENS:
            raise Refused(401, "Unauthorized", "The token is missing, wrong or expired.")
        return _TOKENS[token]

    def refusal(self, refused: Refused) -> Reply:
        if refused.code == "invalid_client":
            return Reply(refused.status, {"error": refused.code, "error_description": refused.message})
        problem = {
            "type": f"https://httpstatuses.com/{refused.status}",
            "title": refused.message,
            "status": refused.status,
            "traceId": f"00-{uuid4().hex}-{uuid4().hex[:16]}-00",
            "errors": [{"field": field, "message": message} for field, message in refused.details.get("errors", ())],
        }
        return Reply(refused.status, problem, (("Content-Type", "application/problem+json"),))

    def begin(self, draft: Draft) -> None:
        for name, project in PROJECTS.items():
            draft.put(PROJECT.name, project, {"id": project, "name": name, "scope": "", "default": name == "team"})
            for path, kind in servers.PRESENT_FROM_THE_START.values():
                draft.put(kind.name, *_given(project, path, kind))

    def page_of(self, request: Request) -> int:
        return common.page_number(request, self.knobs)

    def _projects(self, request: Request, draft: Draft) -> Reply:
        found = [body for _, body in draft.everything(PROJECT.name)]
        return common.page(request, self.knobs, found, _project, lambda _: None)


def _given(project: str, path: str, kind: Kind) -> tuple[str, Body]:
    """A key pair or an elastic address that stands from the start, under an id that examples can name."""
    given = f"{kind.name}-of-{project[-2:]}"
    uri = f"/projects/{project}/providers/{path}/{given}"
    body = {"id": given, "uri": uri, "name": "given", "scope": project, "location": common.LOCATION, "project": project}
    return given, {**body, "tags": [], "state": "Active", "properties": {}}


def _project(body: Body) -> Body:
    metadata = {"id": body["id"], "name": body["name"], "tags": []}
    return {"metadata": metadata, "properties": {"default": body["default"]}}


def _one_project(request: Request, draft: Draft) -> Reply:
    return Reply(200, _project(existing(draft, PROJECT.name, request.words["project"])))


def _client_of(request: Request) -> Actor:
    form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
    for actor in _ACTORS:
        if form.get("client_id") == CLIENTS[actor] and form.get("client_secret") == SECRETS[actor]:
            return actor
    raise Refused(401, "invalid_client", "Invalid client or Invalid client credentials")


def _issue(request: Request, draft: Draft) -> Reply:
    del draft
    token = next(token for token, actor in _TOKENS.items() if actor == request.actor)
    return Reply(200, {"access_token": token, "token_type": "Bearer", "expires_in": _TOKEN_SECONDS})
