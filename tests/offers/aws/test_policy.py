"""The IAM policy: it allows what the offers do, and changes only to what carries the tag."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

import fractal_cloud.offers.aws
from fractal_cloud.offers.aws.aws_offer import AwsOffer
from fractal_cloud.offers.aws.cloud import is_read
from fractal_cloud.offers.aws.descriptors import method
from fractal_cloud.offers.aws.policy import boundary, documents
from fractal_cloud.offers.aws.services import services
from fractal_cloud.offers.policy import PolicyOptions
from fractal_cloud.offers.registry import installed

CALL = re.compile(rf'"({"|".join(services())})",\s+"([a-z_0-9]+)"')
# What links call is granted by patterns, which their own tests try.
LINKED = ("iam", "secretsmanager")


def _statements() -> list[dict[str, Any]]:
    roles = ("arn:aws:iam::123456789012:role/eks",)
    options = PolicyOptions(with_links=True, with_history=True, pass_roles=roles, assume_roles=roles)
    return [one for document in documents(options) for one in document["Statement"]]


def _called() -> set[tuple[str, str]]:
    """The operations that stand in the offers' files, and those that are called by descriptor.

    The names of wire protocols look alike and are none.
    """
    folder = Path(fractal_cloud.offers.aws.__path__[0])
    files = [file for file in folder.glob("*.py") if file.name != "answers.py"]
    spelled = {found for file in files for found in CALL.findall(file.read_text()) if found[0] not in LINKED}
    described = {
        (service.name, operation)
        for service in services().values()
        if service.tagging is not None
        for operation in (service.tagging.add, service.tagging.remove)
    }
    shown = {
        (offer.resource.service.name, offer.resource.listing.operation)
        for offer in installed().of_provider("aws")
        if isinstance(offer, AwsOffer)
    }
    return spelled | {(service, method(operation)) for service, operation in described | shown}


def _action(service: str, operation: str) -> str:
    words = "".join(word.capitalize() for word in operation.split("_")).replace("Db", "DB")
    return services()[service].action(words)


def _allowing(action: str) -> list[dict[str, Any]]:
    return [one for one in _statements() if any(fnmatchcase(action, allowed) for allowed in one["Action"])]


def test_everything_the_offers_call_is_allowed() -> None:
    called = _called()
    assert len(called) > 40
    missing = {_action(*call) for call in called if not _allowing(_action(*call))}
    assert missing == set()


@pytest.mark.rule("S16")
def test_changes_are_tied_to_the_tag() -> None:
    written = re.compile(r":(Delete|Modify|Terminate|Stop|Start|Update|Revoke|Authorize|PutCluster)")
    changes = {_action(*call) for call in _called() if not is_read(call[1])}
    for action in sorted(one for one in changes if written.search(one) and not one.startswith("s3:")):
        if action == "ec2:DeleteTags":
            continue
        whole = [one for one in _allowing(action) if one["Sid"].startswith("Change")]
        assert whole, action
        assert all(one["Condition"]["StringEquals"] == {"aws:ResourceTag/managed-by": "fractal-cloud"} for one in whole)


@pytest.mark.rule("T1")
def test_tagging_of_what_is_not_managed_is_limited_to_the_three_keys() -> None:
    [later] = [one for one in _statements() if one["Sid"] == "TagProtocolOnly"]
    keys = {"managed-by", "fractal-cloud", "fractal-cloud-owner"}
    assert set(later["Condition"]["ForAllValues:StringEquals"]["aws:TagKeys"]) == keys
    assert later["Condition"]["Null"] == {"aws:TagKeys": "false"}
    [first] = [one for one in _statements() if one["Sid"] == "TagAtCreation"]
    assert "ec2:CreateAction" in first["Condition"]["StringEquals"]


@pytest.mark.rule("T1", "S16")
def test_the_users_own_tags_are_written_on_what_is_managed_and_never_taken_off() -> None:
    others = [one for one in _statements() if one["Sid"] in ("TagWithStamp", "TagManaged", "TagBuckets")]
    taken = {action for one in others for action in one["Action"] if "Untag" in action or "Remove" in action}
    assert (len(others), taken) == (3, set())
    [managed] = [one for one in others if one["Sid"] == "TagManaged"]
    assert managed["Condition"] == {"StringEquals": {"aws:ResourceTag/managed-by": "fractal-cloud"}}


def test_buckets_are_tied_to_the_tag_once_they_have_abac() -> None:
    def condition(found: list[dict[str, Any]]) -> Any:
        [buckets] = [one for document in found for one in document["Statement"] if one["Sid"] == "ChangeBuckets"]
        return buckets.get("Condition")

    assert condition(documents()) is None
    held = {"StringEquals": {"aws:ResourceTag/managed-by": "fractal-cloud"}}
    assert condition(documents(bucket_abac=True)) == held


def test_what_creates_and_what_changes_are_a_document_each() -> None:
    first, second = documents()
    assert {one["Sid"] for one in first["Statement"]} >= {"Read", "CreateStamped", "TagProtocolOnly"}
    assert {one["Sid"] for one in second["Statement"]} >= {"ChangeManaged", "ChangeBuckets", "ReadKeys"}


@pytest.mark.parametrize("document", [*documents(PolicyOptions(with_links=True)), boundary()])
def test_each_is_a_document_iam_accepts(document: dict[str, Any]) -> None:
    assert document["Version"] == "2012-10-17"
    names = [one["Sid"] for one in document["Statement"]]
    assert len(names) == len(set(names))
    assert all(name.isalnum() for name in names)
    assert len(json.dumps(document, separators=(",", ":"))) < 6144
