"""Several realms of one provider: clusters that declarations call by a name, reached by one agent or by several."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fractal_cloud.control.store import events, glass, livesystems, plans, realms, unserved_components
from fractal_cloud.control.store.errors import NotFound, Refused
from fractal_cloud.control.store.livesystems import Deploy
from fractal_cloud.control.store.realms import Wanted
from fractal_cloud.model.declaration import LiveSystemDeclaration
from fractal_cloud.model.errors import DeclarationError
from fractal_cloud.rules.identify import identities
from tests.store.playing import CATALOG, Json, Player, World, net, pod

BLUE = "many/uid-blue/default"
GREEN = "many/uid-green/default"


def agent(world: World, agent_id: str = "a1", /, **clusters: str) -> Player:
    """An agent that reaches clusters; ``current`` is the one meant where none is named."""
    named = {"" if name == "current" else name: realm for name, realm in clusters.items()}
    return world.agent(agent_id, clusters=named)


def scope(world: World, component_id: str) -> str | None:
    found: str | None = world.component("ls-a", component_id)["scope"]
    return found


def deploying(*parts: Json) -> Deploy:
    declaration = LiveSystemDeclaration.model_validate({"id": "ls-a", "components": list(parts)})
    return Deploy(declaration, identities(declaration, CATALOG), "ann")


def test_a_component_is_settled_in_the_cluster_its_declaration_names(world: World) -> None:
    world.deploy("ls-a", pod("one", "blue"), pod("two", "green"), pod("three"))
    agent(world, current="uid-blue", blue="uid-blue", green="uid-green")
    assert [scope(world, name) for name in ("one", "two", "three")] == [BLUE, GREEN, BLUE]


def test_a_cluster_nobody_reaches_leaves_its_components_unsettled(world: World) -> None:
    agent(world, current="uid-blue")
    world.deploy("ls-a", pod("one", "red"), pod("two"))
    assert [scope(world, name) for name in ("one", "two")] == [None, BLUE]


def test_agents_that_each_reach_a_cluster_of_their_own_get_the_scopes_of_no_other(world: World) -> None:
    world.deploy("ls-a", pod("one", "blue"), pod("two", "green"))
    first, second = agent(world, "a1", blue="uid-blue"), agent(world, "a2", green="uid-green")
    assert [lease.scope for lease in first.claim().leases] == [BLUE]
    assert [lease.scope for lease in second.claim().leases] == [GREEN]
    assert [part.realm_name for part in second.work.values()] == ["green"]


@pytest.mark.rule("S18")
def test_only_the_same_name_with_another_cluster_is_foreign(world: World) -> None:
    world.deploy("ls-a", pod("one", "blue"), pod("two", "green"))
    first = agent(world, "a1", blue="uid-blue", green="uid-green")
    first.settle()
    first.register(clusters={"blue": "uid-other", "green": "uid-green"})
    one, two = world.component("ls-a", "one"), world.component("ls-a", "two")
    assert one["scope"] == BLUE
    assert "many 'blue' is now 'uid-other', it was 'uid-blue'" in one["message"]
    assert two["message"] == ""


def test_while_an_agent_reaches_a_cluster_by_a_name_nobody_else_gets_the_name(world: World) -> None:
    agent(world, "a1", blue="uid-blue")
    agent(world, "a2", blue="uid-other", green="uid-green")
    world.deploy("ls-a", pod("one", "blue"), pod("two", "green"))
    assert [scope(world, name) for name in ("one", "two")] == [BLUE, GREEN]


@pytest.mark.rule("S18")
def test_what_is_established_stays_in_its_cluster_when_another_is_declared(world: World) -> None:
    player = agent(world, blue="uid-blue", green="uid-green")
    world.deploy("ls-a", pod(cluster="blue"))
    player.settle()
    world.deploy("ls-a", pod(cluster="green"))
    player.claim()
    [part] = player.work.values()
    assert scope(world, "pod") == BLUE
    assert (part.realm_name, part.declared_realm_name) == ("blue", "green")


def test_another_name_for_the_same_cluster_moves_nothing(world: World) -> None:
    player = agent(world, blue="uid-blue", sky="uid-blue")
    world.deploy("ls-a", pod(cluster="blue"))
    player.settle()
    world.deploy("ls-a", pod(cluster="sky"))
    player.claim()
    [part] = player.work.values()
    assert scope(world, "pod") == BLUE
    assert (part.realm_name, part.declared_realm_name) == ("sky", "sky")


def test_another_name_that_is_reached_only_later_moves_nothing_either(world: World) -> None:
    player = agent(world, blue="uid-blue")
    world.deploy("ls-a", pod(cluster="blue"))
    player.settle()
    world.deploy("ls-a", pod(cluster="sky"))
    player.register(clusters={"sky": "uid-blue"})
    player.claim()
    assert [(part.realm_name, part.declared_realm_name) for part in player.work.values()] == [("sky", "sky")]


def test_what_was_never_established_goes_where_it_is_declared_now(world: World) -> None:
    player = agent(world, blue="uid-blue", green="uid-green")
    world.deploy("ls-a", pod(cluster="blue"))
    player.claim()
    world.deploy("ls-a", pod(cluster="green"))
    assert scope(world, "pod") == GREEN
    world.deploy("ls-a", pod(cluster="red"))
    assert scope(world, "pod") is None
    assert not player.claim().leases


@pytest.mark.parametrize(("cluster", "expected"), [("green", GREEN), ("red", None)])
def test_what_is_gone_follows_its_declaration_into_another_cluster(
    world: World, cluster: str, expected: str | None
) -> None:
    player = agent(world, blue="uid-blue", green="uid-green")
    world.deploy("ls-a", pod(cluster="blue"))
    player.settle()
    world.deploy("ls-a", pod(cluster=cluster))
    player.claim()
    player.report(player.says("ls-a", "pod", established=False, resource_id=None))
    assert scope(world, "pod") == expected


@pytest.mark.rule("O16")
def test_one_resource_under_two_names_of_its_cluster_is_refused(world: World) -> None:
    agent(world, current="uid-blue", blue="uid-blue")
    same = {"name": "web"}
    with pytest.raises(DeclarationError, match="'' and 'blue' are both 'uid-blue': declare it once"):
        world.deploy("ls-a", pod("one", parameters=same), pod("two", "blue", parameters=same))


@pytest.mark.rule("S21")
def test_a_cluster_nobody_reaches_is_named_to_the_deployer_and_on_the_component(world: World) -> None:
    agent(world, current="uid-blue")
    world.deploy("ls-a", pod(cluster="red"), pod("fine"))
    with world.store.read() as tx:
        warnings = livesystems.warnings(tx, deploying(pod(cluster="red"), pod("fine")))
    assert len(warnings) == 1
    assert "no running agent in environment 'default' reaches 'red' of 'many'" in warnings[0]
    world.clock.advance(8)
    unserved_components.report_unserved(world.store.database, timedelta(seconds=5))
    assert world.component("ls-a", "pod")["status"] == "Failed"
    assert "reaches 'red'" in world.component("ls-a", "pod")["message"]


@pytest.mark.rule("C6")
def test_a_plan_says_which_cluster_nobody_reaches(world: World) -> None:
    agent(world, current="uid-blue")
    wanted = deploying(pod(cluster="red"), pod("fine"))
    with world.store.write() as tx:
        asked = plans.ask(tx, wanted.declaration, wanted.identities)
    assert [message for message in asked.unanswered.values() if "reaches 'red'" in message]
    assert asked.scopes == {BLUE}


def test_a_component_of_a_provider_with_one_realm_needs_no_name(world: World) -> None:
    world.deploy("ls-a", net())
    player = world.agent()
    player.claim()
    assert [part.realm_name for part in player.work.values()] == [""]


def test_the_name_of_the_cluster_may_stand_in_the_commands(world: World) -> None:
    agent(world, blue="uid-blue")
    world.deploy("ls-a", pod(cluster="blue"))
    catalog = dict(CATALOG)
    commands = CATALOG["Test.Net"].glass.model_copy(update={"break_glass": ["untag --context {cluster} -n {space}"]})
    catalog["Many.Pod"] = CATALOG["Many.Pod"].model_copy(update={"glass": commands})
    with world.store.read() as tx:
        assert glass.commands(tx, "ls-a", "pod", catalog, catalog)["break"] == ["untag --context blue -n default"]


# --- another realm by the same name (S26)


def events_of(world: World, kind: str) -> list[tuple[str, str | None, str | None]]:
    """Whom events of a kind concern, with before and after."""
    with world.store.read() as tx:
        found = events.list_page(tx, None, 1_000, None)
    return [(one["liveSystemId"], one["before"], one["after"]) for one in reversed(found) if one["kind"] == kind]


def accept(world: World, name: str, **more: str) -> Json:
    with world.store.write() as tx:
        wanted = {"environment": "default", "provider": "many", "reason": "rebuilt", "by": "ann", **more}
        return realms.accept(tx, Wanted(name=name, **wanted))


@pytest.mark.rule("S26")
def test_first_contact_is_recorded_once_and_with_an_event(world: World) -> None:
    player = agent(world, blue="uid-blue")
    player.register(clusters={"blue": "uid-blue"})
    assert ("", None, "uid-blue") in events_of(world, "RealmReached")
    assert len([one for one in events_of(world, "RealmReached") if one[2] == "uid-blue"]) == 1
    with world.store.read() as tx:
        [found] = [one for one in realms.described(tx) if one["provider"] == "many"]
    assert (found["name"], found["realm"], found["other"]) == ("blue", "uid-blue", None)
    assert found["firstReached"] is not None


@pytest.mark.rule("S26", "C8")
def test_another_cluster_by_the_same_name_is_an_event_and_a_message_and_moves_nothing(world: World) -> None:
    player = agent(world, blue="uid-blue")
    world.deploy("ls-a", pod(cluster="blue"))
    player.settle()
    before = world.component("ls-a", "pod")
    answer = player.register(clusters={"blue": "uid-other"})
    assert [(other.name, other.realm) for other in answer.others] == [("blue", "uid-other")]
    assert events_of(world, "RealmChanged") == [(name, "uid-blue", "uid-other") for name in ("", "ls-a")]
    world.deploy("ls-a", pod(cluster="blue"), pod("new", "blue"))
    assert scope(world, "pod") == scope(world, "new") == BLUE
    assert not player.claim().leases
    after = world.component("ls-a", "pod")
    assert (after["status"], after["resourceId"]) == (before["status"], before["resourceId"])
    world.clock.advance(8)
    player.register(clusters={"blue": "uid-other"})
    unserved_components.report_unserved(world.store.database, timedelta(seconds=5))
    for name in ("pod", "new"):
        assert "`fractal realm accept blue --provider many" in world.component("ls-a", name)["message"]
    assert len(events_of(world, "RealmChanged")) == 2, "said once"


@pytest.mark.rule("S26")
def test_what_was_seen_absent_is_not_made_in_another_cluster_either(world: World) -> None:
    player = agent(world, blue="uid-blue")
    world.deploy("ls-a", pod(cluster="blue"))
    player.settle()
    player.claim()
    player.report(player.says("ls-a", "pod", established=False, absent=True, resource_id=None))
    player.register(clusters={"blue": "uid-other"})
    assert scope(world, "pod") == BLUE


@pytest.mark.rule("S26")
def test_a_name_that_nothing_is_in_follows_what_is_reached(world: World) -> None:
    player = agent(world, blue="uid-blue")
    assert not player.register(clusters={"blue": "uid-other"}).others
    assert events_of(world, "RealmReached")[-1] == ("", "uid-blue", "uid-other")
    world.deploy("ls-a", pod(cluster="blue"))
    assert scope(world, "pod") == "many/uid-other/default"


@pytest.mark.rule("S26")
def test_the_realm_that_is_reached_again_is_served_again(world: World) -> None:
    player = agent(world, blue="uid-blue")
    world.deploy("ls-a", pod(cluster="blue"))
    player.settle()
    player.register(clusters={"blue": "uid-other"})
    assert not player.register(clusters={"blue": "uid-blue"}).others
    assert [lease.scope for lease in player.claim().leases] == [BLUE]
    assert events_of(world, "RealmReached")[-1] == ("ls-a", "uid-other", "uid-blue")
    with pytest.raises(NotFound, match="nothing to accept"):
        accept(world, "blue")


@pytest.mark.rule("S26")
def test_one_agent_elsewhere_says_nothing_of_what_another_serves(world: World) -> None:
    first = agent(world, "a1", blue="uid-blue")
    world.deploy("ls-a", pod(cluster="blue"))
    first.settle()
    agent(world, "a2", blue="uid-other")
    assert world.component("ls-a", "pod")["message"] == ""
    assert events_of(world, "RealmChanged") == [(name, "uid-blue", "uid-other") for name in ("", "ls-a")]


@pytest.mark.rule("S26")
@pytest.mark.parametrize("name", ["blue", "uid-blue", "uid-other"])
def test_an_accepted_realm_is_entered_with_nothing_remembered_and_deletions_end(world: World, name: str) -> None:
    player = agent(world, blue="uid-blue")
    world.deploy("ls-a", pod(cluster="blue"), pod("going", "blue"))
    player.settle()
    world.deploy("ls-a", pod(cluster="blue"))
    player.register(clusters={"blue": "uid-other"})
    assert "--forget going" in world.component("ls-a", "going")["message"]
    done = accept(world, name)
    assert done == {"before": "uid-blue", "after": "uid-other", "components": 1, "ended": 1}
    player.claim()
    [part] = player.work.values()
    assert scope(world, "pod") == "many/uid-other/default"
    memory = part.memory
    assert (memory.stance, memory.resource_id, memory.established, memory.stuck) == ("imported", None, False, False)
    assert memory.output_fields == {}
    with pytest.raises(Exception, match="going"):
        world.component("ls-a", "going")
    assert events_of(world, "RealmAccepted") == [(whom, "uid-blue", "uid-other") for whom in ("", "ls-a")]
    with pytest.raises(NotFound, match="nothing to accept"):
        accept(world, name)


@pytest.mark.rule("S26")
def test_what_is_accepted_must_be_clear(world: World) -> None:
    player = agent(world, blue="uid-blue", green="uid-green")
    world.deploy("ls-a", pod(cluster="blue"), pod("two", "green"))
    player.settle()
    player.register(clusters={"blue": "uid-other", "green": "uid-other"})
    with pytest.raises(Refused, match="name the id"):
        accept(world, "uid-other")
    with pytest.raises(NotFound, match="reached as 'blue', 'green'"):
        accept(world, "red")
    assert accept(world, "uid-green")["components"] == 1
    assert scope(world, "pod") == BLUE


@pytest.mark.rule("S26", "C6")
def test_a_plan_says_that_another_cluster_is_reached(world: World) -> None:
    player = agent(world, blue="uid-blue")
    world.deploy("ls-a", pod(cluster="blue"))
    player.settle()
    player.register(clusters={"blue": "uid-other"})
    wanted = deploying(pod(cluster="blue"), pod("new", "blue"))
    with world.store.write() as tx:
        asked = plans.ask(tx, wanted.declaration, wanted.identities)
    assert not asked.scopes
    assert all("is now 'uid-other', it was 'uid-blue'" in message for message in asked.unanswered.values())
    assert len(asked.unanswered) == 2
