"""Every route × every method × every kind of token: a table says who gets in, and a route without a row fails.

The columns are kinds of tokens, not only roles: an agent's token for another provider and a revoked token are tried on
every route, too. What a row sends is complete, so that whoever may pass gets 2xx and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from fastapi import FastAPI
from httpx2 import Response
from sqlalchemy import insert, update
from starlette.testclient import TestClient

from fractal_cloud.control.app import create_app
from fractal_cloud.control.limits import ClientLimits
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.control.store import Store, realm_bindings
from fractal_cloud.control.store.realm_bindings import Bound
from fractal_cloud.control.store.schema import approvals, live_systems, plans, types
from fractal_cloud.model.sealing import fingerprint
from fractal_cloud.offers.secret import SealingKey
from tests import library_caches
from tests.api.conftest import TOKEN, Api, vpc
from tests.last_seen import last_seen_json

Json = dict[str, Any]
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

NONE, UNKNOWN, REVOKED = "no token", "a token nobody has", "a revoked token"
READER, OPERATOR, ADMIN = "a reader", "an operator", "an admin"
AGENT, OTHER_AGENT = "an agent of aws", "an agent of gcp"
STRANGERS: Final = frozenset({NONE, UNKNOWN, REVOKED})
AGENTS: Final = frozenset({AGENT, OTHER_AGENT})
KINDS: Final = (NONE, UNKNOWN, REVOKED, READER, OPERATOR, AGENT, OTHER_AGENT, ADMIN)

READS: Final = frozenset({READER, OPERATOR, ADMIN})
WRITES: Final = frozenset({OPERATOR, ADMIN})
ADMINS: Final = frozenset({ADMIN})
OWN_AGENT: Final = frozenset({AGENT})
ANYBODY: Final = frozenset(KINDS)

IDENTITY = "NetworkAndCompute.IaaS.AwsVpc:aws/123456789012/eu-west-1:net"
REACH = {"provider": "aws", "realm": "123456789012"}


@dataclass
class Stage:
    """A control plane with a LiveSystem, an agent of AWS that holds its scope, and a token of every kind."""

    app: FastAPI
    tokens: dict[str, str] = field(default_factory=dict)
    made: int = 0

    def client(self, kind: str) -> TestClient:
        """Somebody who comes with this kind of token."""
        headers = {"Authorization": f"Bearer {self.tokens[kind]}"} if kind != NONE else {}
        return TestClient(self.app, headers=headers, follow_redirects=False)

    @property
    def admin(self) -> TestClient:
        return self.client(ADMIN)

    def next(self, word: str) -> str:
        """A name nobody has."""
        self.made += 1
        return f"{word}-{self.made}"

    def deployed(self) -> str:
        """A LiveSystem of its own for this one request."""
        name = self.next("ls")
        parts = [vpc(parameters={"name": name})]
        assert self.admin.put(f"/livesystems/{name}", json={"id": name, "components": parts}).status_code == 202
        return name

    def introduce(self) -> None:
        """Have the agent of the AWS token register."""
        body = {"agentId": "a1", "environment": "default", "reaches": [REACH], "cycleSeconds": 600}
        assert self.client(AGENT).post("/agent/register", json=body).status_code == 200

    def held(self) -> str:
        """A LiveSystem of its own that waits to be confirmed, and was shown."""
        name = self.deployed()
        store: Store = self.app.state.store
        with store.write() as tx:
            shown = {"fingerprint": "0" * 64, "at": tx.now.isoformat()}
            here = update(live_systems).where(live_systems.c.id == name)
            tx.connection.execute(here.values(in_recovery=True, recovery_plan=shown))
        return name

    def shared(self, other: str) -> str:
        """A LiveSystem of its own whose managed component another one declares too."""
        name = self.observed(stance="managed", status="Active")
        body = {"id": other, "components": [vpc(parameters={"name": name})]}
        assert self.admin.put(f"/livesystems/{other}", json=body).status_code == 202
        return name

    def overridden(self) -> str:
        """A LiveSystem of its own whose component is in override."""
        return self.observed(stance="override", status="ManualOverride", overridden=True)

    def observed(self, **reported: Any) -> str:
        """A LiveSystem of its own whose component an agent reported so."""
        self.introduce()
        name = self.deployed()
        api = Api(self.admin, self.tokens[AGENT])
        api.claim("a1")
        part = api.work[name, "net"]
        lease = api.scopes[part["scope"]]
        change = {
            "uid": part["uid"],
            **reported,
            "owner": name,
            "resourceId": f"vpc-{name}",
            "established": True,
            "observedGeneration": 1,
        }
        scope = {"scope": lease["scope"], "token": lease["token"], "version": lease["work"]["version"]}
        body = {"agentId": "a1", "lastSeen": last_seen_json(api.client), "scopes": [{**scope, "changes": [change]}]}
        answer = api.as_agent("report", body)
        assert answer.status_code == 200, answer.text
        return name

    def plan_task(self) -> str:
        """A task of a plan that was handed to the agent of AWS."""
        store: Store = self.app.state.store
        self.made += 1
        task_id = f"{self.made:x}"
        row = {"id": task_id, "plan_id": f"p{task_id}", "scope_key": "aws/1/x", "provider": "aws", "realm": "1"}
        handed = [one["id"] for one in self.admin.get("/tokens").json()["items"] if one["name"] == AGENT]
        task = {"id": task_id, "work": {"scope": "aws/1/x", "version": 0}, "uids": []}
        with store.write() as tx:
            values = {**row, "task": task, "environments": [], "handed_to": handed, "created_at": tx.now}
            tx.connection.execute(insert(plans).values(**values))
        return task_id


@dataclass(frozen=True)
class Sent:
    """What is sent: the address, and a body if there is one."""

    path: str
    json: Json | None = None


@dataclass(frozen=True)
class Row:
    """One method of one route: who gets 2xx, and what is sent. Everybody else gets 403, strangers 401.

    ``instead``: what somebody gets instead of these, with the reason.
    """

    method: str
    path: str
    lets_in: frozenset[str]
    send: Callable[[Stage, str], Sent] | None = None
    instead: Mapping[str, int] = field(default_factory=dict)

    def sent(self, stage: Stage, kind: str) -> Sent:
        return Sent(filled(self.path)) if self.send is None else self.send(stage, kind)

    def expected(self, kind: str) -> int:
        """The status, with 200 for all of 2xx."""
        if kind in self.instead:
            return self.instead[kind]
        if kind in self.lets_in:
            return 200
        return 401 if kind in STRANGERS else 403


KNOWN: Final = {"id": "ls-a", "componentId": "net"}


def filled(path: str) -> str:
    """The address with the names of what is there."""
    return re.sub(r"{(\w+)}", lambda found: KNOWN[found[1]], path)


def _body(path: str, **more: Any) -> Callable[[Stage, str], Sent]:
    """What an agent sends, about the agent of the AWS token."""
    return lambda stage, kind: Sent(path, {"agentId": "a1", **more})


def _said(path: str, **more: Any) -> Callable[[Stage, str], Sent]:
    """The same, with what the agent has seen last."""
    return lambda stage, kind: _body(path, lastSeen=last_seen_json(stage.admin), **more)(stage, kind)


def _register(stage: Stage, kind: str) -> Sent:
    body = {"agentId": stage.next("agent"), "environment": "default", "reaches": [REACH], "cycleSeconds": 60}
    return Sent("/agent/register", body)


def _answer_plan(stage: Stage, _: str) -> Sent:
    return Sent(f"/agent/plans/{stage.plan_task()}", {"components": []})


def _post(stage: Stage, _: str) -> Sent:
    name = stage.next("ls")
    return Sent("/livesystems", {"id": name, "components": [vpc(parameters={"name": name})]})


def _put(stage: Stage, _: str) -> Sent:
    return Sent("/livesystems/ls-a", {"id": "ls-a", "components": [vpc()]})


def _delete(stage: Stage, _: str) -> Sent:
    return Sent(f"/livesystems/{stage.deployed()}")


def _plan(stage: Stage, _: str) -> Sent:
    return Sent("/livesystems/ls-a/plan?timeout=0")


def _push_all(stage: Stage, _: str) -> Sent:
    return Sent(f"/livesystems/{stage.overridden()}/force-push")


def _push(stage: Stage, _: str) -> Sent:
    return Sent(f"/livesystems/{stage.overridden()}/components/net/force-push")


def _glass(stage: Stage, _: str) -> Sent:
    return Sent(f"/livesystems/{stage.overridden()}/components/net/glass", {"action": "readopt"})


def _transfer(stage: Stage, _: str) -> Sent:
    return Sent(f"/livesystems/{stage.shared('ls-new-owner')}/components/net/transfer", {"to": "ls-new-owner"})


def _mutation(stage: Stage, _: str) -> Sent:
    newest = stage.admin.get("/livesystems/ls-a/mutations").json()["items"][0]["id"]
    return Sent(f"/livesystems/ls-a/mutations/{newest}")


def _resource(stage: Stage, _: str) -> Sent:
    return Sent(f"/resources/{stage.admin.get('/resources').json()['items'][0]['key']}")


def _plan_of_held(stage: Stage, _: str) -> Sent:
    return Sent(f"/recovery/livesystems/{stage.held()}/plan?timeout=0")


def _confirm(stage: Stage, _: str) -> Sent:
    return Sent(f"/recovery/livesystems/{stage.held()}/confirm", {"fingerprint": "0" * 64})


def _confirm_tokens(stage: Stage, _: str) -> Sent:
    return Sent(
        "/recovery/tokens/confirm", {"tokens": [t["id"] for t in stage.admin.get("/recovery").json()["tokens"]]}
    )


def _new_token(stage: Stage, _: str) -> Sent:
    return Sent("/tokens", {"name": stage.next("token"), "role": "reader"})


def _readers_token(stage: Stage) -> str:
    name = stage.next("token")
    assert stage.admin.post("/tokens", json={"name": name, "role": "reader"}).status_code == 201
    return name


def _revoke(stage: Stage, _: str) -> Sent:
    return Sent(f"/tokens/{_readers_token(stage)}")


def _rotate(stage: Stage, _: str) -> Sent:
    return Sent(f"/tokens/{_readers_token(stage)}/rotate")


def _agent_with_key(stage: Stage) -> Json:
    body = {"agentId": stage.next("agent"), "environment": "default", "reaches": [REACH], "cycleSeconds": 60}
    registered = {**body, "publicKey": SealingKey().public}
    assert stage.client(AGENT).post("/agent/register", json=registered).status_code == 200
    return registered


def _withdraw_key(stage: Stage, _: str) -> Sent:
    key = fingerprint(_agent_with_key(stage)["publicKey"])
    return Sent(f"/sealing-keys/{key}/withdraw", {"reason": "lost"})


def _rotate_key(stage: Stage, _: str) -> Sent:
    return Sent(f"/agents/{_agent_with_key(stage)['agentId']}/rotate-key", {"reason": "routine"})


def _approve(stage: Stage, _: str) -> Sent:
    name = stage.next("agent")
    with stage.app.state.store.write() as tx:
        row = {"environment": "e", "provider": "aws", "realm": "1", "token_name": "t", "public_key": name}
        tx.connection.execute(insert(approvals).values(**row, agent_id=name, first_at=tx.now, approved_by=""))
    return Sent("/approvals", {"agent": name})


def _withdraw_approval(stage: Stage, _: str) -> Sent:
    name, environment = stage.next("agent"), stage.next("env")
    assert stage.admin.put(f"/environments/{environment}", json={"approveAgents": True}).status_code == 200
    with stage.app.state.store.write() as tx:
        row = {"environment": environment, "provider": "aws", "realm": "1", "token_name": "t", "public_key": name}
        when = {"first_at": tx.now, "approved_at": tx.now}
        tx.connection.execute(insert(approvals).values(**row, **when, agent_id=name, approved_by="olga"))
    return Sent("/approvals/withdraw", {"agent": name, "reason": "lost"})


def _set_environment(stage: Stage, _: str) -> Sent:
    return Sent(f"/environments/{stage.next('env')}", {"approveAgents": True})


def _give_type(stage: Stage, _: str) -> Sent:
    name = stage.next("Type")
    assert stage.admin.post("/tokens", json={"name": name, "role": "reader"}).status_code == 201
    with stage.app.state.store.write() as tx:
        row: Json = {"type": name, "provider": "x", "facts": _FACTS | {"type": name}, "linked": [], "owner": None}
        tx.connection.execute(insert(types).values(**row))
    return Sent(f"/tokens/{name}/types", {"type": name})


_FACTS: Final = {"provider": "x", "title": "x", "parameterSchema": {"type": "object"}}


def _accept_realm(stage: Stage, _: str) -> Sent:
    name = stage.next("realm")
    store: Store = stage.app.state.store
    with store.write() as tx:
        bound = Bound("default", "aws", name, f"{name}-old", tx.now, f"{name}-new", "a1", tx.now)
        realm_bindings.bind(tx, bound)
    return Sent("/realms/accept", {"provider": "aws", "name": name, "reason": "rebuilt"})


def _subscribe(stage: Stage, _: str) -> Sent:
    return Sent("/notifications", {"name": stage.next("team"), "url": "https://hooks.example.com/x"})


def _subscription(stage: Stage, kind: str) -> Sent:
    wanted = _subscribe(stage, kind)
    assert wanted.json is not None
    assert stage.admin.post(wanted.path, json=wanted.json).status_code == 201
    return Sent(f"/notifications/{wanted.json['name']}")


def _test_subscription(stage: Stage, kind: str) -> Sent:
    return Sent(f"{_subscription(stage, kind).path}/test")


NO_SUCH_TASK: Final = {OTHER_AGENT: 404}  # of what is not its own an agent does not learn whether it is there

API: Final = (
    Row("POST", "/agent/register", OWN_AGENT, _register),
    Row("POST", "/agent/claim", OWN_AGENT, _said("/agent/claim")),
    Row("POST", "/agent/heartbeat", OWN_AGENT, _said("/agent/heartbeat")),
    Row("POST", "/agent/report", OWN_AGENT, _said("/agent/report", scopes=[])),
    Row("POST", "/agent/release", OWN_AGENT, _body("/agent/release", scopes=[])),
    Row("POST", "/agent/plans/{id}", OWN_AGENT, _answer_plan, NO_SUCH_TASK),
    Row("POST", "/agent/wait", OWN_AGENT, _body("/agent/wait", wake=0, seconds=0)),
    Row("GET", "/livesystems", READS),
    Row("POST", "/livesystems", WRITES, _post),
    Row("GET", "/livesystems/{id}", READS),
    Row("PUT", "/livesystems/{id}", WRITES, _put),
    Row("DELETE", "/livesystems/{id}", WRITES, _delete),
    Row("POST", "/livesystems/{id}/plan", WRITES, _plan),
    Row("GET", "/livesystems/{id}/mutations", READS),
    Row("GET", "/livesystems/{id}/mutations/{mutationId}", READS, _mutation),
    Row("GET", "/components", READS),
    Row("GET", "/whoami", READS),
    Row("GET", "/livesystems/{id}/components", READS),
    Row("GET", "/livesystems/{id}/components/{componentId}", READS),
    Row("GET", "/livesystems/{id}/components/{componentId}/journal", READS),
    Row("POST", "/livesystems/{id}/force-push", WRITES, _push_all),
    Row("POST", "/livesystems/{id}/components/{componentId}/force-push", WRITES, _push),
    Row("POST", "/livesystems/{id}/components/{componentId}/glass", WRITES, _glass),
    Row("POST", "/livesystems/{id}/components/{componentId}/transfer", WRITES, _transfer),
    Row("GET", "/livesystems/{id}/components/{componentId}/glass", READS),
    Row("GET", "/events", READS),
    Row("GET", "/livesystems/{id}/events", READS),
    Row("GET", "/resources", READS),
    Row("GET", "/resources/{key}", READS, _resource),
    Row("GET", "/offers", READS),
    Row("GET", "/types", READS),
    Row("GET", "/agents", READS),
    Row("GET", "/approvals", READS),
    Row("POST", "/approvals", WRITES, _approve),
    Row("POST", "/approvals/withdraw", WRITES, _withdraw_approval),
    Row("GET", "/sealing-keys", READS),
    Row("POST", "/sealing-keys/{fingerprint}/withdraw", WRITES, _withdraw_key),
    Row("POST", "/agents/{id}/rotate-key", WRITES, _rotate_key),
    Row("GET", "/environments", READS),
    Row("PUT", "/environments/{name}", WRITES, _set_environment),
    Row("GET", "/scopes", READS),
    Row("GET", "/realms", READS),
    Row("POST", "/realms/accept", WRITES, _accept_realm),
    Row("GET", "/notifications", READS),
    Row("POST", "/notifications", WRITES, _subscribe),
    Row("GET", "/notifications/{name}", READS, _subscription),
    Row("POST", "/notifications/{name}/test", WRITES, _test_subscription),
    Row("DELETE", "/notifications/{name}", WRITES, _subscription),
    Row("GET", "/tokens", ADMINS),
    Row("POST", "/tokens", ADMINS, _new_token),
    Row("POST", "/tokens/{id}/types", ADMINS, _give_type),
    Row("DELETE", "/tokens/{id}", ADMINS, _revoke),
    Row("POST", "/tokens/{id}/rotate", ADMINS, _rotate),
    Row("GET", "/healthz", ANYBODY),
    Row("GET", "/readyz", ANYBODY),
    Row("GET", "/metrics", READS),
    Row("GET", "/openapi.json", READS),
    Row("HEAD", "/openapi.json", READS),
    # Last, and the admin's last of all: a recovery takes all leases and agents' tokens back.
    Row("GET", "/recovery", READS),
    Row("POST", "/recovery/livesystems/{id}/plan", WRITES, _plan_of_held),
    Row("POST", "/recovery/livesystems/{id}/confirm", WRITES, _confirm),
    Row("POST", "/recovery", ADMINS),
    Row("POST", "/recovery/tokens/confirm", ADMINS, _confirm_tokens),
)

# The dashboard knows a token by its cookie: who may not enter is led to the login (303, counted as 401 here).
PAGES: Final = (
    Row("GET", "/ui", READS),
    Row("GET", "/ui/", READS),
    Row("GET", "/ui/login", ANYBODY),
    Row("POST", "/ui/login", READS),
    Row("POST", "/ui/logout", READS),
    Row("GET", "/ui/events", READS),
    Row("GET", "/ui/agents", READS),
    Row("POST", "/ui/agents", WRITES),
    Row("GET", "/ui/scopes", READS),
    Row("GET", "/ui/overrides", READS),
    Row("GET", "/ui/components", READS),
    Row("GET", "/ui/livesystems/{id}", READS),
    Row("GET", "/ui/livesystems/{id}/delete", READS),
    Row("POST", "/ui/livesystems/{id}/delete", WRITES),
    Row("GET", "/ui/livesystems/{id}/confirm", READS),
    Row("POST", "/ui/livesystems/{id}/confirm", WRITES),
    Row("GET", "/ui/livesystems/{id}/force-push", READS),
    Row("POST", "/ui/livesystems/{id}/force-push", WRITES),
    Row("GET", "/ui/livesystems/{id}/components/{componentId}", READS),
    Row("GET", "/ui/livesystems/{id}/components/{componentId}/{action}", READS),
    Row("POST", "/ui/livesystems/{id}/components/{componentId}/{action}", WRITES),
    Row("GET", "/ui/static/{name}", ANYBODY),
    Row("GET", "/ui/{path:path}", READS),
)


def _routes(routes: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every method and path that the app answers, also those that the document does not describe."""
    for route in routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from _routes(inner.routes, prefix + route.include_context.prefix)
        else:
            yield from ((method, prefix + route.path) for method in route.methods)


EVERYWHERE: Final = {"environments": ["*"], "realms": ["*"]}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """The control plane that all rows are tried on; its long polls end at once."""
    path: Path = tmp_path_factory.mktemp("access") / "access.db"
    settings = ControlSettings(
        database_url=library_caches.database(path),
        admin_token=TOKEN,
        cycle_seconds=600.0,
        clients=ClientLimits(failures_per_minute=1_000_000),  # hundreds of refusals follow, each of them as 401
    )
    made = Stage(create_app(settings), {ADMIN: TOKEN, UNKNOWN: "nobody-has-this-token"})
    made.app.state.store.signals.close()
    wanted: dict[str, Json] = {
        READER: {"role": "reader"},
        OPERATOR: {"role": "operator"},
        AGENT: {"role": "agent", "providers": ["aws"], **EVERYWHERE},
        OTHER_AGENT: {"role": "agent", "providers": ["gcp"], **EVERYWHERE},
        REVOKED: {"role": "admin"},
    }
    for kind, body in wanted.items():
        made.tokens[kind] = made.admin.post("/tokens", json={"name": kind, **body}).json()["token"]
    assert made.client(REVOKED).get("/tokens").status_code == 200
    assert made.admin.delete(f"/tokens/{REVOKED}").status_code == 204
    assert made.admin.put("/livesystems/ls-a", json={"id": "ls-a", "components": [vpc()]}).status_code == 202
    made.introduce()
    api = Api(made.admin, made.tokens[AGENT])
    api.claim()
    known = {"identity": IDENTITY, "owner": "ls-a", "resourceId": "vpc-1"}
    assert api.report("ls-a", "net", resources=[known]).status_code == 200
    yield made
    made.app.state.store.close()


def _counted(status: int) -> int:
    return 200 if 200 <= status < 300 else status


@pytest.mark.rule("C1")
def test_every_route_has_its_rows(stage: Stage) -> None:
    rows = [(row.method, row.path) for row in (*API, *PAGES)]
    assert len(rows) == len(set(rows))
    answered = set(_routes(stage.app.routes))
    assert set(rows) == answered, "a route without a row, or a row without its route: say here who may call it"
    described = stage.app.openapi()["paths"]
    documented = {(method.upper(), path) for path, operations in described.items() for method in operations}
    assert documented <= answered, "and the walk misses nothing that the document knows"


@pytest.mark.rule("C1")
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_token_reaches_its_own_routes_and_no_other(stage: Stage, kind: str) -> None:
    client = stage.client(kind)
    wrong = []
    for row in API:
        sent = row.sent(stage, kind)
        answer = client.request(row.method, sent.path, json=sent.json)
        if _counted(answer.status_code) != row.expected(kind):
            wrong.append(f"{row.method} {row.path}: {answer.status_code}, not {row.expected(kind)}: {answer.text}")
    assert not wrong, "\n".join([kind, *wrong])


def _passes(kind: str, method: str, path: str) -> bool:
    """Whether a refusal says at all that a method is not there: only where another one might be theirs."""
    if path in ("/healthz", "/readyz"):
        return True
    if path.startswith("/agent/"):
        return kind in AGENTS | ADMINS
    if path.startswith("/tokens"):
        return kind in ADMINS
    return kind in (READS if method in ("GET", "HEAD") else WRITES)


@pytest.mark.rule("C1")
@pytest.mark.parametrize("kind", KINDS)
def test_methods_that_a_route_does_not_have_are_refused_to_everybody(stage: Stage, kind: str) -> None:
    client = stage.client(kind)
    there: dict[str, set[str]] = {}
    for row in API:
        there.setdefault(row.path, set()).add(row.method)
    wrong = []
    for path, methods in there.items():
        for method in METHODS:
            if method in methods:
                continue
            address = re.sub(r"{\w+}", "x", path)
            found = client.request(method, address).status_code
            expected = 405 if _passes(kind, method, path) else 401 if kind in STRANGERS else 403
            if found != expected:
                wrong.append(f"{method} {path}: {found}, not {expected}")
    assert not wrong, "\n".join([kind, *wrong])


# --- pages


class Visitor:
    """Somebody at the dashboard, logged in as far as the token allows."""

    def __init__(self, stage: Stage, kind: str) -> None:
        self.client = stage.client(kind)  # the bearer token comes along: it must open no page
        self.token = stage.tokens.get(kind, "")
        self.client.post("/ui/login", data={"token": self.token})

    def word(self) -> str:
        found = re.search(r'name="word" value="([^"]+)"', self.client.get("/ui").text)
        return found[1] if found else "none"

    def go(self, stage: Stage, row: Row) -> Response:
        """Open a page, or send its form."""
        path = row.path
        if row.method == "POST" and "{id}" in path:
            path = path.replace("{id}", stage.overridden())
        path = path.replace("{name}", "style.css").replace("{path:path}", "nowhere").replace("{action}", "force-push")
        path = filled(path)
        if row.method == "GET":
            return self.client.get(path)
        fields = {"word": self.word(), "token": self.token, "name": path.split("/")[3] if path.count("/") > 2 else ""}
        return self.client.post(path, data=fields)


def _shown(answer: Response, row: Row) -> int:
    """Led to the login is 401; led anywhere else, a form did its work; a page that is not there was looked for."""
    if answer.status_code == 303:
        is_login = answer.headers["location"].startswith("/ui/login")
        return 401 if is_login and row.path != "/ui/logout" else 200
    return 200 if answer.status_code == 404 and row.path == "/ui/{path:path}" else answer.status_code


@pytest.mark.rule("C1")
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_token_sees_its_own_pages_and_sends_its_own_forms(stage: Stage, kind: str) -> None:
    wrong = []
    for row in PAGES:
        found = _shown(Visitor(stage, kind).go(stage, row), row)
        expected = 200 if kind in row.lets_in else 403 if kind in READS else 401
        if row.path == "/ui/logout" and kind not in READS:
            expected = 200  # who is not logged in is led to the login, too
        if found != expected:
            wrong.append(f"{row.method} {row.path}: {found}, not {expected}")
    assert not wrong, "\n".join([kind, *wrong])


@pytest.mark.rule("C1")
@pytest.mark.parametrize("kind", KINDS)
def test_methods_that_a_page_does_not_have_are_refused_to_everybody(stage: Stage, kind: str) -> None:
    client = Visitor(stage, kind).client
    there = {row.path for row in PAGES}
    forms = {row.path for row in PAGES if row.method == "POST"}
    wrong = []
    for path in sorted(there):
        address = re.sub(r"{[\w:]+}", "x", path)
        for method in METHODS:
            if method == "GET" or (method == "POST" and path in forms):
                continue
            found = client.request(method, address).status_code
            if found != 405:
                wrong.append(f"{method} {path}: {found}, not 405")
    assert not wrong, "\n".join([kind, *wrong])
