"""What a component says of a swept parameter that cannot be read: never silence, never a status, never a flood."""

from __future__ import annotations

from typing import Any

import pytest

from tests.world import REGION, World

DENIED: dict[str, Any] = {
    "operation": "GetBucketVersioning",
    "code": "AccessDenied",
    "status": 403,
    "actor": "agent",
    "times": None,
}
NOTE = "versioning could not be read: "
SEEN = "; shown as last seen"


def _deploy(world: World, **parameters: str) -> None:
    values = {"region": REGION, **parameters}
    world.deploy("ls-a", {"id": "log-bucket", "type": "Storage.PaaS.AwsS3", "provider": "aws", "parameters": values})


def _shown(world: World) -> dict[str, Any]:
    return world.component("ls-a", "log-bucket")


@pytest.fixture
def bucket(world: World) -> World:
    """A settled bucket whose versioning is declared."""
    _deploy(world, versioning="Enabled")
    world.settle()
    return world


@pytest.mark.rule("S23", "S0")
def test_a_swept_parameter_that_cannot_be_read_is_reported_once_and_until_it_can(bucket: World) -> None:
    before = _shown(bucket)
    rule = bucket.sandbox.aws.knobs.fail(**DENIED)
    first, *later = [bucket.cycle()[0].changes for _ in range(4)]
    shown = _shown(bucket)
    assert (first, later) == (1, [0, 0, 0]), "reported once, not in every cycle"
    assert shown["message"].startswith(f"{before['message']}; {NOTE}")
    assert "AccessDenied" in shown["message"]
    assert shown["message"].endswith(SEEN)
    assert shown["status"] == before["status"] == "Active"
    assert shown["outputFields"] == before["outputFields"]
    bucket.sandbox.aws.knobs.remove(rule)
    bucket.settle()
    assert _shown(bucket)["message"] == before["message"]


@pytest.mark.rule("S23", "G3")
def test_in_override_too_it_is_reported_and_the_drift_last_seen_stays(bucket: World) -> None:
    s3 = bucket.person.client("s3")
    s3.delete_bucket_tagging(Bucket="log-bucket")
    s3.put_bucket_versioning(Bucket="log-bucket", VersioningConfiguration={"Status": "Suspended"})
    bucket.settle()
    drift = {"versioning": {"declared": "Enabled", "actual": "Suspended"}}
    assert bucket.drift("ls-a", "log-bucket") == drift
    bucket.sandbox.aws.knobs.fail(**DENIED)
    bucket.settle()
    assert _shown(bucket)["status"] == "ManualOverride"
    assert NOTE in _shown(bucket)["message"]
    assert bucket.drift("ls-a", "log-bucket") == drift


@pytest.mark.rule("S23")
def test_what_is_no_longer_declared_is_no_longer_missed(bucket: World) -> None:
    bucket.sandbox.aws.knobs.fail(**DENIED)
    bucket.settle()
    assert NOTE in _shown(bucket)["message"]
    _deploy(bucket)
    bucket.settle()
    assert _shown(bucket)["message"] == "as declared"


@pytest.mark.rule("S23")
def test_what_was_never_seen_is_not_called_last_seen(world: World) -> None:
    world.person.client("s3").create_bucket(
        Bucket="log-bucket", CreateBucketConfiguration={"LocationConstraint": REGION}
    )
    world.sandbox.aws.knobs.fail(**DENIED)
    _deploy(world, versioning="Enabled")
    world.settle()
    shown = _shown(world)
    assert NOTE in shown["message"]
    assert shown["message"].endswith("; not compared until it can be read")


# --- what is read of many in one call

MACHINES = ("web-a", "web-b", "web-c")
VOLUMES: dict[str, Any] = {"operation": "DescribeVolumes", "actor": "agent"}
UNREAD = "rootVolumeSize could not be read: "


def _machine(name: str, **parameters: Any) -> dict[str, Any]:
    values = {"region": REGION, "imageId": "ami-12c6146b", "instanceType": "t3.micro", **parameters}
    return {"id": name, "type": "NetworkAndCompute.IaaS.AwsEc2Instance", "provider": "aws", "parameters": values}


@pytest.mark.rule("S23", "S20")
def test_the_root_volumes_of_all_machines_are_read_by_one_call_in_every_cycle(world: World) -> None:
    world.deploy("ls-a", *(_machine(name) for name in MACHINES))
    world.settle()
    assert not world.sandbox.aws.calls.count(**VOLUMES), "nobody declares any of it"
    world.deploy("ls-a", *(_machine(name, rootVolumeSize=8) for name in MACHINES))
    world.settle()
    world.sandbox.aws.calls.clear()
    assert world.cycle()[0].changes == 0
    assert world.sandbox.aws.calls.count(**VOLUMES) == 1
    world.cycle()
    assert world.sandbox.aws.calls.count(**VOLUMES) == 2, "also where nothing changed"


@pytest.mark.rule("S0", "S24", "S18")
def test_a_root_volume_that_cannot_be_read_is_reported_and_compared_once_it_can(world: World) -> None:
    world.deploy("ls-a", *(_machine(name) for name in MACHINES))
    world.settle()
    rule = world.sandbox.aws.knobs.fail(code="UnauthorizedOperation", status=403, times=None, **VOLUMES)
    sizes = {"web-a": 8, "web-b": 9}
    world.deploy("ls-a", *(_machine(name, rootVolumeSize=size) for name, size in sizes.items()), _machine("web-c"))
    world.settle()
    for name in sizes:
        shown = world.component("ls-a", name)
        assert UNREAD in shown["message"]
        assert shown["message"].endswith("; not compared until it can be read")
    assert world.component("ls-a", "web-c")["message"] == "as declared"
    world.sandbox.aws.knobs.remove(rule)
    world.settle()
    assert world.component("ls-a", "web-a")["message"] == "as declared"
    different = world.component("ls-a", "web-b")
    assert different["status"] == "Failed"
    assert "rootVolumeSize" in different["message"]
    assert UNREAD not in different["message"]
