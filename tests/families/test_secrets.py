"""Secrets in nested values: resolved where they are written, compared by digest, and shown to nobody (A8)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.families.world import World, queue, world

pytestmark = pytest.mark.rule("A8")
VALUE = "canary-of-a-nested-secret-7f3a"


def _bind(folder: Path, value: str) -> None:
    (folder / "the-value").write_text(value)
    text = f"secrets: {{deep: {{store: file, path: {folder / 'the-value'}, liveSystems: ['*']}}}}"
    (folder / "secrets.yaml").write_text(text)
    (folder / "secrets.yaml").chmod(0o600)


@pytest.fixture
def toy_world(tmp_path: Path) -> Iterator[World]:
    _bind(tmp_path, VALUE)
    with world(tmp_path) as made:
        yield made


LOGIN = {"User": "app", "Secret": {"$secret": "deep"}}
KEYS = {"OPEN": "plain", "TOKEN": {"$secret": "deep"}}


def _nested(**more: Any) -> dict[str, Any]:
    return queue(Login={"Deep": LOGIN}, Variables={"Values": KEYS}, **more)


def _readable(made: World) -> str:
    """Everything that anybody but the cloud can read."""
    paths = ("", "/components", "/components/jobs", "/components/jobs/journal", "/events?limit=200")
    shown = [made.api.get(f"/livesystems/shop{path}").text for path in paths]
    with made.app.state.store.read() as tx:
        raw = tx.connection.connection.driver_connection
        assert raw is not None
        stored = "\n".join(raw.iterdump())
    return "\n".join([*shown, stored])


def test_it_is_written_at_any_depth_and_stands_nowhere_else(toy_world: World) -> None:
    toy_world.deploy(_nested())
    toy_world.settle()
    made = toy_world.cloud.named("jobs").actual
    assert made["Login"] == {"Deep": {"User": "app", "Secret": VALUE}}
    assert made["Variables"] == {"Values": {"OPEN": "plain", "TOKEN": VALUE}}
    assert toy_world.status("shop", "jobs") == "Active"
    toy_world.cloud.named("jobs").actual["Variables"] = {"Values": {"OPEN": "plain", "TOKEN": "another"}}
    toy_world.settle()
    assert toy_world.cloud.named("jobs").actual["Variables"]["Values"]["TOKEN"] == VALUE
    assert VALUE not in _readable(toy_world)


def test_what_is_never_returned_is_written_again_once_its_value_is_another(toy_world: World) -> None:
    toy_world.deploy(_nested())
    toy_world.settle()
    before = toy_world.cloud.calls["update"]
    toy_world.restart_agent()
    toy_world.settle()
    assert toy_world.cloud.calls["update"] == before, "its digest says that it was written"
    _bind(toy_world.folder, "the-next-value-of-it")
    toy_world.settle()
    made = toy_world.cloud.named("jobs").actual
    assert made["Login"]["Deep"]["Secret"] == "the-next-value-of-it"
    assert made["Variables"]["Values"]["TOKEN"] == "the-next-value-of-it"
    assert "the-next-value-of-it" not in _readable(toy_world)


def test_in_override_it_is_said_that_it_differs_and_not_how(toy_world: World) -> None:
    toy_world.deploy(_nested())
    toy_world.settle()
    toy_world.cloud.break_glass("jobs")
    toy_world.cloud.named("jobs").actual["Variables"] = {"Values": {"OPEN": "plain", "TOKEN": "somebodys-own-token-99"}}
    toy_world.settle()
    (difference,) = toy_world.fields("jobs")["drift"].values()
    assert "(secret: differs)" in str(difference)
    assert "somebodys-own-token-99" not in _readable(toy_world)
