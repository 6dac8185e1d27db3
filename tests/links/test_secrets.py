"""No secret stands in an output field (L9): refused in every form, and sealed where it must travel."""

from __future__ import annotations

import base64
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import update

from fractal_cloud.control.store.schema import agents
from fractal_cloud.control.store.sealing_keys import RECENT
from fractal_cloud.model.declaration import Scalar
from fractal_cloud.model.errors import LinkError, LinkNotReady
from fractal_cloud.offers.link import InboundLink, Published, inbound
from fractal_cloud.offers.registry import Registry
from fractal_cloud.offers.secret import SealingKey, Secret, is_sealed, seal, without_secrets
from fractal_cloud.offers.secret_transfer import transfer_secret
from tests.links import east, west
from tests.links.link_handlers import Anything
from tests.links.world import World, database, link, workload
from tests.links.world import world as make_world

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----"
PLAIN = "s3cr3t/with+signs=="


def _handler(published: Published, secret: str = PLAIN) -> LinkError | None:
    def provide(link: InboundLink[Anything]) -> Published:
        link.keep_secret(secret)
        return published

    handler = inbound(source="*", target="Toy.X", link_type="xLink", settings=Anything)(provide)
    made = InboundLink("x", "app", "ls-a", "Toy.App", "east", "west", Anything(), cloud=None)
    try:
        handler(made)
    except LinkError as error:
        return error
    return None


@pytest.mark.rule("L9")
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("user", PLAIN),
        ("user", f"it is {PLAIN}, really"),
        ("user", quote(PLAIN, safe="")),
        ("user", base64.b64encode(PLAIN.encode()).decode()),
        ("endpoint", "postgres://app:hunter2@db.toy:5432/orders"),
        ("endpoint", "https://:hunter2@db.toy"),
        ("dsn", "host=db password=hunter2"),
        ("conf", '{"password": "hunter2"}'),
        ("cert", PEM),
        ("password", "x"),
        ("dbPassword", "x"),
        ("passphrase", "x"),
        ("secret", "x"),
        ("clientSecret", "x"),
        ("secretAccessKey", "x"),
        ("apiKey", "x"),
        ("accessToken", "x"),
        ("privateKey", "x"),
        ("credentials", "x"),
        ("sealed", "sealed:hunter2"),
        ("sealed", "sealed:" + base64.b64encode(b"too short to be a box").decode()),
    ],
)
def test_what_is_or_resembles_a_secret_is_not_published(key: str, value: Scalar) -> None:
    refused = _handler({key: value})
    assert refused is not None
    assert PLAIN not in str(refused)
    assert "put it into a store, publish its name (L9)" in str(refused)


@pytest.mark.rule("L9")
def test_a_secret_object_is_not_published() -> None:
    assert _handler({"user": Secret("abc")}) is not None  # type: ignore[dict-item]
    assert repr(Secret("abc")) == "Secret(…)"
    assert "abc" not in f"{Secret('abc')}"


@pytest.mark.rule("L9")
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("secretName", "aws-secrets-manager:eu-west-1:fractal-cloud/ls-a/db/app"),
        ("secretArn", "arn:aws:secretsmanager:eu-west-1:1:secret:db-AbCdEf"),
        ("accessKeyId", "AKIAIOSFODNN7EXAMPLE"),
        ("endpoint", "https://db.toy:5432/orders"),
        ("version", 3),
        ("sealed", seal(Secret(PLAIN), [SealingKey().public])),
    ],
    ids=["name", "ARN", "key id", "endpoint", "version", "sealed"],
)
def test_references_and_sealed_values_are_published(key: str, value: Scalar) -> None:
    assert _handler({key: value}) is None


@pytest.mark.rule("L3")
@pytest.mark.parametrize("key", ["a.b", "linkedCredentials.app.user", "creds_for_app", "User", "", "a b", "a/b"])
def test_a_key_is_one_word_so_no_handler_chooses_a_prefix(key: str) -> None:
    assert "a key is one word like 'secretName'" in str(_handler({key: "x"}))


@pytest.mark.rule("L3")
@pytest.mark.parametrize("value", [None, ["a"], {"a": 1}, b"a"])
def test_only_scalars_are_published(value: object) -> None:
    assert "is no text, number, true or false" in str(_handler({"user": value}))  # type: ignore[dict-item]


@pytest.mark.rule("L9")
def test_only_the_agent_it_is_sealed_to_can_open_a_value() -> None:
    key = SealingKey()
    box = seal(Secret(PLAIN), [key.public])
    assert is_sealed(box)
    assert PLAIN not in box
    assert key.open(box) == Secret(PLAIN)
    with pytest.raises(LinkNotReady):
        SealingKey().open(box)
    with pytest.raises(LinkNotReady, match="restart the agent"):
        seal(Secret(PLAIN), ["no key"])


@pytest.mark.rule("L9")
def test_what_a_handler_raises_is_reported_without_the_secrets_it_has_seen(tmp_path: Path) -> None:
    def leak(link: InboundLink[Anything]) -> Published:
        secret = link.new_secret().reveal()
        leaked.append(secret)
        raise RuntimeError(f"cannot log in with {secret} at postgres://app:{secret}@db")

    leaked: list[str] = []
    handler = inbound(source="Toy.WestWorkload", target="Toy.EastDatabase", link_type="xLink", settings=Anything)(leak)
    handler.revokes(lambda link: None)
    handler.verifies(lambda links: links)
    registry = Registry([east, west])
    registry.handlers.add(handler)
    with make_world(tmp_path, registry) as world:
        world.deploy("ls-a", database(), workload("app", link("db", database="x")))
        world.cycle()
        world.cycle()
        message = world.message("ls-a", "db")
        assert "leak failed: RuntimeError: cannot log in with … at postgres://…@db" in message
        journal = str(world.journal("ls-a", "db"))
        assert leaked
        assert not any(secret in message + journal for secret in leaked)
    assert without_secrets("a://u:p@h", []) == "a://…@h"


@pytest.mark.rule("L9")
def test_a_new_key_of_an_agent_changes_nothing_once_the_secret_has_arrived(links: World) -> None:
    links.deploy("ls-a", database(), workload("app", link("db", database="x")))
    links.settle()
    before = links.fields("ls-a", "db")
    password = links.east.named("db").roles["app@x"].password
    assert "linkedCredentials.app.sealed" not in before, "what has arrived is not left lying about"
    links.restart_agent("west")
    links.east.handler_runs.clear()
    links.settle()
    assert links.fields("ls-a", "db") == before
    assert links.east.named("db").roles["app@x"].password == password
    assert not links.east.handler_runs["grant"]


@pytest.mark.rule("L9")
def test_a_secret_that_has_not_arrived_is_sealed_anew_for_a_new_key(links: World) -> None:
    links.deploy("ls-a", database(), workload("app", link("db", database="x")))
    links.cycle("west")
    links.cycle("east")
    links.cycle("east")
    first = links.fields("ls-a", "db")["linkedCredentials.app.sealed"]
    links.restart_agent("west")
    links.cycle("west")
    assert links.status("ls-a", "app") == "Active", "a value sealed to an older key is no failure of the source"
    links.cycle("east")
    assert links.fields("ls-a", "db")["linkedCredentials.app.sealed"] != first
    links.settle()
    (secret, _) = links.west.secrets["toy-west:ls-a/app>db"]
    assert links.east.named("db").roles["app@x"].password == secret


@pytest.mark.rule("L9")
def test_while_no_agent_tends_the_source_nothing_is_sealed_and_nobody_fails(links: World) -> None:
    links.kill_agent("west")
    links.deploy("ls-a", database(), workload("app", link("db", database="x")))
    with links.app.state.store.write() as tx:
        tx.connection.execute(update(agents).values(deadline=tx.now - 2 * RECENT))
    links.cycle("east")
    links.cycle("east")
    assert "no agent tends 'app' yet" in links.message("ls-a", "db")
    assert links.status("ls-a", "db") == "Active"
    assert not links.east.roles("db")
    links.start_agent("west")
    links.settle()
    assert links.east.roles("db") == ["app@x"]


@pytest.mark.rule("L9", "C2")
def test_a_secret_made_with_nothing_remembered_never_has_the_version_of_an_older_one() -> None:
    """The source may still have that one: it would take the new one for received."""

    def made() -> Scalar:
        keys = (SealingKey().public,)
        fresh = InboundLink("db", "app", "ls-a", "Toy.App", "east", "west", Anything(), cloud=None, keys=keys)
        return transfer_secret(fresh, is_known=False, bring=lambda _: None)["version"]

    assert len({made() for _ in range(20)}) == 20
