"""A secret is sealed to the keys of the realm that its source lives in, to every one of them, and to no other (A5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import update

from fractal_cloud.control.store.schema import agents
from fractal_cloud.control.store.sealing_keys import MOST, RECENT
from fractal_cloud.model.errors import LinkNotReady
from fractal_cloud.model.link import LinkState
from fractal_cloud.model.sealing import fingerprint
from fractal_cloud.offers.secret import SealingKey, Secret, seal
from fractal_cloud.testing.tokens import agent_token
from tests.last_seen import last_seen_json
from tests.links.test_crashes import Dying
from tests.links.world import World, database, link, workload

APP = workload("app", link("db", database="orders"))
SEALED = "linkedCredentials.app.sealed"
ROLE = "app@orders"


class Stranger:
    """An agent that is none of ours: it speaks the agents' protocol with a token it has, and says what it likes."""

    def __init__(self, links: World, token: str, agent_id: str = "stranger") -> None:
        self.key = SealingKey()
        self.id = agent_id
        self._links = links
        self._headers = {"Authorization": f"Bearer {token}"}

    def register(self, environment: str = "default", realm: str = "account-west", **more: Any) -> int:
        """Register with its own key; the status of the answer."""
        body = {
            "agentId": self.id,
            "environment": environment,
            "reaches": [{"provider": "west", "realm": realm, "name": ""}],
            "cycleSeconds": 60,
            "publicKey": self.key.public,
            **more,
        }
        return int(self._links.api.post("/agent/register", json=body, headers=self._headers).status_code)

    def claim(self) -> list[dict[str, Any]]:
        """Ask for scopes; the leases it gets."""
        body = {"agentId": self.id, "lastSeen": last_seen_json(self._links.api)}
        response = self._links.api.post("/agent/claim", json=body, headers=self._headers)
        return list(response.json().get("leases", []))

    def leave(self) -> None:
        """Give back whatever it got."""
        self._links.api.post("/agent/release", json={"agentId": self.id}, headers=self._headers)

    def opens(self, sealed: str) -> bool:
        """Whether it can read a sealed value."""
        try:
            return bool(self.key.open(sealed).reveal())
        except LinkNotReady:
            return False


def _sealed(links: World) -> str:
    """Have the target's agent seal a secret that nobody has received yet."""
    links.cycle("east")
    links.cycle("east")
    return str(links.fields("ls-a", "db").get(SEALED, ""))


def _stolen(links: World, **bound: list[str]) -> str:
    """A token that an admin made for another purpose, and that was stolen."""
    return agent_token(links.api, "stolen", **{"providers": ["west"], **bound})


STOLEN = [
    pytest.param({"environments": ["dev"]}, "dev", id="of another environment"),
    pytest.param({"environments": ["dev"]}, "default", id="of another environment, which says it is this one"),
    pytest.param({"realms": ["account-other"]}, "default", id="of another realm"),
    pytest.param({"realms": ["account-other"], "environments": ["dev"]}, "dev", id="of another realm and environment"),
]


@pytest.mark.rule("A5", "A1")
@pytest.mark.parametrize(("bound", "environment"), STOLEN)
def test_nothing_is_sealed_to_a_stolen_token(links: World, bound: dict[str, list[str]], environment: str) -> None:
    links.deploy("ls-a", database(), APP)
    links.kill_agent("west")
    thief = Stranger(links, _stolen(links, **bound))
    thief.register(environment)
    thief.claim()
    sealed = _sealed(links)
    assert sealed, "it is sealed to the honest agent, which was heard of lately"
    assert not thief.opens(sealed)
    assert thief.key.fingerprint not in sealed
    thief.leave()
    links.start_agent("west")
    links.settle()
    (secret, _) = links.west.secrets["toy-west:ls-a/app>db"]
    assert links.east.named("db").roles[ROLE].password == secret, "the honest agent has what was sealed"


@pytest.mark.rule("A5")
def test_an_agent_of_another_realm_that_is_registered_rightly_gets_no_box(links: World) -> None:
    links.deploy("ls-a", database(), APP)
    links.cycle("west")
    token = _stolen(links, realms=["account-other"])
    stranger = Stranger(links, token)
    assert stranger.register(realm="account-other") == 200
    stranger.claim()
    sealed = _sealed(links)
    assert sealed
    assert not stranger.opens(sealed)


@pytest.mark.rule("A5")
def test_a_secret_is_sealed_to_every_key_of_the_realm_so_that_any_of_its_agents_can_receive_it(links: World) -> None:
    links.deploy("ls-a", database(), APP)
    first = links.agents["west"]
    second = Stranger(links, links.tokens["west"], "second")
    assert second.register() == 200
    second.claim()
    links.cycle("west")
    sealed = _sealed(links)
    assert second.opens(sealed)
    assert first._sealing.key.open(sealed).reveal()
    assert sealed.count(",") == 1, "and to no other"
    version = links.fields("ls-a", "db")["linkedCredentials.app.version"]
    links.kill_agent("west")
    second.claim()
    assert _sealed(links) == sealed, "a take-over needs no new one"
    assert links.fields("ls-a", "db")["linkedCredentials.app.version"] == version


@pytest.mark.rule("A5")
def test_a_key_whose_token_was_revoked_or_has_expired_is_one_no_longer(links: World) -> None:
    links.deploy("ls-a", database(), APP)
    stranger = Stranger(links, agent_token(links.api, "dismissed", providers=["west"]))
    assert stranger.register() == 200
    assert links.api.delete("/tokens/dismissed").status_code == 204
    links.cycle("west")
    sealed = _sealed(links)
    assert sealed
    assert not stranger.opens(sealed)


@pytest.mark.rule("A5")
def test_an_agent_that_was_not_heard_of_for_long_gets_no_box(links: World) -> None:
    links.deploy("ls-a", database(), APP)
    old = Stranger(links, links.tokens["west"], "old")
    assert old.register() == 200
    _forget(links, "old")
    links.cycle("west")
    assert not old.opens(_sealed(links))


def _forget(links: World, agent_id: str) -> None:
    """Let it be long ago that an agent was heard of."""
    with links.app.state.store.write() as tx:
        long_ago = tx.now - 2 * RECENT
        tx.connection.execute(update(agents).where(agents.c.id == agent_id).values(deadline=long_ago))


@pytest.mark.rule("A5")
def test_what_is_no_key_is_refused_and_keeps_nobody_else_from_theirs(links: World) -> None:
    for key in ("imposter's", "AAAA", "A" * 43 + "="):
        assert Stranger(links, links.tokens["west"], "odd").register(publicKey=key) == 422
    good = SealingKey()
    sealed = seal(Secret("abc"), ["no key", good.public])
    assert good.open(sealed) == Secret("abc")


@pytest.mark.rule("A5")
def test_each_sealing_is_an_event_that_names_the_keys_and_not_the_value(links: World) -> None:
    links.deploy("ls-a", database(), APP)
    links.settle()
    (event,) = _events(links, "SecretSealed")
    key = links.agents["west"]._sealing.key.fingerprint
    assert (event["componentId"], event["message"]) == ("db", f"secret for 'app' sealed to 1 key: {key}")
    links.east.named("db").roles.clear()
    links.settle()
    again = _events(links, "SecretSealed")
    assert [event["message"] for event in again if "anew" in event["message"]] == [
        f"secret for 'app' sealed anew to 1 key: {key}"
    ]
    assert links.east.named("db").roles[ROLE].password not in str(again)


def _events(links: World, kind: str) -> list[dict[str, Any]]:
    return [event for event in links.api.get("/events?limit=500").json()["items"] if event["kind"] == kind]


# --- withdrawing


def _withdraw(links: World, key: str) -> Any:
    return links.api.post(f"/sealing-keys/{key}/withdraw", json={"reason": "a laptop was stolen"})


@pytest.mark.rule("A5")
def test_what_was_sealed_to_a_withdrawn_key_is_revoked_and_provided_anew_for_the_new_one(links: World) -> None:
    links.deploy("ls-a", database(), APP, workload("near", link("db", database="orders"), at="east"))
    links.settle()
    agent = links.agents["west"]
    old, password = agent._sealing.key, links.east.named("db").roles[ROLE].password
    near = links.east.named("db").roles["near@orders"].password
    assert links.api.post(f"/agents/{agent.settings.agent_id}/rotate-key", json={"reason": "x"}).status_code == 200
    links.cycle("west")
    new = agent._sealing.key
    assert new.fingerprint != old.fingerprint, "the agent made a new key by itself"
    links.settle()
    assert links.east.named("db").roles[ROLE].password != password
    assert links.west.secrets["toy-west:ls-a/app>db"][0] == links.east.named("db").roles[ROLE].password
    assert links.east.named("db").roles["near@orders"].password == near, "what was not sealed to it is as it was"
    (revoked,) = _events(links, "SecretRevoked")
    assert revoked["componentId"] == "db"
    assert old.fingerprint in revoked["message"]
    (anew,) = [event for event in _events(links, "SecretSealed") if "anew" in event["message"]]
    assert new.fingerprint in anew["message"]
    assert old.fingerprint not in anew["message"]
    (withdrawn,) = _events(links, "KeyWithdrawn")
    assert "x" in withdrawn["message"]
    links.east.handler_runs.clear()
    links.settle()
    assert not links.east.handler_runs["grant"] + links.east.handler_runs["withdraw"], "once is enough"


@pytest.mark.rule("A5")
def test_a_withdrawn_key_opens_nothing_that_comes_after_whoever_still_has_it(links: World) -> None:
    links.deploy("ls-a", database(), APP)
    thief = Stranger(links, links.tokens["west"], "thief")
    assert thief.register() == 200
    links.settle()
    password = links.east.named("db").roles[ROLE].password
    assert _withdraw(links, thief.key.fingerprint).status_code == 200
    assert thief.register() == 200, "it may come again, but the key stays withdrawn"
    links.cycle("east")
    sealed = _sealed(links)
    assert sealed
    assert not thief.opens(sealed)
    links.settle()
    assert links.east.named("db").roles[ROLE].password != password


@pytest.mark.rule("A5")
def test_a_key_that_is_only_gone_changes_nothing(links: World) -> None:
    links.deploy("ls-a", database(), APP)
    links.settle()
    before = links.east.named("db").roles[ROLE].password
    gone = links.agents["west"].settings.agent_id
    links.restart_agent("west")
    _forget(links, gone)
    links.settle()
    assert links.east.named("db").roles[ROLE].password == before
    assert not _events(links, "SecretRevoked")


@pytest.mark.rule("A5")
def test_withdrawing_twice_is_withdrawing_once_and_an_unknown_key_is_not_found(links: World) -> None:
    links.deploy("ls-a", database(), APP)
    links.settle()
    key = links.agents["west"]._sealing.key.fingerprint
    first, second = _withdraw(links, key), _withdraw(links, key)
    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json() == second.json()
    assert len(_events(links, "KeyWithdrawn")) == 1
    assert _withdraw(links, "0" * 32).status_code == 404
    assert links.api.post("/agents/nobody/rotate-key", json={"reason": "x"}).status_code == 404


@pytest.mark.rule("A5")
def test_an_operator_bound_to_another_environment_sees_and_withdraws_no_key(links: World) -> None:
    body = {"name": "lab", "role": "operator", "environments": ["lab"]}
    token = links.api.post("/tokens", json=body).json()["token"]
    headers = {"Authorization": f"Bearer {token}"}
    agent = links.agents["west"]
    key = agent._sealing.key.fingerprint
    for path in (f"/sealing-keys/{key}/withdraw", f"/agents/{agent.settings.agent_id}/rotate-key"):
        assert links.api.post(path, json={"reason": "x"}, headers=headers).status_code == 403
    assert links.api.get("/sealing-keys", headers=headers).json()["items"] == []
    assert key in str(links.api.get("/sealing-keys").json()["items"])
    assert not _events(links, "KeyWithdrawn")


@pytest.mark.rule("A5")
def test_a_key_that_a_setting_gave_stays_withdrawn_until_a_person_sets_another(links: World) -> None:
    links.deploy("ls-a", database(), APP)
    links.settle()
    agent = links.agents["west"]
    agent._sealing._is_given = True
    key = agent._sealing.key
    password = links.east.named("db").roles[ROLE].password
    assert _withdraw(links, key.fingerprint).status_code == 200
    for _ in range(4):
        links.cycle()
    assert agent._sealing.key is key
    assert not links.east.roles("db"), "it is revoked, though nobody could receive a new one"
    assert "no agent tends 'app'" in links.message("ls-a", "db")
    links.restart_agent("west")
    links.cycle("west")
    links.settle()
    assert links.east.named("db").roles[ROLE].password not in ("", password)


@pytest.mark.rule("A5", "L13")
def test_a_target_in_override_is_revoked_when_it_is_managed_again(links: World) -> None:
    links.deploy("ls-a", database(), APP)
    links.settle()
    password = links.east.named("db").roles[ROLE].password
    links.east.break_glass("db")
    links.settle()
    agent = links.agents["west"]
    assert _withdraw(links, agent._sealing.key.fingerprint).status_code == 200
    links.settle()
    assert links.east.named("db").roles[ROLE].password == password
    links.east.hand_back("db")
    links.settle()
    assert links.east.named("db").roles[ROLE].password != password


@pytest.mark.rule("A5", "S17")
@pytest.mark.parametrize("reports", range(5))
@pytest.mark.parametrize("provider", ["east", "west"])
def test_an_agent_that_dies_while_a_key_is_replaced_leaves_nothing_valid_and_nothing_double(
    links: World, provider: str, reports: int
) -> None:
    links.deploy("ls-a", database(), APP)
    links.settle()
    password = links.east.named("db").roles[ROLE].password
    key = links.agents["west"]._sealing.key
    assert _withdraw(links, key.fingerprint).status_code == 200
    links.restart_agent(provider, lambda plane: Dying(plane, reports))
    for _ in range(3):
        links.cycle()
    links.restart_agent(provider)
    links.settle(at_most=30)
    role = links.east.named("db").roles[ROLE]
    assert role.password != password
    assert links.west.secrets["toy-west:ls-a/app>db"][0] == role.password
    assert links.east.marks() == {"ls-a/db<ls-a/app"}
    assert _events(links, "SecretRevoked")


@pytest.mark.rule("A5")
@pytest.mark.parametrize("operation", ["drop_role", "put_role"])
def test_a_cloud_that_does_not_answer_while_a_key_is_replaced_is_asked_again(links: World, operation: str) -> None:
    from fractal_cloud.model.errors import Transient

    links.deploy("ls-a", database(), APP)
    links.settle()
    password = links.east.named("db").roles[ROLE].password
    links.east.failing[operation] = Transient("no answer")
    assert _withdraw(links, links.agents["west"]._sealing.key.fingerprint).status_code == 200
    for _ in range(3):
        links.cycle()
    links.east.failing.clear()
    links.settle(at_most=30)
    role = links.east.named("db").roles[ROLE]
    assert role.password != password
    assert links.west.secrets["toy-west:ls-a/app>db"][0] == role.password


@pytest.mark.rule("A5")
def test_a_handler_that_publishes_the_revoked_secret_again_is_refused(
    links: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    links.deploy("ls-a", database(), APP)
    links.settle()
    handler = next(h for h in links.registry.handlers if h.half == "inbound" and h.target == "Toy.EastDatabase")
    grant: Callable[[Any], Any] = handler.function
    monkeypatch.setattr(handler, "function", lambda made: made.fields)
    assert _withdraw(links, links.agents["west"]._sealing.key.fingerprint).status_code == 200
    links.cycle()
    links.cycle()
    assert "published again what was revoked" in links.message("ls-a", "db")
    monkeypatch.setattr(handler, "function", grant)
    links.restart_agent("west")
    links.settle()


# --- what was stored before


@pytest.mark.rule("A5")
def test_a_state_from_before_says_which_key_it_hangs_on_or_that_nobody_knows() -> None:
    ends = {"linkType": "a", "otherType": "b", "otherProvider": "c"}
    one = LinkState.model_validate({**ends, "sealedTo": "key"})
    assert one.sealed_to == one.seen_keys == [fingerprint("key")]
    assert LinkState.model_validate({**ends, "sealedTo": ""}).seen_keys == []
    assert LinkState.model_validate({**ends, "sealedTo": None}).sealed_to is None
    assert LinkState.model_validate(ends).sealed_to == []
    assert LinkState.model_validate(one.to_json()) == one


@pytest.mark.rule("A5")
def test_a_value_that_was_sealed_to_one_key_is_still_opened() -> None:
    key = SealingKey()
    prefix, _, box = seal(Secret("abc"), [key.public]).rpartition(":")
    assert prefix == f"sealed:{key.fingerprint}"
    assert key.open(f"sealed:{box}") == Secret("abc")
    with pytest.raises(LinkNotReady):
        SealingKey().open(f"sealed:{box}")


@pytest.mark.rule("A5")
def test_secrets_of_which_nobody_noted_the_keys_are_revoked_with_any_of_them(links: World) -> None:
    links.deploy("ls-a", database(), APP)
    links.settle()
    password = links.east.named("db").roles[ROLE].password
    _as_before(links, "db")
    links.restart_agent("east")
    links.settle()
    assert links.east.named("db").roles[ROLE].password == password
    assert _withdraw(links, links.agents["west"]._sealing.key.fingerprint).status_code == 200
    links.settle()
    assert links.east.named("db").roles[ROLE].password != password


def _as_before(links: World, component: str) -> None:
    """Let what is remembered of a component's links be as it was when nobody noted keys."""
    from fractal_cloud.control.store.schema import components

    uid = components.c.component_id == component
    with links.app.state.store.write() as tx:
        states = tx.connection.execute(components.select().where(uid)).one().links
        for state in states["inbound"].values():
            state["sealedTo"] = None
            del state["seenKeys"], state["revoked"]
        tx.connection.execute(update(components).where(uid).values(links=states))


@pytest.mark.rule("A5")
def test_of_very_many_keys_a_value_is_sealed_to_those_heard_of_last(links: World) -> None:
    links.deploy("ls-a", database(), APP)
    token = links.tokens["west"]
    with links.app.state.store.write() as tx:
        row = dict(tx.connection.execute(agents.select().where(agents.c.id == _west(links))).mappings().one())
        reach = {"provider": "west", "realm": "account-west"}
        from fractal_cloud.control.store.driver import insert_rows
        from fractal_cloud.control.store.schema import agent_reaches

        many = [f"many-{number}" for number in range(MOST + 20)]
        early = tx.now - RECENT / 2
        rows = [{**row, "id": name, "public_key": SealingKey().public, "deadline": early} for name in many]
        insert_rows(tx.connection, agents, rows)
        insert_rows(tx.connection, agent_reaches, [{**reach, "agent_id": name} for name in many])
    assert token
    links.cycle("west")
    sealed = _sealed(links)
    assert sealed.count(",") == MOST - 1
    assert links.agents["west"]._sealing.key.open(sealed).reveal(), "the living come first"


def _west(links: World) -> str:
    return links.agents["west"].settings.agent_id
