"""`fractal verify`: what is assumed of a cloud is tried on an account, differences are found, and nothing stays."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import threading
from typing import Any

import boto3
import pytest

from fractal_cloud.offers.registry import installed
from fractal_cloud.verifying.assumptions import ASSUMPTIONS, BY_ID, TRIED
from fractal_cloud.verifying.example import OWNER_OF_A_RUN, Place
from fractal_cloud.verifying.examples import PROVIDERS, examples_of
from fractal_sandbox import Sandbox
from fractal_sandbox.kubernetes import patching
from fractal_sandbox.rest import store
from scripts import certainty
from tests.verify.conftest import SCOPES, Verify, not_held

REGION = "eu-west-1"


def _vpcs() -> list[dict[str, Any]]:
    """The networks that people see, but for the one that AWS makes itself."""
    found = boto3.client("ec2", region_name=REGION).describe_vpcs()["Vpcs"]
    return [dict(one) for one in found if not one["IsDefault"]]


def _make_vpc(**tags: str) -> str:
    ec2 = boto3.client("ec2", region_name=REGION)
    made = ec2.create_vpc(CidrBlock="10.3.0.0/16")["Vpc"]["VpcId"]
    ec2.create_tags(Resources=[made], Tags=[{"Key": key.replace("_", "-"), "Value": tags[key]} for key in tags])
    return made


# --- all is as assumed


@pytest.mark.parametrize("provider", PROVIDERS)
def test_all_assumptions_hold_in_the_sandbox(verify: Verify, provider: str, account: Sandbox) -> None:
    ran = verify(provider, "--yes", "--output", "json")
    assert ran.code == 0, ran.err
    report = json.loads(ran.out)
    assert report["allHeld"]
    assert not report["leftBehind"]
    assert {one["type"] for one in report["notVerified"]}, "types without an example are named"
    tried = {one["type"] for one in report["findings"]}
    assert tried == {one.short_type for one in examples_of(provider).values() if not one.on_request}
    assert {one["assumption"] for one in report["findings"]} == {one.id for one in TRIED}
    created = [one for one in report["findings"] if one["assumption"] == "created"]
    assert all(one["requestIds"] for one in created if one["type"] != "AzureSubnet"), "the vendor's request ids"
    assert not account.aws.monitor.violations
    ran = verify(provider, "--clean")
    assert (ran.code, ran.out) == (0, "nothing is left there\n")


def test_the_table_names_every_assumption_and_what_is_not_verified(verify: Verify) -> None:
    ran = verify("aws", "--yes", "--type", "AwsVpc")
    assert ran.code == 0, ran.err
    assert all(one.id in ran.out for one in TRIED)
    assert "free" in ran.err, "prices are shown before anything is created"
    assert "12 assumptions held" in ran.err
    assert not _vpcs()


# --- differences are found


def test_a_tag_that_is_lost_at_creation_is_found(verify: Verify, account: Sandbox) -> None:
    lost = b"<key>managed-by</key>", b"<key>managed-bye</key>"
    account.aws.knobs.rewrite(lambda body: body.replace(*lost), operation="DescribeVpcs")
    ran = verify("aws", "--yes", "--type", "AwsVpc", "--output", "json")
    assert ran.code == 1
    assert list(not_held(ran)) == [("tags-in-call", "")]
    assert "'fractal-cloud-owner': 'fractal-verify-" in not_held(ran)["tags-in-call", ""]
    account.aws.knobs.reset()
    assert not _vpcs(), "also what lost its tags is deleted by the run that made it"


def test_a_value_that_is_echoed_otherwise_is_found(verify: Verify, account: Sandbox) -> None:
    other = b"pause:3.9", b"pause:3.8"
    account.kubernetes.knobs.rewrite(lambda body: body.replace(*other))
    ran = verify("kubernetes", "--yes", "--type", "KubernetesWorkload", "--output", "json")
    assert ran.code == 1
    assert not_held(ran) == {
        ("echoed", ""): "image is 'registry.k8s.io/pause:3.8', not 'registry.k8s.io/pause:3.9'",
    }
    verdicts = {one["assumption"]: one["verdict"] for one in json.loads(ran.out)["findings"]}
    assert verdicts["quiet"] == "not tried", "what comes after it was not tried, and is said so"


def test_an_ignored_precondition_is_found_on_azure(verify: Verify, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store.Draft, "require", lambda *_: None)
    ran = verify("azure", "--yes", "--type", "AzureNsg", "--output", "json")
    assert ran.code == 1
    assert list(not_held(ran)) == [("guarded-update", "securityRules")]
    assert "error: 1 of " in ran.err


def test_an_ignored_precondition_is_found_on_kubernetes(verify: Verify, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(patching._OPERATIONS, "test", lambda document, _: document)
    ran = verify("kubernetes", "--yes", "--type", "KubernetesService", "--output", "json")
    assert ran.code == 1
    assert list(not_held(ran)) == [("guarded-update", "port")]


def test_a_list_that_forgets_tags_is_found_on_azure(verify: Verify, account: Sandbox) -> None:
    def without_owner(body: bytes) -> bytes:
        return body.replace(b'"fractal-cloud-owner"', b'"fractal-cloud-other"') if b'"value"' in body[:20] else body

    account.azure.knobs.rewrite(without_owner)
    ran = verify("azure", "--yes", "--type", "AzureStorageAccount", "--output", "json")
    assert ran.code == 1
    assert ("listed", "") in not_held(ran)


def test_a_label_that_is_lost_at_creation_is_found_on_hetzner(verify: Verify, account: Sandbox) -> None:
    account.hetzner.knobs.rewrite(lambda body: body.replace(b'"managed-by"', b'"managed-bye"'))
    ran = verify("hetzner", "--yes", "--type", "HetznerFirewall", "--output", "json")
    assert ran.code == 1
    assert list(not_held(ran)) == [("tags-in-call", "")]
    account.hetzner.knobs.reset()
    assert verify("hetzner", "--clean").out == "nothing is left there\n"


def test_what_the_credentials_may_not_do_is_not_tried_and_no_difference(verify: Verify, account: Sandbox) -> None:
    account.aws.knobs.fail(operation="DeleteTags", code="UnauthorizedOperation", status=403)
    ran = verify("aws", "--yes", "--type", "AwsVpc")
    assert ran.code == 1
    assert "0 of 14 assumptions did not hold, 6 could not be tried" in ran.words
    assert "Denied" in ran.err
    assert not _vpcs()


# --- nothing is done unasked, and nothing stays


def test_nothing_is_created_without_an_answer(verify: Verify, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    ran = verify("aws")
    assert ran.code == 2
    assert "--yes" in ran.err
    assert not _vpcs()


def _interrupt(_: object) -> None:
    """End the run as a supervisor does; SIGINT may be ignored here, as in every job that a script has in the back."""
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGTERM)


def test_an_interrupted_run_deletes_what_it_made(verify: Verify, account: Sandbox) -> None:
    account.aws.knobs.before_call(_interrupt, operation="ModifyVpcAttribute", times=1)
    ran = verify("aws", "--yes", "--type", "AwsVpc")
    assert ran.code == 1
    assert "interrupted" in ran.err
    assert not _vpcs()


def test_what_a_killed_run_left_is_cleaned_and_nothing_else(
    verify: Verify, account: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging = account.aws.knobs.hang(operation="ModifyVpcAttribute")
    command = [sys.executable, "-m", "fractal_cloud.cli", "verify", "--provider", "aws", *SCOPES["aws"], "--yes"]
    run = subprocess.Popen([*command, "--type", "AwsVpc"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    account.aws.knobs.wait_until_hanging()
    run.send_signal(signal.SIGKILL)
    run.wait()
    account.aws.knobs.remove(hanging)
    others = [
        _make_vpc(managed_by="fractal-cloud", fractal_cloud_owner="ls-team-a"),
        _make_vpc(managed_by="fractal-cloud", fractal_cloud_owner="fractal-verify-mine"),
        _make_vpc(managed_by="terraform", fractal_cloud_owner="fractal-verify-0a1b2c"),
        _make_vpc(Name="fractal-verify-0a1b2c-vpc"),
    ]
    assert len(_vpcs()) == 5
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    asked = verify("aws", "--clean")
    assert asked.code == 2, "it shows the list, and asks first"
    assert "AwsVpc" in asked.out
    assert len(_vpcs()) == 5
    ran = verify("aws", "--clean", "--yes")
    assert ran.code == 0, ran.err
    assert "1 deleted" in ran.out
    assert "fractal-verify-0a1b2c-vpc" in ran.err, "what only has the name of a run is named, and left"
    assert sorted(one["VpcId"] for one in _vpcs()) == sorted(others)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--provider", "aws"), "needs --scope region=…"),
        (("--provider", "aws", "--scope", "region"), "Write it as --scope region=eu-west-1"),
        (("--provider", "aws", "--scope", "region=eu-west-1", "--type", "AwsEks"), "AwsEks: no example"),
        (("--provider", "aws", "--scope", "region=eu-west-1", "--type", "AwsVpk"), "AwsVpc"),
        (("--provider", "aws", "--scope", "region=eu-west-1", "--type", "AwsEc2Instance"), "--scope imageId=…"),
        (("--provider", "oci"), "aws, azure, hetzner, kubernetes"),
        (("--provider", "nowhere"), "installed are"),
    ],
)
def test_bad_usage_is_refused_with_what_to_do(
    fractal: Any, account: Sandbox, arguments: tuple[str, ...], said: str
) -> None:
    del account
    ran = fractal("verify", *arguments, "--yes")
    assert ran.code == 2
    assert said in ran.words


# --- the table of assumptions


def test_assumptions_have_one_id_each_and_sources_of_known_providers() -> None:
    assert len(BY_ID) == len(ASSUMPTIONS)
    known = set(installed().providers())
    assert all(one.sources and set(one.sources) <= known and set(one.verified) <= known for one in ASSUMPTIONS)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_examples_are_of_their_provider_and_change_what_can_change(provider: str) -> None:
    at = Place(dict.fromkeys(("region", "imageId", "resourceGroup", "location", "namespace"), "x"))
    assert OWNER_OF_A_RUN.match(at.name("any"))
    for component_type, example in examples_of(provider).items():
        offer = installed()[component_type]
        declared = example.declare(at)[-1]
        assert declared["type"] == component_type
        assert set(example.changes) <= set(declared["parameters"])
        assert not example.guarded or example.guarded in example.changes
        assert offer.provider == provider


def test_every_provider_has_its_table_and_none_is_stale(capsys: pytest.CaptureFixture[str]) -> None:
    assert {path.stem for path in certainty.pages()} == set(installed().providers())
    assert certainty.main(["--check"]) == 0, capsys.readouterr().err


def test_a_stale_table_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(certainty, "INTRODUCTION", "something else")
    assert certainty.main(["--check"]) == 1
    assert "docs/providers/aws.md is stale: run make docs" in capsys.readouterr().err
