"""Databases: what is peculiar to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fractal_cloud.model.errors import Conflict, DeclarationError, Invalid
from fractal_cloud.model.sighting import Condition
from fractal_cloud.offers.aws.rds import AwsRdsPostgres, _condition, final_snapshot
from fractal_cloud.offers.aws.rds_settings import actual
from fractal_cloud.offers.offer import Query
from fractal_cloud.offers.registry import installed
from fractal_sandbox import Sandbox
from tests.offers.aws.conftest import Person, World
from tests.offers.aws.examples import EXAMPLES

EXAMPLE = EXAMPLES[AwsRdsPostgres]
DATABASE = EXAMPLE.components[-1]
OFFER = installed()[AwsRdsPostgres.type]


def test_the_password_is_made_and_kept_by_aws(world: World, sandbox: Sandbox) -> None:
    world.bring(EXAMPLE)
    [call] = sandbox.aws.calls.find(operation="CreateDBInstance")
    assert call.call.parameters["ManageMasterUserPassword"] is True
    assert "MasterUserPassword" not in call.call.parameters
    assert not any("password" in name.lower() for name in AwsRdsPostgres.parameter_fields())


def test_all_changes_travel_in_one_call_and_at_once(world: World, sandbox: Sandbox) -> None:
    world.bring(EXAMPLE)
    assert world.correct(DATABASE, **EXAMPLE.changes) == 1
    [call] = sandbox.aws.calls.find(operation="ModifyDBInstance")
    assert call.call.parameters["ApplyImmediately"] is True


@pytest.mark.parametrize(
    ("impossible", "text"),
    [
        ({"allocatedStorage": 20}, "allocatedStorage cannot shrink from 40 to 20 GiB"),
        ({"engineVersion": "15.9"}, "engineVersion cannot fall from '16.3' to '15.9'"),
    ],
)
@pytest.mark.rule("S18")
def test_what_can_never_be_is_refused_after_everything_else_is_done(
    world: World, impossible: dict[str, Any], text: str
) -> None:
    world.bring(EXAMPLE)
    world.correct(DATABASE, allocatedStorage=40)
    changes = {"allocatedStorage": 40, "backupRetentionPeriod": 3, **impossible}
    wanted = world.wanted(DATABASE, **changes)
    seen, drift = world.drift(DATABASE, **changes)
    OFFER.update(world.cloud(), seen, wanted, drift)
    seen, drift = world.drift(DATABASE, **changes)
    assert set(drift) == set(impossible)
    with pytest.raises(Invalid, match=text):
        OFFER.update(world.cloud(), seen, wanted, drift)


@pytest.mark.rule("G3", "S12")
def test_storage_that_aws_lets_grow_is_no_drift(world: World, person: Person) -> None:
    world.bring(EXAMPLE)
    rds = person("rds")
    change = {"DBInstanceIdentifier": "orders", "ApplyImmediately": True}
    rds.modify_db_instance(AllocatedStorage=35, **change)
    _, drift = world.drift(DATABASE)
    assert set(drift) == {"allocatedStorage"}
    rds.modify_db_instance(MaxAllocatedStorage=100, **change)
    _, drift = world.drift(DATABASE)
    assert set(drift) == {"maxAllocatedStorage"}
    _, drift = world.drift(DATABASE, maxAllocatedStorage=100)
    assert not drift
    _, drift = world.drift(DATABASE, maxAllocatedStorage=100, allocatedStorage=50)
    assert set(drift) == {"allocatedStorage"}


@pytest.mark.rule("G3")
def test_storage_that_may_grow_stops_growing_where_zero_is_declared(world: World, sandbox: Sandbox) -> None:
    world.bring(EXAMPLE)
    world.correct(DATABASE, maxAllocatedStorage=100)
    world.person("rds").modify_db_instance(DBInstanceIdentifier="orders", AllocatedStorage=35, ApplyImmediately=True)
    _, drift = world.drift(DATABASE, maxAllocatedStorage=100)
    assert not drift
    seen, drift = world.drift(DATABASE, maxAllocatedStorage=0)
    assert set(drift) == {"maxAllocatedStorage"}, "as long as it is on, what has grown is as declared"
    sandbox.aws.calls.clear()
    OFFER.update(world.cloud(), seen, world.wanted(DATABASE, maxAllocatedStorage=0), drift)
    [call] = sandbox.aws.calls.find(operation="ModifyDBInstance")
    assert call.call.parameters["MaxAllocatedStorage"] == 35
    _, drift = world.drift(DATABASE, maxAllocatedStorage=0)
    assert set(drift) == {"allocatedStorage"}, "it stays as large as it is"


_INSIGHTS = ("enablePerformanceInsights", "performanceInsightsKMSKeyId", "performanceInsightsRetentionPeriod")


@pytest.mark.rule("G3", "S12")
def test_performance_insights_switched_off_by_a_person_comes_back_whole(world: World, sandbox: Sandbox) -> None:
    world.bring(EXAMPLE)
    rds = world.person("rds")
    rds.modify_db_instance(DBInstanceIdentifier="orders", EnablePerformanceInsights=False, ApplyImmediately=True)
    _, drift = world.drift(DATABASE)
    assert set(drift) == {"enablePerformanceInsights"}, "what it would keep is not compared while it is off"
    sandbox.aws.calls.clear()
    assert world.correct(DATABASE) == 1
    [call] = sandbox.aws.calls.find(operation="ModifyDBInstance", actor="agent")
    sent = {name[0].upper() + name[1:]: DATABASE["parameters"][name] for name in _INSIGHTS}
    assert {name: call.call.parameters.get(name) for name in sent} == sent


def test_performance_insights_that_is_off_is_sent_without_settings(world: World) -> None:
    parameters = {**DATABASE["parameters"], "enablePerformanceInsights": False}
    world.bring(replace(EXAMPLE, components=[*EXAMPLE.components[:-1], {**DATABASE, "parameters": parameters}]))
    _, drift = world.drift(DATABASE, enablePerformanceInsights=False)
    assert not drift


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"maxAllocatedStorage": 20}, "maxAllocatedStorage must be above allocatedStorage"),
        ({"performanceInsightsRetentionPeriod": 94}, "94 is no period AWS takes"),
        ({"enablePerformanceInsights": None}, "declare enablePerformanceInsights too"),
        ({"enableCloudwatchLogsExports": ["audit"]}, "iam-db-auth-error"),
    ],
)
def test_what_aws_always_refuses_is_refused_before_deploy(changed: dict[str, Any], text: str) -> None:
    given = {name: value for name, value in {**DATABASE["parameters"], **changed}.items() if value is not None}
    with pytest.raises(DeclarationError, match=text):
        AwsRdsPostgres(id="orders", **given)


def test_a_new_major_version_is_asked_for_as_one(world: World, sandbox: Sandbox) -> None:
    world.bring(EXAMPLE)
    world.correct(DATABASE, engineVersion="17.1")
    [call] = sandbox.aws.calls.find(operation="ModifyDBInstance")
    assert call.call.parameters["AllowMajorVersionUpgrade"] is True


def test_a_declared_version_is_not_moved_by_aws_itself(world: World, sandbox: Sandbox) -> None:
    absent = ("autoMinorVersionUpgrade", "vpcSecurityGroups", "dbParameterGroupName")
    undeclared = {k: v for k, v in DATABASE["parameters"].items() if k not in absent}
    world.create({**DATABASE, "parameters": undeclared})
    [call] = sandbox.aws.calls.find(operation="CreateDBInstance")
    assert call.call.parameters["AutoMinorVersionUpgrade"] is False


def test_what_waits_to_be_applied_counts_as_arrived() -> None:
    instance = {
        "DBInstanceClass": "db.t4g.medium",
        "AllocatedStorage": 20,
        "PendingModifiedValues": {"DBInstanceClass": "db.t4g.large", "MultiAZ": True, "AllocatedStorage": None},
    }
    shown = actual(instance)
    assert (shown["dbInstanceClass"], shown["multiAZ"], shown["allocatedStorage"]) == ("db.t4g.large", True, 20)


def test_logs_on_their_way_count_as_arrived() -> None:
    moving = {"LogTypesToEnable": ["upgrade"], "LogTypesToDisable": ["postgresql"]}
    instance = {
        "EnabledCloudwatchLogsExports": ["postgresql", "iam-db-auth-error"],
        "PendingModifiedValues": {"PendingCloudwatchLogsExports": moving},
    }
    assert actual(instance)["enableCloudwatchLogsExports"] == ["iam-db-auth-error", "upgrade"]


@pytest.mark.rule("O15")
def test_a_deleted_database_leaves_a_snapshot_of_its_own(world: World) -> None:
    seen = world.bring(EXAMPLE)
    name = final_snapshot(seen)
    OFFER.delete(world.cloud(), seen)
    snapshots = world.person("rds").describe_db_snapshots()["DBSnapshots"]
    assert name in [one["DBSnapshotIdentifier"] for one in snapshots]


def test_a_second_database_of_the_same_name_leaves_a_snapshot_too(world: World) -> None:
    seen = world.bring(EXAMPLE)
    again = replace(seen, outputs={**seen.outputs, "dbiResourceId": "db-OTHER"})
    later = replace(seen, outputs={**seen.outputs, "instanceCreateTime": "2030-01-01T00:00:00+00:00"})
    assert len({final_snapshot(one) for one in (seen, again, later)}) == 3


@pytest.mark.rule("O15")
def test_deletion_protection_is_respected_and_named(world: World, sandbox: Sandbox) -> None:
    world.bring(EXAMPLE)
    world.correct(DATABASE, deletionProtection=True)
    with pytest.raises(Conflict, match="deletionProtection"):
        OFFER.delete(world.cloud(), world.seen["orders"])
    assert sandbox.aws.calls.count(operation="DeleteDBInstance") == 0


@pytest.mark.parametrize(
    ("status", "condition"),
    [
        ("available", Condition.SETTLED),
        ("stopped", Condition.SETTLED),
        ("creating", Condition.CREATING),
        ("deleting", Condition.DYING),
        ("modifying", Condition.CHANGING),
        ("backing-up", Condition.CHANGING),
        ("failed", Condition.BROKEN),
        ("incompatible-network", Condition.BROKEN),
        ("storage-full", Condition.BROKEN),
    ],
)
def test_what_the_status_means(status: str, condition: Condition) -> None:
    assert _condition(status) is condition


def test_databases_of_other_engines_are_not_ours_to_see(world: World) -> None:
    world.person("rds").create_db_instance(
        DBInstanceIdentifier="other",
        DBInstanceClass="db.t4g.medium",
        Engine="mysql",
        AllocatedStorage=20,
        MasterUsername="root",
        MasterUserPassword="not-a-secret",
    )
    assert list(OFFER.sightings(world.cloud(), Query())) == []
    assert OFFER.read(world.cloud(), "other") is None


def test_a_plan_says_what_interrupts_the_database() -> None:
    assert len(OFFER.warnings(["dbInstanceClass", "engineVersion", "multiAZ"])) == 2
