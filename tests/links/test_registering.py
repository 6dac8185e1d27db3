"""Handlers are registered for pairs of types (L6), one per claim (L15), by any package (L16)."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from fractal_cloud.model.errors import RegistrationError
from fractal_cloud.offers.link import Handler, Handlers, InboundLink, Published, inbound, outbound
from fractal_cloud.offers.registry import ENTRY_POINTS, Registry, _other_modules
from tests.links import east, west
from tests.links.link_handlers import Anything
from tests.links.world import World, link, workload
from tests.links.world import world as make_world


def first(link: InboundLink[Anything]) -> Published:
    """Provide something."""
    return {}


def second(link: InboundLink[Anything]) -> Published:
    """Provide something else."""
    return {}


def _inbound(source: str, target: str, function: object = first, link_type: str = "xLink") -> Handler:
    made = inbound(source=source, target=target, link_type=link_type, settings=Anything)
    handler = made(function)  # type: ignore[arg-type]
    handler.revokes(lambda link: None)
    handler.verifies(lambda links: links)
    return handler


def _outbound(source: str, target: str) -> Handler:
    return outbound(source=source, target=target, link_type="xLink", settings=Anything)(first)


@pytest.mark.rule("L6", "L15")
def test_the_exact_pair_beats_a_wildcard_and_the_own_side_beats_the_other() -> None:
    handlers = Handlers()
    pairs = [("A", "B"), ("A", "*"), ("*", "B")]
    made = {(half, pair): make(*pair) for half, make in (("in", _inbound), ("out", _outbound)) for pair in pairs}
    for handler in made.values():
        handlers.add(handler)
    assert handlers.find("inbound", "A", "B") is made["in", ("A", "B")]
    assert handlers.find("outbound", "A", "B") is made["out", ("A", "B")]
    assert handlers.find("inbound", "A", "C") is made["in", ("A", "*")]
    assert handlers.find("inbound", "C", "B") is made["in", ("*", "B")]
    assert handlers.find("inbound", "C", "D") is None
    wild = Handlers()
    for handler in [made[half, pair] for half in ("in", "out") for pair in pairs[1:]]:
        wild.add(handler)
    assert wild.find("inbound", "A", "B") is made["in", ("*", "B")], "inbound: the target's side"
    assert wild.find("outbound", "A", "B") is made["out", ("A", "*")], "outbound: the source's side"


@pytest.mark.rule("L15")
def test_two_handlers_with_one_claim_fail_at_the_start_and_both_are_named() -> None:
    module = ModuleType("more")
    module.one = _inbound("*", "Toy.X", first)  # type: ignore[attr-defined]
    module.two = _inbound("*", "Toy.X", second)  # type: ignore[attr-defined]
    with pytest.raises(RegistrationError) as refused:
        Registry([module])
    assert f"by {__name__}.first and by {__name__}.second: remove one of them" in str(refused.value)
    assert "from '*' to 'Toy.X'" in str(refused.value)


@pytest.mark.rule("L15")
def test_one_handler_seen_in_two_modules_is_one_handler() -> None:
    module = ModuleType("more")
    module.same = east.grant  # type: ignore[attr-defined]
    assert len(list(Registry([east, module]).handlers)) == len(list(Registry([east]).handlers))


@pytest.mark.rule("L3", "L6", "L10", "L14")
def test_a_handler_that_could_not_keep_the_rules_is_refused() -> None:
    handlers = Handlers()
    with pytest.raises(RegistrationError, match="must name a component type"):
        handlers.add(_inbound("*", "*"))
    for name in ("linkedCredentials", "database-link", "DatabaseLink", "a.b", ""):
        with pytest.raises(RegistrationError, match="is not like 'databaseLink'"):
            handlers.add(_inbound("*", "B", link_type=name))
    bare = inbound(source="*", target="B", link_type="xLink", settings=Anything)(first)
    with pytest.raises(RegistrationError, match="revokes"):
        handlers.add(bare)
    bare.revokes(lambda link: None)
    with pytest.raises(RegistrationError, match="verifies"):
        handlers.add(bare)


@pytest.mark.rule("L6")
def test_a_wildcard_handler_serves_every_pair_that_has_none_of_its_own(links: World) -> None:
    links.deploy("ls-a", workload("one", at="east"), workload("app", link("one")))
    links.settle()
    assert links.fields("ls-a", "app") == {"greetLink.one.endpoint": "one.toy:5000", "greetLink.one.cross": True}


PACKAGE = '''
from fractal_cloud.model.component import Component, parameter
from fractal_cloud.model.link import LinkSettings
from fractal_cloud.offers.link import inbound, outbound
from tests.links.offers import ToyOffer


class Queue(Component):
    """A queue of somebody else."""

    type = "Third.Queue"
    provider = "east"
    depth: int = parameter(default=1)


class QueueOffer(ToyOffer[Queue]):
    """How queues are kept."""

    component = Queue
    title = "Queue"


class QueueLink(LinkSettings):
    """How a queue is used."""

    topic: str


@inbound(source="*", target=Queue, link_type="queueLink", settings=QueueLink)
def subscribe(link):
    """Let the source listen."""
    link.cloud.store.things[link.there.resource_id].routes[link.mark] = link.settings.topic
    return {"topic": link.settings.topic}


@subscribe.revokes
def unsubscribe(link):
    """Let it listen no more."""
    link.cloud.store.things[link.there.resource_id].routes.pop(link.mark, None)


@subscribe.verifies
def subscribed(links):
    """Those that listen."""
    return [link for link in links if link.mark in link.cloud.store.things[link.there.resource_id].routes]


@outbound(source="Toy.WestWorkload", target=Queue, link_type="queueLink", settings=QueueLink)
def listen(link):
    """Know the topic."""
    return {"topic": link.published["topic"]} if link.published else None
'''


@pytest.mark.rule("L16")
def test_a_package_of_somebody_else_brings_types_and_handlers_through_an_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    info = site / "third_queue-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "third_queue.py").write_text(PACKAGE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: third-queue\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\nqueue = third_queue\n")
    monkeypatch.syspath_prepend(str(site))
    found = [module for module in _other_modules() if module.__name__ == "third_queue"]
    assert len(found) == 1
    try:
        folder = tmp_path / "world"
        folder.mkdir()
        with make_world(folder, Registry([east, west, *found])) as world:
            queue = {"id": "queue", "type": "Third.Queue", "provider": "east", "parameters": {}}
            refused = world.put("ls-a", queue, workload("app", link("queue")))
            assert "components[app].links[0].settings.topic" in refused.text
            world.deploy("ls-a", queue, workload("app", link("queue", topic="news")))
            world.settle()
            assert world.fields("ls-a", "app") == {"queueLink.queue.topic": "news"}
            assert world.west.named("app").actual["environment"] == {"queueLink.queue.topic": "news"}
            world.deploy("ls-a", queue, workload("app"))
            world.settle()
            assert not world.east.marks()
    finally:
        sys.modules.pop("third_queue", None)


@pytest.mark.rule("L6")
def test_a_half_whose_package_is_missing_keeps_what_it_made_and_says_so(tmp_path: Path) -> None:
    registry = Registry([east, west])
    with make_world(tmp_path, registry) as world:
        gate = {"id": "edge", "type": "Toy.EastGateway", "provider": "east", "parameters": {}}
        world.deploy("ls-a", gate, workload("app", link("edge", prefix="/a")))
        world.settle()
        before = world.fields("ls-a", "edge")
        taken = registry.handlers._by_claim.pop(("inbound", "*", "Toy.EastGateway"))
        world.restart_agent("east")
        world.settle()
        assert world.fields("ls-a", "edge") == before
        assert "this agent has no inbound half between" in world.message("ls-a", "edge")
        registry.handlers.add(taken)
        world.restart_agent("east")
        world.deploy("ls-a", gate, workload("app"))
        world.settle()
        assert not world.east.marks()
