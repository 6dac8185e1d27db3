"""What is peculiar to instances: disks that stay, remains that count as absent, interfaces that are read once."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.model.component import Component
from fractal_cloud.offers.oci.instance import OciInstanceOffer
from tests.offers.oci.declaring import instance, subnet, vcn
from tests.offers.oci.person import CORE
from tests.offers.oci.worlds import OciWorld


def settled(world: OciWorld, **parameters: Any) -> str:
    world.deploy("ls-a", vcn(), subnet(), instance(**parameters))
    world.survive()
    return str(world.component("ls-a", "machine")["resourceId"])


@pytest.mark.rule("O15")
def test_its_boot_volume_stays_when_it_is_deleted(world: OciWorld) -> None:
    machine = settled(world)
    world.deploy("ls-a", vcn(), subnet())
    world.survive()
    assert not world.cloud.resources("instance")
    [(_, volume)] = world.cloud.resources("boot-volume")
    assert volume["instanceId"] == machine


@pytest.mark.rule("S13", "S4")
def test_terminated_remains_count_as_absent(world: OciWorld) -> None:
    machine = settled(world)
    world.oci.delete(f"{CORE}/instances/{machine}")
    remains = world.oci.get(f"{CORE}/instances/{machine}")
    assert remains is not None
    assert remains["lifecycleState"] == "TERMINATED"
    world.survive()
    assert world.status("ls-a", "machine") == "Active"
    assert world.component("ls-a", "machine")["resourceId"] != machine
    world.assert_safe()


@pytest.mark.rule("S20")
def test_a_quiet_cycle_lists_each_type_once_and_reads_nothing_one_by_one(world: OciWorld) -> None:
    settled(world)
    world.cycle()
    world.cloud.calls.clear()
    world.cycle()
    asked = sorted(call.operation for call in world.cloud.calls.find(actor="agent"))
    assert asked == ["listInstances", "listSubnets", "listVcns"]


def test_its_address_and_subnet_come_from_its_first_interface(world: OciWorld) -> None:
    settled(world)
    assert world.output("ls-a", "machine", "privateIp") == "10.0.1.2"
    assert world.output("ls-a", "machine", "subnetId") == world.output("ls-a", "part", "subnetId")


@pytest.mark.rule("S12")
def test_metadata_is_written_with_the_keys_that_cannot_change(world: OciWorld) -> None:
    machine = settled(world, sshAuthorizedKeys="ssh-ed25519 AAAA me", userData="#!/bin/sh", metadata={"role": "web"})
    settled(world, sshAuthorizedKeys="ssh-ed25519 AAAA me", userData="#!/bin/sh", metadata={"role": "db"})
    found = world.oci.get(f"{CORE}/instances/{machine}")
    assert found is not None
    assert found["metadata"]["role"] == "db"
    assert found["metadata"]["ssh_authorized_keys"] == "ssh-ed25519 AAAA me"
    assert world.status("ls-a", "machine") == "Active"


@pytest.mark.rule("S13")
def test_a_slow_change_is_mutating_and_then_active(world: OciWorld) -> None:
    settled(world)
    knob = world.cloud.knobs.slow_modification(reads=6, kind="instance")
    world.deploy("ls-a", vcn(), subnet(), instance(state="stopped"))
    world.cycle()
    assert world.status("ls-a", "machine") == "Mutating"
    world.cloud.knobs.remove(knob)
    world.survive()
    assert world.status("ls-a", "machine") == "Active"
    assert world.output("ls-a", "machine", "lifecycleState") == "STOPPED"
    world.assert_safe()


def test_a_plan_says_what_reboots_the_machine() -> None:
    offer = OciInstanceOffer()
    assert issubclass(offer.component, Component)
    assert offer.warnings(["shape", "metadata"]) == ["changing shape reboots the machine"]
