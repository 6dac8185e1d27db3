"""What a cloud or an agent said is shown, and does nothing else: no terminal obeys it, and no line ends."""

from __future__ import annotations

import ast
import json
import shlex
from collections.abc import Iterator
from typing import Any, cast

import pytest
import yaml
from rich.console import Console

from fractal_cloud.agent.isolation import isolated
from fractal_cloud.agent.watchdog import Watchdog
from fractal_cloud.cli.absorbing.python import Json, Python
from fractal_cloud.cli.absorbing.yaml_source import Yaml
from fractal_cloud.cli.options import Output
from fractal_cloud.cli.output import emit, json_text, plain
from fractal_cloud.cli.yaml_loader import Loader
from fractal_cloud.control.dashboard.pages import render
from fractal_cloud.model.errors import Denied, Unreadable
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.link import LinkStates
from fractal_cloud.model.sighting import Sighting, UnreadItem
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.model.visible_text import hidden_character, visible
from fractal_cloud.offers.items import parse_each
from fractal_cloud.offers.offer import AnyOffer, Cloud, Query
from fractal_cloud.offers.registry import installed
from fractal_cloud.rules.links import link_message
from fractal_cloud.rules.words import Realm
from tests.world import World, security_group, vpc

HIDDEN = {
    "a line break": "net\nall is well",
    "a carriage return": "net\rall is well",
    "a terminal escape": "net\x1b]0;owned\x07\x1b[2J",
    "a NUL": "net\x00",
    "delete": "net\x7f",
    "a C1 escape": "net\x9b2J",
    "a next line": "net\x85all is well",
    "a right-to-left override": "net\u202exof",
    "a left-to-right mark": "net\u200e",
    "an isolate": "net\u2066fox\u2069",
    "a line separator": "net\u2028all is well",
    "a paragraph separator": "net\u2029all is well",
    "half a surrogate pair": "net\ud800",
}
SHOWN = ["net", "naïve–名前 🚀", "שלום", "a\u00a0b", "a\u200db", "[bold]x[/bold]", "[link=http://x]y[/link]"]


@pytest.mark.rule("A6")
@pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN)
def test_hidden_characters_are_found_and_escaped(text: str) -> None:
    assert hidden_character(text) is not None
    assert hidden_character(visible(text)) is None
    assert visible(text).startswith("net\\")


@pytest.mark.rule("A6")
@pytest.mark.parametrize("text", SHOWN)
def test_everything_else_stays_as_it_is(text: str) -> None:
    assert hidden_character(text) is None
    assert visible(text) == text


# --- what an agent reads


class _Watched(Cloud):
    scope = Scope("any", "realm", "place")


class _Says:
    """An offer of the registry whose cloud lists one resource of that name and id."""

    def __init__(self, offer: AnyOffer, sighting: Sighting) -> None:
        self._offer, self._sighting = offer, sighting

    def __getattr__(self, name: str) -> Any:
        return getattr(self._offer, name)

    def sightings(self, cloud: Cloud, query: Query) -> Iterator[Sighting]:
        yield self._sighting

    def read(self, cloud: Cloud, resource_id: str, sweep: Any = ()) -> Sighting:
        return self._sighting

    create = read


def _as_the_agent_reads(offer: AnyOffer, **said: Any) -> AnyOffer:
    sighting = Sighting(**{"type": offer.type, "name": "net", "resource_id": "net-1", **said})
    return isolated(cast("AnyOffer", _Says(offer, sighting)), Watchdog(5.0))


@pytest.mark.rule("A6", "S0", "S24")
@pytest.mark.parametrize("component_type", [offer.type for offer in installed()])
def test_a_resource_with_control_characters_in_its_id_or_name_is_unreadable(component_type: str) -> None:
    cloud = _Watched()
    for text in HIDDEN.values():
        for said in ({"name": text}, {"resource_id": text}, {"parent_id": text}, {"incarnation": text}):
            offer = _as_the_agent_reads(installed()[component_type], **said)
            (item,) = offer.sightings(cloud, Query())
            assert isinstance(item, UnreadItem)
            assert repr(text) in item.error.message, "it is named, escaped"
            assert hidden_character(item.error.message) is None
            with pytest.raises(Unreadable):
                offer.read(cloud, said.get("resource_id", "net-1"))


@pytest.mark.rule("A6", "S24")
def test_what_cannot_be_understood_is_named_escaped() -> None:
    def fails(_: object) -> Sighting:
        raise KeyError("x")

    (item,) = parse_each([1], fails, lambda _: (None, "net\x1b[2J"))
    assert isinstance(item, UnreadItem)
    assert item.name == "net\x1b[2J", "as it is, to find the components it may be"
    assert "(net\\x1b[2J)" in item.error.message


@pytest.mark.rule("A6", "T7")
def test_the_protocols_tags_of_others_are_read_escaped() -> None:
    tags = ProtocolTags("terra\x1b[2Jform", False, "ls\u202e-b")
    (seen,) = _as_the_agent_reads(next(iter(installed())), protocol=tags).sightings(_Watched(), Query())
    assert isinstance(seen, Sighting)
    assert seen.protocol == ProtocolTags("terra\\x1b[2Jform", False, "ls\\u202e-b")


@pytest.mark.rule("A6")
@pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN)
def test_what_a_cloud_refuses_with_stands_escaped_in_every_message(text: str) -> None:
    error = Denied(f"the cloud said: {text}", code=text, request_id=text, cause=text)
    for said in (error.message, str(error), error.cause, error.code, error.request_id):
        assert hidden_character(said) is None
    assert hidden_character(link_message(f"waits for {text}", LinkStates())) is None


@pytest.mark.rule("A6", "S26")
@pytest.mark.parametrize("name", ["--url=https://elsewhere.example", "-x", "a; touch owned", "a\x1b[2J"])
def test_the_name_of_a_realm_is_one_word_and_no_option_of_the_command_that_accepts_it(name: str) -> None:
    words = shlex.split(Realm("aws", name, "default").accept("123").strip("`").replace(" …", " x"))
    assert visible(name) in words
    if name.startswith("-"):
        assert words[words.index(name) - 1] == "--"


# --- what people see


@pytest.mark.rule("A6")
@pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN)
def test_terminals_get_no_hidden_character(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert hidden_character(plain(text).plain.replace("\n", "")) is None
    assert json.loads(json_text({"a": [text]})) == {"a": [text]}
    emit({"name": text, text: "ü"}, Output.JSON)
    emit({"name": text, text: "ü"}, Output.YAML)
    out = capsys.readouterr().out
    assert hidden_character(out.replace("\n", "")) is None


@pytest.mark.rule("A6")
def test_what_needs_no_escape_is_printed_readably(capsys: pytest.CaptureFixture[str]) -> None:
    emit({"name": "naïve 🚀"}, Output.YAML)
    emit({"name": "naïve 🚀"}, Output.JSON)
    assert capsys.readouterr().out.count("naïve 🚀") == 2


@pytest.mark.rule("A6")
@pytest.mark.parametrize("text", SHOWN)
def test_markup_in_a_name_is_text(text: str) -> None:
    console = Console(width=200, force_terminal=True, color_system="truecolor")
    with console.capture() as captured:
        console.print(plain(text))
    assert captured.get().strip("\n") == text, "no colour, no link"


@pytest.mark.rule("A6")
@pytest.mark.parametrize("text", [text for text in HIDDEN.values() if text != HIDDEN["half a surrogate pair"]])
def test_pages_show_no_hidden_character(text: str) -> None:
    page = bytes(render("error.html", title="x", code=400, detail=text, visitor=None).body).decode()
    assert hidden_character("".join(char for char in page if char != "\n")) is None


# --- what is generated


@pytest.mark.rule("A6", "G14")
@pytest.mark.parametrize("text", [*HIDDEN.values(), *SHOWN, "'\"; import os #", "{{x}}", "${x}", "\\", "'''", '"""'])
def test_values_are_absorbed_as_escaped_literals(text: str) -> None:
    for value in (text, [text], {text: text}):
        written = Python().written(value)
        assert ast.literal_eval(written) == value
        assert hidden_character(written) is None
        assert json.loads(Json().written(value)) == value
        assert hidden_character(Json().written(value)) is None
        if text == HIDDEN["half a surrogate pair"]:
            continue  # which no YAML can hold
        for quote in ("", "'", '"'):
            text_in_yaml = Yaml().written(value, quote)
            assert yaml.load(f"a: {text_in_yaml}\n", Loader) == {"a": value}
            assert hidden_character(text_in_yaml) is None


# --- in the whole product


@pytest.mark.rule("A6", "S0", "S15", "S24")
@pytest.mark.parametrize("name", ["net\x9b2J", "net\u202exof"])
def test_a_network_renamed_to_control_characters_is_unreadable_and_no_second_one_is_made(
    world: World, name: str
) -> None:
    world.deploy("ls-a", vpc(), security_group())
    world.settle()
    before = world.component("ls-a", "net")
    world.person.ec2.create_tags(Resources=[before["resourceId"]], Tags=[{"Key": "Name", "Value": name}])
    world.cycle(3)
    after = world.component("ls-a", "net")
    assert after["status"] == before["status"] == "Active"
    assert repr(name) in after["message"]
    assert hidden_character(after["message"]) is None
    found = world.person.ec2.describe_vpcs(Filters=[{"Name": "tag:fractal-cloud-owner", "Values": ["ls-a"]}])
    assert len(found["Vpcs"]) == 1
    assert hidden_character(str(world.events("ls-a"))) is None
    world.person.ec2.create_tags(Resources=[before["resourceId"]], Tags=[{"Key": "Name", "Value": "net"}])
    world.settle()
    assert world.component("ls-a", "net")["message"] == "as declared"
    world.assert_safe()
