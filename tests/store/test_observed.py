"""Every field of the observed half goes from an agent's memory into the database and back, whoever added it (C4)."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_type_hints

from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import update

from fractal_cloud.control.store.records import records_of
from fractal_cloud.control.store.schema import components
from fractal_cloud.model.link import LinkState, LinkStates
from fractal_cloud.model.observed import (
    OBSERVED,
    ChangedBy,
    Found,
    Intent,
    Observed,
    ObservedColumns,
    Override,
    Refusal,
    Setback,
    blank_columns,
)
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.tracked import Interner, interned, to_change
from fractal_cloud.model.wire import Report, RequestKind
from tests.store.playing import Json, World, net

ROOT = Path(__file__).parents[2]
AT = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
UNLIKE_THE_DEFAULT: Mapping[object, object] = {
    Stance: Stance.OVERRIDE,
    Status: Status.MANUAL_OVERRIDE,
    str: "a text",
    str | None: "another text",
    int: 7,
    bool: True,
    Mapping[str, Any]: {"netId": "net-1", "ports": [80]},
    Mapping[str, str]: {"env.TOKEN": ""},
    tuple[str, ...]: ("other",),
    datetime | None: AT,
    Intent | None: Intent(id="i", at=AT, tagging="owed"),
    Override | None: Override(since=AT, by="ann", reason="incident", until=AT + timedelta(days=1), readopted_by="ann"),
    Refusal | None: Refusal(verb="update", message="no", since=AT, times=3),
    tuple[Setback, ...]: (Setback(parameter="size", at=[AT], given_up=True),),
    tuple[ChangedBy, ...]: (ChangedBy(parameter="size", seen=AT, state="known", by="ann", at=AT),),
    tuple[Found, ...]: (Found(lookup="{}", generation=2, values=["a", "b"]),),
    LinkStates: LinkStates(inbound={"a": LinkState(link_type="queue", other_type="T", other_provider="p")}),
}


def full() -> Observed:
    """An observed half of which every field differs from its default."""
    kinds = get_type_hints(Observed)
    values: dict[str, Any] = {name: UNLIKE_THE_DEFAULT[kinds[name]] for name in OBSERVED}
    return Observed(**values)


def there_and_back(world: World, memory: Observed) -> Observed:
    """Publish what is remembered as an agent does, over JSON, and return what the next agent gets."""
    world.deploy("ls-a", net())
    with world.store.write() as tx:  # a report alone can never say who asked for something, nor that it is restored
        asked = {"id": "r", "kind": RequestKind.BREAK.value, "by": "ann", "at": AT.isoformat(), "generation": 7}
        known = {"linkedCredentials.a.user": "x"}
        values: Json = {"restored": True, "generation": 7, "request": asked, "output_fields": known}
        tx.connection.execute(update(components).values(values))
    agent = world.agent()
    agent.claim()
    sent = agent.sent(to_change(agent.uid("ls-a", "net"), memory))
    parsed = Report.model_validate_json(sent.report.model_dump_json(by_alias=True))
    agent.report(*parsed.scopes[0].changes)
    world.clock.advance(3600)
    heir = world.agent("a2")
    heir.claim()
    return interned(heir.work[heir.uid("ls-a", "net")].memory, Interner())


def test_the_forms_of_the_observed_half_have_the_same_fields() -> None:
    assert sorted(item.name for item in fields(Observed)) == sorted(OBSERVED)
    assert {item.name for item in fields(ObservedColumns)} <= set(components.c.keys())


def test_what_an_agent_publishes_is_what_the_next_one_gets_field_by_field(world: World) -> None:
    memory, fresh = full(), Observed()
    assert [name for name in OBSERVED if getattr(memory, name) == getattr(fresh, name)] == []
    assert there_and_back(world, memory) == memory


def test_a_report_of_nothing_writes_what_a_new_row_has(world: World) -> None:
    assert there_and_back(world, Observed()) == Observed()
    with world.store.read() as tx:
        (record,) = records_of(tx, "ls-a")
    links: Json = {"links": {"inbound": {}, "outbound": {}}}
    assert {name: getattr(record, name) for name in OBSERVED} == blank_columns() | links


MIGRATION = """
import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "made_up", {head!r}, None, None


def upgrade() -> None:
    op.add_column("components", sa.Column("made_up", sa.Text(), nullable=False, server_default=""))
"""

GOES_THROUGH = """
import sys
from dataclasses import replace

import fractal_cloud
from fractal_cloud.control.store import open_store
from fractal_cloud.control.store.records import records_of
from tests.store.playing import CATALOG, Clock, World
from tests.store.test_observed import full, there_and_back

world = World(open_store(sys.argv[1], types_here=CATALOG, clock=(clock := Clock())), clock)
memory = replace(full(), made_up="carried")
assert there_and_back(world, memory) == memory
with world.store.read() as tx:
    (record,) = records_of(tx, "ls-a")
print(record.made_up, fractal_cloud.__file__)
"""


def test_a_new_field_needs_its_definition_and_a_migration_and_no_other_edit(tmp_path: Path) -> None:
    copy = tmp_path / "fractal_cloud"
    shutil.copytree(ROOT / "src" / "fractal_cloud", copy, ignore=shutil.ignore_patterns("__pycache__"))
    definition = copy / "model" / "observed.py"
    text, count = re.subn(
        r'^(    incarnation: str = ""\n)', r'\1    made_up: str = ""\n', definition.read_text(), flags=re.MULTILINE
    )
    assert count == 2, "one line for the form that rules work with, one for the form that is stored"
    definition.write_text(text)
    migrations = Config()
    migrations.set_main_option("script_location", str(copy / "control" / "store" / "migrations"))
    head = ScriptDirectory.from_config(migrations).get_current_head()
    versions = copy / "control" / "store" / "migrations" / "versions"
    (versions / "9999_made_up.py").write_text(MIGRATION.format(head=head))
    done = subprocess.run(
        [sys.executable, "-c", GOES_THROUGH, f"sqlite:///{tmp_path}/store.db"],
        env={"PYTHONPATH": f"{tmp_path}:{ROOT}", "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["carried", str(copy / "__init__.py")], done.stderr
