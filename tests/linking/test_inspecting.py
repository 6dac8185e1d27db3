"""What IAM returns only for one identity at a time is checked in turns: bounded calls, a bounded wait (L14, S23)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_cloud.offers.aws.link_storage import PATH
from fractal_sandbox import Sandbox
from tests.linking.test_aws_rules import LS, link
from tests.linking.test_aws_storage import BUCKET
from tests.linking.two_clouds import SECRETS, TwoClouds, two_clouds, workload

LINKS = 6
BUDGET = 4
CALLS = 2
ROUND = LINKS * CALLS // BUDGET


@pytest.fixture
def clouds(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[TwoClouds]:
    """Six workloads that use one bucket from another cloud, settled; two are inspected in each cycle."""
    with two_clouds(session_sandbox, tmp_path, TwoClouds, sweep_budget=BUDGET) as made:
        made.deploy(LS, BUCKET, *(workload(f"app-{n}", link("files")) for n in range(LINKS)))
        made.settle(at_most=30)
        made.cycle(ROUND)
        yield made


def keys(clouds: TwoClouds) -> dict[str, list[str]]:
    """The ids of all access keys, by user."""
    iam = clouds.person.client("iam")
    users = [user["UserName"] for user in iam.list_users(PathPrefix=PATH)["Users"]]
    listed = {user: iam.list_access_keys(UserName=user)["AccessKeyMetadata"] for user in users}
    return {user: [key["AccessKeyId"] for key in found] for user, found in listed.items()}


@pytest.mark.rule("L14", "S20", "S23")
def test_a_settled_cycle_inspects_no_more_than_the_budget_allows_and_all_in_turn(clouds: TwoClouds) -> None:
    inspected: list[str] = []
    for _ in range(ROUND):
        clouds.sandbox.aws.calls.clear()
        (result, _) = clouds.cycle()
        assert (result.writes, result.changes) == (0, 0)
        iam = clouds.sandbox.aws.calls.find("iam", actor="agent")
        assert sorted(call.operation for call in iam) == sorted(
            ["ListUsers", "ListRoles", *["ListAccessKeys", "GetUserPolicy"] * (BUDGET // CALLS)]
        )
        inspected += [str(call.call.parameters["UserName"]) for call in iam if call.operation == "ListAccessKeys"]
    assert sorted(inspected) == sorted(keys(clouds)), "each once in a round"


@pytest.mark.rule("L14")
def test_keys_deleted_by_hand_are_replaced_within_one_round(clouds: TwoClouds) -> None:
    before = keys(clouds)
    iam = clouds.person.client("iam")
    for user in list(before)[::2]:
        iam.delete_access_key(UserName=user, AccessKeyId=before[user][0])
    clouds.cycle(ROUND)
    clouds.settle(at_most=20)
    after = keys(clouds)
    assert [len(found) for found in after.values()] == [1] * LINKS
    assert [after[user] != before[user] for user in before] == [True, False] * (LINKS // 2)
    names = {item["metadata"]["name"][-12:] for item in clouds.objects(SECRETS)}
    assert names == {found[0][-12:].lower() for found in after.values()}, "the workloads have the new ones"
    clouds.assert_safe()


@pytest.mark.rule("L14")
def test_rights_taken_away_by_hand_come_back_and_a_key_switched_off_stays_off(clouds: TwoClouds) -> None:
    (first, second, *_), before = keys(clouds), keys(clouds)
    iam = clouds.person.client("iam")
    iam.delete_user_policy(UserName=first, PolicyName="bucket")
    iam.update_access_key(UserName=second, AccessKeyId=before[second][0], Status="Inactive")
    clouds.cycle(ROUND)
    clouds.settle(at_most=20)
    assert iam.list_user_policies(UserName=first)["PolicyNames"] == ["bucket"]
    assert keys(clouds) == before
    assert iam.list_access_keys(UserName=second)["AccessKeyMetadata"][0]["Status"] == "Inactive"


@pytest.mark.rule("S0")
def test_what_cannot_be_inspected_counts_as_unchanged(clouds: TwoClouds) -> None:
    clouds.sandbox.aws.knobs.fail(
        operation="ListAccessKeys", code="AccessDenied", status=403, actor="agent", times=None
    )
    before = keys(clouds)
    clouds.cycle(ROUND)
    assert keys(clouds) == before
