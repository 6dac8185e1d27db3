"""The two halves of a link meet in published output fields, and nowhere else (L2–L5, L8, L11)."""

from __future__ import annotations

import pytest

from tests.links.world import World, database, link, workload

APP = workload("app", link("db", database="orders"))


@pytest.mark.rule("L3", "L4", "L9")
def test_a_workload_in_one_cloud_gets_its_own_role_in_a_database_of_another(links: World) -> None:
    links.deploy("ls-a", database(), APP)
    links.settle()
    told = links.fields("ls-a", "db")
    assert told["linkedCredentials.app.user"] == "app@orders"
    assert set(links.fields("ls-a", "app")) == {
        f"databaseLink.db.{k}" for k in ("endpoint", "user", "secretName", "received")
    }
    (secret, _) = links.west.secrets["toy-west:ls-a/app>db"]
    assert links.east.named("db").roles["app@orders"].password == secret
    assert links.west.named("app").actual["wiring"]["databaseLink.db.secretName"] == "toy-west:ls-a/app>db"
    assert not any(value == secret for value in told.values())
