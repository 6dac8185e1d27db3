"""An agent serves what its token is bound to, and nothing else (A1): stolen tokens and agents that lie get no lease.

The victim is account 111111111111 in the environment prod, or the cluster «uid-a» that prod reaches as «ctx-a».
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update
from starlette.testclient import TestClient

from fractal_cloud.control.app import create_app
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.control.store import Store, plans
from fractal_cloud.control.store.schema import tokens
from fractal_cloud.control.store.unserved_components import report_unserved
from fractal_cloud.testing.tokens import bearer
from tests.api.conftest import TOKEN, VPC, subnet, vpc
from tests.last_seen import last_seen_json
from tests.security.agents import EKS, Json, SomeAgent, Stage, aws, cluster, refused, workload

VICTIM = "111111111111"
OWN = "222222222222"
SCOPE = f"aws/{VICTIM}/eu-west-1"

pytestmark = pytest.mark.rule("A1")


@pytest.fixture
def honest(stage: Stage) -> SomeAgent:
    """The agent of the victim, which holds the scope of its VPC."""
    stage.deploy("ls-a", vpc())
    agent = stage.agent("honest", providers=["aws"], environments=["prod"], realms=[VICTIM]).enters(aws(VICTIM))
    assert agent.claim() == [SCOPE]
    return agent


def still_holds(agent: SomeAgent) -> None:
    """That nobody took anything from the honest agent: it lives, holds its lease, and reports."""
    assert agent.beat().json()["lost"] == []
    assert agent.claim() == [SCOPE]
    assert agent.report("ls-a/net").status_code == 200


# --- stolen tokens


@pytest.mark.parametrize(
    ("bound", "flag"),
    [
        ((["aws"], ["prod"], [OWN]), f"--realm {VICTIM}"),
        ((["gcp"], ["prod"], ["*"]), "--provider aws"),
        ((["aws"], ["stage", "test-*"], ["*"]), "--environment prod"),
    ],
    ids=["of another realm", "of another provider", "of another environment"],
)
def test_a_stolen_token_registers_nothing_beyond_itself(
    stage: Stage, honest: SomeAgent, bound: tuple[Sequence[str], ...], flag: str
) -> None:
    providers, environments, realms = bound
    thief = stage.agent("stolen", providers=providers, environments=environments, realms=realms)
    refused(thief.register(aws(VICTIM)), "'stolen'", f"fractal token create --role agent … {flag}")
    assert stage.agents == {"agent-honest"}
    (event,) = stage.events("RegistrationRefused")
    assert (event["by"], event["liveSystemId"]) == ("stolen", "")
    assert flag in event["message"]
    assert thief.beat().status_code == 404
    still_holds(honest)


def test_one_reach_beyond_the_token_refuses_the_whole_registration(stage: Stage, honest: SomeAgent) -> None:
    thief = stage.agent("stolen", providers=["aws"], environments=["prod"], realms=[OWN])
    refused(thief.register(aws(OWN, OWN), aws(VICTIM, VICTIM)), f"--realm {VICTIM}")
    assert stage.agents == {"agent-honest"}
    assert set(stage.realms) == {"prod/aws/"}


def test_a_type_of_another_provider_refuses_it_too(stage: Stage) -> None:
    thief = stage.agent("stolen", providers=["aws"], environments=["prod"], realms=[OWN])
    facts = {"type": "Storage.PaaS.GcpNew", "provider": "gcp", "title": "New", "parameterSchema": {"type": "object"}}
    refused(thief.register(aws(OWN), types=[facts]), "--provider gcp")


def test_a_token_of_the_same_account_and_another_environment_gets_no_scope_of_this_one(
    stage: Stage, honest: SomeAgent
) -> None:
    other = stage.agent("other", at="stage", providers=["aws"], environments=["stage"], realms=[VICTIM])
    other.enters(aws(VICTIM))
    honest.post("release")
    assert other.claim() == [], "the scope is free, and it reaches the account"
    stage.deploy("ls-s", vpc(parameters={"region": "us-east-1"}), environment="stage")
    assert other.claim() == [f"aws/{VICTIM}/us-east-1"], "of a scope of its own environment nobody keeps it"
    honest.enters(aws(VICTIM))
    still_holds(honest)


def test_what_an_agent_says_of_another_is_refused_with_its_own_token(stage: Stage, honest: SomeAgent) -> None:
    thief = stage.agent("stolen", providers=["aws"], environments=["prod"], realms=[OWN]).enters(aws(OWN, OWN))
    thief.id, thief.leases, thief.work = honest.id, honest.leases, honest.work
    refused(thief.register(aws(OWN, OWN)), "another token")
    assert thief.report("ls-a/net", status="Failed").status_code == 403
    assert thief.beat().status_code == 403
    assert thief.post("release").status_code == 403
    assert thief.post("wait", wake=0).status_code == 403
    still_holds(honest)


# --- names and ids that an agent invents


def test_a_name_that_the_token_covers_does_not_lead_to_an_account_of_others(stage: Stage, honest: SomeAgent) -> None:
    thief = stage.agent("stolen", providers=["aws"], environments=["prod"], realms=[OWN])
    refused(thief.register(aws(VICTIM, OWN)), f"--realm {VICTIM}")
    still_holds(honest)


def test_who_claimed_a_realm_by_a_name_of_its_own_before_its_owner_came_loses_it_then(stage: Stage) -> None:
    stage.deploy("ls-a", vpc())
    thief = stage.agent("stolen", providers=["aws"], environments=["prod"], realms=[OWN]).enters(aws(VICTIM, OWN))
    assert thief.claim() == [], "nothing is declared there by that name"
    honest = stage.agent("honest", providers=["aws"], environments=["prod"], realms=[VICTIM]).enters(aws(VICTIM))
    assert thief.claim() == []
    assert honest.claim() == [SCOPE]
    honest.post("release")
    assert thief.claim() == [], "and not while nobody holds it"


@pytest.fixture
def in_cluster(stage: Stage) -> SomeAgent:
    """The agent of a cluster whose id nobody knew beforehand, by the name of its context."""
    stage.deploy("ls-k", workload(cluster="ctx-a"))
    agent = stage.agent("by-name", providers=["kubernetes"], environments=["prod"], realms=["ctx-a"])
    agent.enters(cluster("uid-a", "ctx-a"), cluster("uid-a"))
    assert agent.claim() == ["kubernetes/uid-a/default"]
    return agent


def test_a_cluster_is_fixed_to_its_id_at_the_first_contact_by_its_name_with_an_event(
    stage: Stage, in_cluster: SomeAgent
) -> None:
    assert stage.realms == {"prod/kubernetes/": "uid-a", "prod/kubernetes/ctx-a": "uid-a"}
    (event,) = stage.events("RealmReached")
    assert "'ctx-a' is 'uid-a'" in event["message"]
    assert "token 'by-name'" in event["message"]
    again = SomeAgent(stage.client, in_cluster.token, "agent-again").enters(cluster("uid-a", "ctx-a"))
    in_cluster.post("release")
    assert again.claim() == ["kubernetes/uid-a/default"], "and every agent of that token serves it"
    assert len(stage.events("RealmReached")) == 1


def test_another_cluster_under_a_name_that_is_fixed_is_not_served_until_it_is_accepted(
    stage: Stage, in_cluster: SomeAgent
) -> None:
    stage.deploy("ls-z", workload("other", cluster="ctx-z"))
    thief = SomeAgent(stage.client, in_cluster.token, "agent-thief")
    answer = thief.register(cluster("uid-new", "ctx-a"))
    assert [other["realm"] for other in answer.json()["others"]] == ["uid-new"]
    assert thief.claim() == []
    assert [event["after"] for event in stage.events("RealmChanged")] == ["uid-new", "uid-new"]
    accepted = {"provider": "kubernetes", "environment": "prod", "name": "ctx-a", "reason": "rebuilt"}
    assert stage.client.post("/realms/accept", json=accepted).status_code == 200
    seen = last_seen_json(stage.client)
    assert thief.post("claim", lastSeen=seen).json()["registerAgain"]
    assert thief.enters(cluster("uid-new", "ctx-a")).claim() == ["kubernetes/uid-new/default"]
    assert in_cluster.claim() == [], "and whoever reaches the old one serves nothing by that name"


def test_a_cluster_of_others_is_not_reached_by_a_name_of_ones_own(stage: Stage, in_cluster: SomeAgent) -> None:
    thief = stage.agent("stolen", providers=["kubernetes"], environments=["prod"], realms=["ctx-b"])
    refused(thief.register(cluster("uid-a", "ctx-b")), "--realm uid-a")
    thief.enters(cluster("uid-b", "ctx-b"))
    refused(thief.register(cluster("uid-a", "ctx-b")), "--realm uid-a")
    assert in_cluster.beat().json()["lost"] == []


@pytest.mark.parametrize("name", ["ctx-a", "ctx-x"], ids=["of another token", "of nobody"])
def test_a_token_bound_by_a_name_binds_no_other_name(stage: Stage, name: str) -> None:
    stage.deploy("ls-k", workload(cluster=name))
    stage.agent("by-name", providers=["kubernetes"], environments=["prod"], realms=["ctx-a"])
    thief = stage.agent("stolen", providers=["kubernetes"], environments=["prod"], realms=["ctx-b"])
    refused(thief.register(cluster("uid-b", "ctx-b"), cluster("uid-b", name)), f"--realm {name}")


def test_a_token_bound_by_an_id_binds_no_name_that_another_token_is_bound_to(stage: Stage) -> None:
    stage.deploy("ls-k", workload(cluster="ctx-a"))
    stage.agent("by-name", providers=["kubernetes"], environments=["prod"], realms=["ctx-a"])
    thief = stage.agent("stolen", providers=["kubernetes"], environments=["prod"], realms=["uid-b"])
    refused(thief.register(cluster("uid-b", "ctx-a")), "--realm ctx-a")
    assert thief.enters(cluster("uid-b", "ctx-c")).claim() == []


def test_a_token_bound_by_an_id_puts_its_realm_in_nobodys_place(stage: Stage, in_cluster: SomeAgent) -> None:
    before = stage.get("/realms")
    thief = stage.agent("stolen", providers=["kubernetes"], environments=["prod"], realms=["uid-b"])
    answer = thief.register(cluster("uid-b", "ctx-a"), cluster("uid-b", "ctx-b"), cluster("uid-b"))
    assert [other["name"] for other in answer.json()["others"]] == ["ctx-a", ""], (
        "the agent hears of it, and nobody else"
    )
    assert stage.events("RealmChanged") == []
    after = {bound["id"]: bound for bound in stage.get("/realms")["items"]}
    assert after.pop("prod/kubernetes/ctx-b")["realm"] == "uid-b"
    assert list(after.values()) == before["items"]
    assert thief.claim() == []


def test_another_account_in_an_environment_where_accounts_have_no_names_is_noted_and_moves_nothing(
    stage: Stage, honest: SomeAgent
) -> None:
    other = stage.agent("other", providers=["aws"], environments=["prod"], realms=[OWN]).enters(aws(OWN))
    assert other.claim() == []
    assert stage.realms == {"prod/aws/": VICTIM}
    assert [event["after"] for event in stage.events("RealmChanged")] == [OWN, OWN]
    still_holds(honest)


def test_the_account_meant_where_none_is_named_is_not_taken_from_who_is_away(stage: Stage) -> None:
    honest = stage.agent("honest", providers=["aws"], environments=["prod"], realms=[VICTIM]).enters(aws(VICTIM))
    honest.post("release")  # it restarts, and nothing is declared yet
    thief = stage.agent("stolen", providers=["aws"], environments=["prod"], realms=[OWN]).enters(aws(OWN))
    honest.enters(aws(VICTIM))
    stage.deploy("ls-a", vpc())
    assert thief.claim() == []
    assert honest.claim() == [SCOPE]
    [noted] = stage.get("/realms")["items"]
    assert (noted["realm"], noted["other"]) == (VICTIM, OWN), "an operator decides, and sees both"


def test_it_follows_the_next_token_once_the_one_that_covers_it_is_revoked(stage: Stage) -> None:
    first = stage.agent("first", providers=["aws"], environments=["prod"], realms=[VICTIM]).enters(aws(VICTIM))
    first.post("release")
    assert stage.client.delete("/tokens/first").status_code == 204
    second = stage.agent("second", providers=["aws"], environments=["prod"], realms=[OWN]).enters(aws(OWN))
    stage.deploy("ls-a", vpc())
    assert second.claim() != []


def test_a_name_that_nothing_is_declared_for_is_moved_by_nobody_who_covers_neither_it_nor_its_realm(
    stage: Stage,
) -> None:
    owner = stage.agent("owner", providers=["kubernetes"], environments=["prod"], realms=["uid-a"])
    owner.enters(cluster("uid-a", "ctx-a")).post("release")
    thief = stage.agent("stolen", providers=["kubernetes"], environments=["prod"], realms=["uid-b"])
    thief.enters(cluster("uid-b", "ctx-a"))
    assert stage.realms == {"prod/kubernetes/ctx-a": "uid-a"}
    both = stage.agent("both", providers=["kubernetes"], environments=["prod"], realms=["uid-a", "uid-b"])
    both.enters(cluster("uid-b", "ctx-a"))
    assert stage.realms == {"prod/kubernetes/ctx-a": "uid-b"}


def test_the_same_name_in_another_environment_is_another_name(stage: Stage, in_cluster: SomeAgent) -> None:
    thief = stage.agent("stolen", at="stage", providers=["kubernetes"], environments=["stage"], realms=["ctx-a"])
    refused(thief.register(cluster("uid-a", "ctx-a")), "--realm uid-a")


@pytest.mark.parametrize(
    "reach",
    [
        cluster("uid-b", 'declared:["ls-k","eks","NetworkAndCompute.PaaS.AwsEks","","","eks"]'),
        cluster("uid-b/default", "ctx-b"),
        cluster("", "ctx-b"),
    ],
    ids=["the name of a declared cluster", "an id that is a path", "no id"],
)
def test_what_no_agent_can_reach_is_refused_whatever_the_token_covers(stage: Stage, reach: dict[str, Any]) -> None:
    refused(stage.agent("all").register(reach), "an agent cannot reach")


# --- what outlives the token


def test_a_revoked_token_loses_its_leases_at_once_and_others_have_them(stage: Stage, honest: SomeAgent) -> None:
    heir = stage.agent("heir", providers=["aws"], environments=["prod"], realms=[VICTIM]).enters(aws(VICTIM))
    assert heir.claim() == []
    assert stage.client.delete("/tokens/honest").status_code == 204
    assert heir.claim() == [SCOPE]
    assert honest.beat().status_code == 401
    assert [agent["alive"] for agent in stage.get("/agents")["items"] if agent["id"] == honest.id] == [False]


def test_a_server_that_still_believes_in_a_void_token_gives_it_nothing(stage: Stage, honest: SomeAgent) -> None:
    """The old secret is known to another process for a few seconds more; all that it held is gone already."""
    here: Any = stage.client.app
    elsewhere = create_app(here.state.settings, here.state.store)
    thief = SomeAgent(TestClient(elsewhere), honest.token, honest.id, leases=honest.leases, work=honest.work)
    assert thief.beat().status_code == 200, "from now on it is remembered there"
    assert stage.client.post("/tokens/honest/rotate").status_code == 200
    heir = stage.agent("heir", providers=["aws"], environments=["prod"], realms=[VICTIM]).enters(aws(VICTIM))
    assert thief.beat().status_code == 403
    assert thief.report("ls-a/net").status_code == 403
    refused(thief.register(aws(VICTIM)), "revoked")
    assert heir.claim() == [SCOPE]


def test_a_rotated_token_keeps_its_name_and_bounds_and_the_old_secret_is_void(stage: Stage, honest: SomeAgent) -> None:
    (before,) = stage.get("/tokens")["items"]
    answer = stage.client.post("/tokens/honest/rotate")
    assert answer.status_code == 200
    after = answer.json()
    secret = after.pop("token")
    same = ("name", "role", "providers", "environments", "realms", "expiresAt")
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    assert [one["name"] for one in stage.get("/tokens")["items"]] == ["honest"]
    assert honest.beat().status_code == 401
    honest.token = secret
    assert honest.beat().status_code == 403, "it must register first: what the old secret held is gone"
    honest.enters(aws(VICTIM))
    still_holds(honest)


def test_an_agent_whose_token_was_bound_to_something_else_serves_nothing_more(stage: Stage, honest: SomeAgent) -> None:
    app: Any = stage.client.app
    store: Store = app.state.store
    with store.write() as tx:
        tx.connection.execute(update(tokens).where(tokens.c.name == "honest").values(realms=[OWN]))
    app.state.authenticator.forget()
    assert honest.beat().status_code == 403
    assert honest.post("wait", wake=0).status_code == 403
    assert honest.post("release").status_code == 403
    refused(honest.register(aws(VICTIM)), f"--realm {VICTIM}")


# --- scopes that several environments share


@pytest.fixture
def shared(stage: Stage, honest: SomeAgent) -> SomeAgent:
    """The agent of another environment that has components in the same scope."""
    agent = stage.agent("stage", at="stage", providers=["aws"], environments=["stage"], realms=[VICTIM])
    agent.enters(aws(VICTIM))
    stage.deploy("ls-s", vpc("theirs"), environment="stage")
    return agent


def test_a_shared_scope_is_leased_only_to_a_token_that_has_all_its_environments(
    stage: Stage, honest: SomeAgent, shared: SomeAgent
) -> None:
    assert honest.claim() == []
    assert shared.claim() == []
    both = stage.agent("both", providers=["aws"], environments=["prod", "stage"], realms=[VICTIM]).enters(aws(VICTIM))
    assert both.claim() == [SCOPE]
    assert set(both.work) == {"ls-a/net", "ls-s/theirs"}


def test_nothing_is_reported_on_a_scope_once_another_environment_is_in_it_and_its_lease_ends_with_the_next_heartbeat(
    stage: Stage, honest: SomeAgent, shared: SomeAgent
) -> None:
    assert honest.report("ls-a/net").status_code == 409
    assert honest.beat().json()["lost"] == [SCOPE]
    both = stage.agent("both", providers=["aws"], environments=["*"], realms=[VICTIM]).enters(aws(VICTIM))
    assert both.claim() == [SCOPE], "free at once"


def test_components_of_a_shared_scope_say_which_environment_is_missing_and_the_mutation_fails(
    stage: Stage, honest: SomeAgent, shared: SomeAgent
) -> None:
    deployed = stage.deploy("ls-t", vpc("new"), environment="stage")
    store = _store(stage)
    report_unserved(store.database, timedelta(0))
    for path, status in (("ls-a/components/net", "Instantiating"), ("ls-t/components/new", "Instantiating")):
        assert stage.get(f"/livesystems/{path}")["status"] in (status, "Failed")
        message = stage.get(f"/livesystems/{path}")["message"]
        assert "agent-honest lacks 'stage'" in message
        assert "agent-stage lacks 'prod'" in message
        flags = f"--provider aws --environment prod --environment stage --realm {VICTIM}"
        assert f"`fractal token create --role agent {flags}`" in message
    mutation = stage.get(f"/livesystems/ls-t/mutations/{deployed['mutationId']}")
    assert mutation["status"] == "Failed"
    plan = stage.client.post("/livesystems/ls-t/plan?timeout=0").json()
    assert plan["verdict"] == "Failed"
    assert "lacks 'stage'" in plan["components"][0]["message"]
    honest.beat()
    both = stage.agent("both", providers=["aws"], environments=["*"], realms=[VICTIM]).enters(aws(VICTIM))
    assert both.claim() == [SCOPE]
    assert set(both.work) == {"ls-a/net", "ls-s/theirs", "ls-t/new"}
    assert both.report("ls-t/new").status_code == 200
    assert stage.get("/livesystems/ls-t/components/new")["status"] == "Active"


def test_a_realm_whose_agents_have_tokens_of_other_environments_says_so(stage: Stage, honest: SomeAgent) -> None:
    other = stage.agent("other", at="stage", providers=["aws"], environments=["stage"], realms=[VICTIM])
    other.enters(aws(VICTIM))
    stage.deploy("ls-s", vpc(parameters={"region": "us-east-1"}), environment="stage")
    assert stage.client.delete("/tokens/other").status_code == 204
    report_unserved(_store(stage).database, timedelta(0))
    shown = stage.get("/livesystems/ls-s/components/net")
    assert "(agent-honest) is bound to environment 'stage'" in shown["message"]
    assert f"--environment stage --realm {VICTIM}`" in shown["message"]


def _store(stage: Stage) -> Store:
    app: Any = stage.client.app
    store: Store = app.state.store
    return store


# --- declared clusters


CLUSTER = {
    "clusterArn": f"arn:aws:eks:eu-west-1:{VICTIM}:cluster/eks",
    "clusterName": "eks",
    "region": "eu-west-1",
    "endpoint": "https://one.eu-west-1.eks.amazonaws.com",
    "certificateAuthorityData": "AAAA",
}


@pytest.fixture
def declared(stage: Stage) -> list[Json]:
    """A cluster of the LiveSystem ls-k that was created, as it is handed to agents of Kubernetes."""
    subnets = [subnet("left"), {**subnet("right"), "parameters": {"cidrBlock": "10.0.2.0/24", "vpc": "net"}}]
    role = f"arn:aws:iam::{VICTIM}:role/eks"
    eks = {"id": "eks", "type": EKS, "parameters": {"roleArn": role, "subnets": ["left", "right"]}}
    stage.deploy("ls-k", vpc(), *subnets, eks, workload(cluster="eks"))
    cloud = stage.agent("cloud", providers=["aws"], environments=["prod"], realms=[VICTIM]).enters(aws(VICTIM))
    cloud.claim()
    assert cloud.report("ls-k/eks", outputFields=CLUSTER).status_code == 200
    everybody = stage.agent("everybody", providers=["kubernetes"]).enters(cluster("", "declared:"))
    everybody.claim()
    assert stage.client.delete("/tokens/everybody").status_code == 204
    (host,) = everybody.hosts
    assert (host["resource"], host["realm"]) == ("eks", VICTIM)
    return everybody.hosts


def test_declared_clusters_are_handed_to_tokens_that_cover_them_alone(stage: Stage, declared: list[Json]) -> None:
    for realms, expected in ((["ls-k/eks"], declared), (["ls-*/eks"], declared), (["ls-z/eks", "uid-k"], [])):
        agent = stage.agent("some", providers=["kubernetes"], environments=["prod"], realms=realms)
        agent.enters(cluster("", "declared:")).claim()
        assert agent.hosts == expected
        assert stage.client.delete("/tokens/some").status_code == 204
    other = stage.agent("other", at="stage", providers=["kubernetes"], environments=["stage"], realms=["*"])
    other.enters(cluster("", "declared:")).claim()
    assert other.hosts == []


def test_a_declared_cluster_is_fixed_to_its_id_by_who_covers_its_name(stage: Stage, declared: list[Json]) -> None:
    name = declared[0]["name"]
    thief = stage.agent("stolen", providers=["kubernetes"], environments=["prod"], realms=["uid-b", "ls-z/eks"])
    refused(thief.register(cluster("", "declared:"), cluster("uid-b", name)), "--realm ls-k/eks")
    agent = stage.agent("own", providers=["kubernetes"], environments=["prod"], realms=["ls-k/eks"])
    agent.enters(cluster("", "declared:"), cluster("uid-k", name))
    assert stage.realms["prod/kubernetes/ls-k/eks"] == "uid-k"
    assert agent.claim() == ["kubernetes/uid-k/default"]
    refused(thief.register(cluster("", "declared:"), cluster("uid-b", name)), "--realm ls-k/eks")
    by_id = stage.agent("by-id", providers=["kubernetes"], environments=["prod"], realms=["uid-k"])
    by_id.enters(cluster("", "declared:")).claim()
    assert by_id.hosts == declared, "known by its id since"


def test_what_an_agent_says_of_a_cluster_that_it_may_not_reach_is_not_said_on(
    stage: Stage, declared: list[Json]
) -> None:
    before = stage.get("/livesystems/ls-k/components/web")
    thief = stage.agent("stolen", providers=["kubernetes"], environments=["prod"], realms=["ls-z/eks"])
    thief.enters(cluster("", "declared:")).claim(unreached={declared[0]["name"]: "it is on fire"})
    assert stage.get("/livesystems/ls-k/components/web") == before
    own = stage.agent("own", providers=["kubernetes"], environments=["prod"], realms=["ls-k/eks"])
    own.enters(cluster("", "declared:")).claim(unreached={declared[0]["name"]: "no route"})
    assert "no route" in stage.get("/livesystems/ls-k/components/web")["message"]


def test_a_cluster_that_is_no_longer_declared_is_not_served_and_keeps_nobody_out(stage: Stage) -> None:
    agent = stage.agent("own", providers=["kubernetes"], environments=["prod"], realms=["uid-a"])
    agent.enters(cluster("", "declared:"), cluster("uid-x", f"declared:{'0' * 40}"), cluster("uid-a", "ctx-a"))
    (shown,) = stage.get("/agents")["items"]
    assert [reach["realm"] for reach in shown["reaches"]] == ["uid-a"]


# --- plans


def test_a_plan_is_handed_to_nobody_who_lacks_an_environment_in_it_and_answered_by_nobody_else(
    stage: Stage, honest: SomeAgent
) -> None:
    other = stage.agent("other", at="stage", providers=["aws"], environments=["stage"], realms=[VICTIM])
    other.enters(aws(VICTIM))
    store = _store(stage)
    with store.write() as tx:
        plans.ask_as_it_stands(tx, "ls-a")
    assert other.claim() == []
    assert other.plans == []
    honest.claim()
    (task,) = honest.plans
    item = {"uid": task["uids"][0], "componentId": "net", "type": VPC, "action": "nothing"}
    assert _answer(other, task, item) == 404
    assert _answer(honest, task, item, {**item, "uid": "0" * 32}) == 403
    assert _answer(honest, task, item) == 204


def _answer(agent: SomeAgent, task: Json, *items: Json) -> int:
    path = f"/agent/plans/{task['id']}"
    return agent.client.post(path, json={"components": list(items)}, headers=bearer(agent.token)).status_code


# --- who is no agent


def test_an_admins_token_is_no_agents(stage: Stage) -> None:
    admin = SomeAgent(stage.client, TOKEN, "agent-admin")
    refused(admin.register(aws(VICTIM)), "fractal token create --role agent")
    made = stage.client.post("/tokens", json={"name": "boss", "role": "admin"}).json()["token"]
    refused(SomeAgent(stage.client, made, "agent-boss").register(aws(VICTIM)), "'boss' has the role 'admin'")


@pytest.mark.parametrize(
    ("host", "status"), [("127.0.0.1", 200), ("::1", 200), ("localhost", 200), ("0.0.0.0", 403), ("control", 403)]
)
def test_a_setting_lets_admins_be_agents_on_loopback_alone(tmp_path: Path, host: str, status: int) -> None:
    settings = ControlSettings(data_dir=tmp_path, admin_token=TOKEN, host=host, admin_agents=True)
    with TestClient(create_app(settings), headers={"Authorization": f"Bearer {TOKEN}"}) as client:
        assert SomeAgent(client, TOKEN, "agent-admin").register(aws(VICTIM)).status_code == status


def test_a_token_of_before_is_refused_with_the_command_that_replaces_it(stage: Stage, honest: SomeAgent) -> None:
    app: Any = stage.client.app
    store: Store = app.state.store
    old = stage.agent("old", providers=["aws"])
    with store.write() as tx:
        tx.connection.execute(update(tokens).where(tokens.c.name == "old").values(environments=[], realms=[]))
    app.state.authenticator.forget()
    command = "fractal token create --role agent --provider aws --environment prod --realm 111111111111 --name old"
    refused(old.register(aws(VICTIM)), f"`{command}`")
    assert old.beat().status_code in (403, 404)
    bound = {"providers": ["aws"], "environments": ["prod"], "realms": [VICTIM]}
    made = stage.client.post("/tokens", json={"name": "old", "role": "agent", **bound})
    assert made.status_code == 201, "the name is free for what replaces it"
    old.token = made.json()["token"]
    old.enters(aws(VICTIM))


def test_who_is_refused_begins_no_recovery_and_does_not_fill_the_events(stage: Stage, honest: SomeAgent) -> None:
    thief = stage.agent("stolen", providers=["aws"], environments=["prod"], realms=[OWN])
    forged = {"incarnation": "0" * 32, "event": 10**9, "eventId": "ab", "at": "2026-11-18T12:00:00Z"}
    for _ in range(30):
        refused(thief.register(aws(VICTIM), lastSeen=forged), f"--realm {VICTIM}")
    assert len(stage.events("RegistrationRefused")) == 20
    assert not stage.get("/recovery")["inRecovery"]
    still_holds(honest)
