"""Fixes for moto's RDS."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import Any

from botocore import xform_name

from fractal_sandbox.aws.answer import Answer, AwsError
from fractal_sandbox.aws.moto_fixes.registry import FixContext, fix
from fractal_sandbox.aws.request import AwsRequest, with_parameters
from fractal_sandbox.aws.resources import Ref, exists, find, not_found, ref_from_arn
from fractal_sandbox.calls import Call
from fractal_sandbox.real_postgres import REAL_POSTGRES

__all__: list[str] = []

_PARKED = (
    "DBInstanceClass",
    "AllocatedStorage",
    "EngineVersion",
    "MultiAZ",
    "StorageType",
    "Iops",
    "StorageThroughput",
)
_INSIGHTS: dict[str, Any] = {
    "PerformanceInsightsKMSKeyId": "arn:aws:kms:us-east-1:123456789012:key/99999999-89ab-cdef-0123-456789abcdef",
    "PerformanceInsightsRetentionPeriod": 7,
}
"""Settings of Performance Insights, and what AWS takes where they are not given: a key of its own, a week."""


@fix("rds", "CreateDBInstance")
def give_it_a_real_database(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto's databases have an address where nobody answers; ours lead to a real PostgreSQL, where one was named."""
    _refuse_insights_that_are_off(call, is_on=False)
    answer = context.dispatch(_lowered(request, call))
    server = REAL_POSTGRES.get()
    database = find(Ref("db", call.parameters.get("DBInstanceIdentifier", "").lower(), call.region))
    if database is not None and answer.is_success:
        _set_insights(database, call)
    if database is not None and answer.is_success:
        answer = _with_an_id_of_its_own(answer, database)
    if server is None or database is None or not answer.is_success:
        return answer
    if not hasattr(type(database), "leads_to"):
        database.__class__ = _led(type(database))
    database.leads_to = server.hostname or "127.0.0.1"
    database.port = server.port or 5432
    if database.master_user_secret is not None:
        database.backend.secretsmanager.put_secret_value(
            database.master_user_secret.secret_arn,
            secret_string=json.dumps({"username": server.username, "password": server.password or ""}),
            secret_binary=None,
            client_request_token=uuid.uuid4().hex,
            version_stages=["AWSCURRENT"],
        )
    return answer


def _with_an_id_of_its_own(answer: Answer, database: Any) -> Answer:
    """moto gives all databases one and the same resource id; AWS gives each its own, which never returns."""
    shared = database.dbi_resource_id
    database.dbi_resource_id = f"db-{uuid.uuid4().hex[:26].upper()}"
    return replace(answer, body=answer.body.replace(shared.encode(), database.dbi_resource_id.encode()))


def _led(kind: type[Any]) -> type[Any]:
    """moto's class of databases, whose address is a property made up from the identifier, with one that can be set."""
    parts = {"leads_to": "", "address": property(lambda self: self.leads_to), "__module__": kind.__module__}
    return type(kind.__name__, (kind,), parts)


@fix("rds", "DescribeDBInstances", "StartDBInstance", "StopDBInstance", "RebootDBInstance")
def ignore_the_case_of_identifiers(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto distinguishes `Data` and `data`; AWS stores the identifier in lower case and finds it by any."""
    return context.dispatch(_lowered(request, call))


def _lowered(request: AwsRequest, call: Call) -> AwsRequest:
    given = call.parameters.get("DBInstanceIdentifier")
    if not given or given == given.lower():
        return request
    return with_parameters(request, {**call.parameters, "DBInstanceIdentifier": given.lower()})


@fix("rds", "ModifyDBInstance")
def park_changes_and_refuse_to_shrink(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto shrinks the storage of a database; AWS only lets it grow."""
    database = find(Ref("db", call.parameters.get("DBInstanceIdentifier", "").lower(), call.region))
    wanted = call.parameters.get("AllocatedStorage")
    if database is not None and wanted is not None and wanted < int(database.allocated_storage):
        raise AwsError(
            "InvalidParameterCombination",
            f"Invalid storage size: storage cannot shrink from {database.allocated_storage} to {wanted} GiB.",
        )
    if database is None:
        return context.dispatch(request)
    _refuse_insights_that_are_off(call, is_on=getattr(database, "performance_insights_enabled", False))
    answer = context.dispatch(with_parameters(request, _applied_now(database, dict(call.parameters))))
    if answer.is_success:
        _set_insights(database, call)
    return answer


def _refuse_insights_that_are_off(call: Call, *, is_on: bool) -> None:
    """moto ignores Performance Insights; AWS takes its settings only while it is on, or is switched on."""
    given = [name for name in _INSIGHTS if name in call.parameters]
    if given and not call.parameters.get("EnablePerformanceInsights", is_on):
        raise AwsError("InvalidParameterCombination", f"To set {given[0]}, enable Performance Insights.")


def _set_insights(database: Any, call: Call) -> None:
    """moto keeps nothing of Performance Insights and shows what stands on its database under these names."""
    is_on = call.parameters.get("EnablePerformanceInsights", getattr(database, "performance_insights_enabled", False))
    database.performance_insights_enabled = is_on
    for name, unasked in _INSIGHTS.items():
        held = getattr(database, xform_name(name), None)
        setattr(database, xform_name(name), call.parameters.get(name, held or unasked) if is_on else None)


def _applied_now(database: Any, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that a modification changes now, and park the rest on the database.

    moto ignores ApplyImmediately and changes everything at once. AWS parks what needs a maintenance window in
    PendingModifiedValues unless it is set, and applies what was parked when it is.
    """
    pending: dict[str, Any] = getattr(database, "pending_modified_values", {})
    if parameters.get("ApplyImmediately"):
        database.pending_modified_values = {}
        parameters = {**pending, **parameters}
    else:
        parked = {name: parameters.pop(name) for name in _PARKED if name in parameters}
        database.pending_modified_values = {**pending, **parked}
    return {**parameters, "DBInstanceIdentifier": parameters["DBInstanceIdentifier"].lower()}


@fix("rds", "DeleteDBInstance")
def demand_a_choice_about_the_final_snapshot(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto deletes without a word about a snapshot; AWS wants its name, or SkipFinalSnapshot, and not both."""
    skips = bool(call.parameters.get("SkipFinalSnapshot"))
    snapshot = call.parameters.get("FinalDBSnapshotIdentifier")
    if skips == bool(snapshot):
        raise AwsError(
            "InvalidParameterCombination",
            "FinalDBSnapshotIdentifier is required unless SkipFinalSnapshot is specified."
            if not skips
            else "FinalDBSnapshotIdentifier cannot be specified when SkipFinalSnapshot is specified.",
        )
    database = find(Ref("db", call.parameters.get("DBInstanceIdentifier", "").lower(), call.region))
    if database is not None and database.deletion_protection:
        raise AwsError(
            "InvalidParameterCombination",
            "Cannot delete protected DB Instance, please disable deletion protection and try again.",
        )
    return context.dispatch(_lowered(request, call))


@fix("rds", "AddTagsToResource", "RemoveTagsFromResource", "ListTagsForResource")
def refuse_unknown_databases(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto tags databases that do not exist; AWS refuses."""
    ref = ref_from_arn(call.parameters.get("ResourceName", ""))
    if ref is not None and not exists(ref):
        code, status, message = not_found(ref)
        raise AwsError(code, message, status)
    return context.dispatch(request)
