"""What the store returns to the two ends of a link, on every database: no news is missed, and none is too much."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.control.store import reports, scopes
from fractal_cloud.model.link import LinkWork
from fractal_cloud.model.status import Stance, Status
from tests.store.playing import Player, World, component, net

IMPORTED = {"stance": Stance.IMPORTED, "status": Status.EXTERNALLY_MANAGED, "owner": "ls-a"}


def _shared(**more: Any) -> dict[str, Any]:
    return net("net", parameters={"name": "shared"}, **more)


def _links_in(agent: Player, live_system: str, component_id: str) -> list[LinkWork]:
    return agent.work[agent.uid(live_system, component_id)].links_in


@pytest.mark.rule("L11", "L12")
def test_an_owner_hears_of_a_link_as_soon_as_its_target_is_seen_to_be_imported(world: World) -> None:
    world.deploy("ls-a", _shared(linksFrom=["ls-b"]))
    agent = world.agent()
    agent.settle()
    world.deploy("ls-b", _shared(), net("own", links=[{"target": "net", "settings": {"port": 1}}]))
    agent.claim()
    assert _links_in(agent, "ls-a", "net") == []
    agent.report(agent.says("ls-b", "net", **IMPORTED))
    agent.claim()
    (link,) = _links_in(agent, "ls-a", "net")
    assert (link.other, link.settings, link.refused) == ("ls-b/own", {"port": 1}, "")
    assert _links_in(agent, "ls-b", "net") == []
    world.delete("ls-b")
    agent.claim()
    assert _links_in(agent, "ls-a", "net") == []


@pytest.mark.rule("L11")
def test_a_report_withdraws_no_news_that_came_while_it_was_on_its_way(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.deploy("ls-a", net())
    agent = world.agent()
    agent.settle()
    agent.claim()
    uid = agent.uid("ls-a", "net")
    key = agent.scope_of[uid]
    check = reports._check_leases

    def slow(tx: Any, *arguments: Any, **more: Any) -> None:
        """Somebody else's report is written after the rows were read, and before they are."""
        scopes.announce(tx, {uid: key})
        check(tx, *arguments, **more)

    monkeypatch.setattr(reports, "_check_leases", slow)
    agent.report(agent.says("ls-a", "net", message="something else"))
    monkeypatch.undo()
    (lease,) = agent.claim().leases
    assert lease.work is not None
    assert [part.uid for part in lease.work.components] == [uid]


@pytest.mark.rule("L3", "L4")
def test_each_source_of_a_target_receives_what_was_published_for_it_alone(world: World) -> None:
    things = [component(name, "Other.Thing", {}) for name in ("thing", "thing-2")]
    sources = [net(name, links=[{"target": "thing"}, {"target": "thing-2"}]) for name in ("one", "two")]
    world.deploy("ls-a", *things, *sources)
    agent, other = world.agent("a1"), world.agent("a2", providers=("other",))
    other.claim()
    fields = {"address": "x", "linkedCredentials.one.user": "1", "linkedCredentials.two.user": "2", "drift": {"a": 1}}
    other.report(other.says("ls-a", "thing", output_fields=fields))
    agent.claim()
    for name, user in (("one", "1"), ("two", "2")):
        link, _ = agent.work[agent.uid("ls-a", name)].links_out
        assert (link.published, link.outputs) == ({"user": user}, {"address": "x"})
    agent.report(agent.says("ls-a", "one", output_fields={"xLink.thing.received": 1, "xLink.thing-2.received": 2}))
    other.claim()
    first, second = _links_in(other, "ls-a", "thing")
    assert (first.other, first.published, second.published) == ("one", {"received": 1}, {})
