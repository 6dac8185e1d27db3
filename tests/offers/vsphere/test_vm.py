"""What is special about machines: they are stopped to be resized, and known by their instance UUID."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.model.errors import Denied
from fractal_cloud.model.tags import NO_TAGS, stamp
from fractal_cloud.offers.call_context import CallContext, calling_as
from fractal_cloud.offers.items import all_sightings
from fractal_cloud.offers.offer import Query, Wanted
from fractal_cloud.offers.vsphere import policy
from fractal_cloud.offers.vsphere.cloud import Vsphere, VsphereSession
from fractal_cloud.offers.vsphere.credentials import credentials
from fractal_cloud.offers.vsphere.tags import words_of
from fractal_cloud.offers.vsphere.vm import VsphereVm, VsphereVmOffer
from fractal_sandbox import Sandbox
from fractal_sandbox.vsphere.cloud import VERSION
from fractal_sandbox.vsphere.simulator import why_not
from tests.offers.vsphere.examples import declaration
from tests.offers.vsphere.person import VspherePerson
from tests.offers.vsphere.worlds import WITH_TAGS, VsphereWorld, vsphere_world

LIVE_SYSTEM = "ls-machines"


def _operations(world: VsphereWorld, since: int) -> list[str]:
    return [write.operation for write in world.writes()[since:]]


@pytest.mark.rule("S12")
def test_a_machine_is_stopped_to_be_resized_and_started_again(world: VsphereWorld) -> None:
    world.deploy(LIVE_SYSTEM, declaration("box"))
    world.settle()
    since = len(world.writes())
    world.deploy(LIVE_SYSTEM, declaration("box", numCpus=8, memoryMb=4096))
    world.settle()
    assert _operations(world, since) == ["vim:PowerOffVM_Task", "vim:ReconfigVM_Task", "vim:PowerOnVM_Task"]
    [machine] = world.vsphere.named("box")
    assert (machine.config.hardware.numCPU, machine.config.hardware.memoryMB) == (8, 4096)
    assert machine.runtime.powerState == "poweredOn"
    world.assert_safe()


@pytest.mark.rule("S12")
def test_a_machine_that_somebody_stopped_is_started_and_one_declared_stopped_is_not(world: VsphereWorld) -> None:
    world.deploy(LIVE_SYSTEM, declaration("on"), declaration("off", state="stopped"))
    world.settle()
    [machine] = world.vsphere.named("on")
    world.vsphere.done(machine.PowerOffVM_Task())
    world.settle()
    states = [world.vsphere.named(name)[0].runtime.powerState for name in ("on", "off")]
    assert states == ["poweredOn", "poweredOff"]


@pytest.mark.rule("S15")
def test_a_machine_of_the_same_name_in_another_folder_is_another_one(world: VsphereWorld) -> None:
    world.vsphere.at("DC0/vm").CreateFolder("theirs")
    world.vsphere.create("box", "DC0/vm/theirs")
    world.deploy(LIVE_SYSTEM, declaration("box"))
    world.settle()
    assert world.status(LIVE_SYSTEM, "box") == "Active"
    assert len(world.vsphere.named("box")) == 1
    assert len(world.vsphere.at("DC0/vm/theirs").childEntity) == 1
    world.assert_safe()


@pytest.mark.rule("T2", "S17")
def test_tags_travel_in_the_create_call_where_the_vcenter_accepts_them(
    session_sandbox: Sandbox, tmp_path: Path
) -> None:
    if why_not():
        pytest.skip(why_not())
    with vsphere_world(session_sandbox, tmp_path, WITH_TAGS) as world:
        world.deploy(LIVE_SYSTEM, declaration("box"))
        world.settle()
        assert world.status(LIVE_SYSTEM, "box") == "Active"
        about_it = [write for write in world.writes() if write.component == "box"]
        assert [write.reason for write in about_it] == ["create", "deploy"], "nothing is tagged afterwards"
        [machine] = world.vsphere.named("box")
        tags = sorted(name for _, name, _ in world.vsphere.tags(machine))
        assert tags == [f"fractal-cloud-owner:{LIVE_SYSTEM}", "managed-by:fractal-cloud"]
        world.assert_safe()


@pytest.mark.rule("S17")
@pytest.mark.parametrize("vcenter", [VERSION, WITH_TAGS], indirect=True)
def test_a_creation_is_known_by_its_instance_uuid_and_the_journal_gets_the_task(
    vcenter: Sandbox, cloud: Vsphere
) -> None:
    offer = VsphereVmOffer()
    component = VsphereVm.from_parameters("box", declaration("box")["parameters"])
    component.name = "box"
    with calling_as(CallContext(LIVE_SYSTEM, "box", "create")) as act:
        made = offer.create(cloud, Wanted(component, LIVE_SYSTEM, token="first"), stamp(LIVE_SYSTEM))
    assert (
        [one.resource_id for one in offer.sightings(cloud, Query())]
        == [made.resource_id]
        == [offer.predicted_id("first")]
    )
    assert any(one.startswith("task-") for one in act.request_ids)
    assert offer.tags_follow(cloud) is (vcenter.vsphere.version == VERSION)
    assert made.protocol == (NO_TAGS if offer.tags_follow(cloud) else stamp(LIVE_SYSTEM))


@pytest.mark.rule("S17", "T8")
def test_what_permits_is_the_last_to_be_attached() -> None:
    ours = [("fractal-cloud", "fractal-cloud-owner:ls"), ("fractal-cloud", "managed-by:fractal-cloud")]
    assert words_of(stamp("ls", {"team": "shop"})) == [("team", "shop"), *ours]


def test_a_session_that_ran_out_is_opened_again(cloud: Vsphere, vcenter: Sandbox, person: VspherePerson) -> None:
    person.create("theirs")
    assert [one.machine.name for one in cloud.machines()] == ["theirs"]
    vcenter.vsphere._sessions.clear()
    assert [one.machine.name for one in cloud.machines()] == ["theirs"]


@pytest.mark.rule("S19", "O17")
def test_a_machine_that_was_moved_and_renamed_is_found_by_its_id_and_says_where_it_lies(
    cloud: Vsphere, person: VspherePerson
) -> None:
    machine = person.create("box")
    [seen] = all_sightings(VsphereVmOffer().sightings(cloud, Query()))
    archive = person.at("DC0/vm").CreateFolder("archive").CreateFolder("2026")
    person.done(archive.MoveIntoFolder_Task([machine]))
    person.done(machine.Rename_Task("old box"))
    assert list(VsphereVmOffer().sightings(cloud, Query())) == []
    moved = VsphereVmOffer().read(cloud, seen.resource_id)
    assert moved is not None
    assert moved.resource_id == seen.resource_id
    assert (moved.name, moved.moved_to) == ("old box", "folder DC0/vm/archive/2026")
    assert moved.outputs["inventoryPath"] == "/DC0/vm/archive/2026/old box"


@pytest.mark.rule("S19", "S15", "O17")
def test_a_machine_that_was_moved_to_another_folder_gets_no_twin(world: VsphereWorld) -> None:
    world.deploy(LIVE_SYSTEM, declaration("box"))
    world.settle()
    [machine] = world.vsphere.named("box")
    archive = world.vsphere.at("DC0/vm").CreateFolder("archive")
    world.vsphere.done(archive.MoveIntoFolder_Task([machine]))
    world.cycle(4)
    world.deploy(LIVE_SYSTEM, declaration("box"))
    world.cycle(4)
    assert world.vsphere.named("box") == []
    shown = world.component(LIVE_SYSTEM, "box")
    assert shown["status"] == "Failed"
    assert "was moved to folder DC0/vm/archive" in shown["message"]
    mutation = world.delete(LIVE_SYSTEM)["mutationId"]
    world.settle()
    ended = world.mutation(LIVE_SYSTEM, mutation)["components"]["box"]["message"]
    assert ended.startswith("left in the cloud")
    assert "folder DC0/vm/archive" in ended
    assert len(archive.childEntity) == 1
    world.assert_safe()


@pytest.mark.rule("T7")
def test_two_values_of_one_key_are_neither(cloud: Vsphere, person: VspherePerson) -> None:
    machine = person.create("theirs")
    person.attach(machine, "fractal-cloud", "managed-by:fractal-cloud")
    person.attach(machine, "fractal-cloud", "managed-by:somebody")
    [seen] = all_sightings(VsphereVmOffer().sightings(cloud, Query()))
    assert not seen.protocol.is_managed


def test_a_wrong_password_is_denied_with_advice(vcenter: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOVC_PASSWORD", "wrong")
    with pytest.raises(Denied, match="InvalidLogin"):
        VsphereSession().realms()


@pytest.mark.parametrize(
    ("environment", "base", "user"),
    [
        ({"GOVC_URL": "https://ann:p%40ss@vc.example/sdk"}, "https://vc.example", "ann"),
        ({"GOVC_URL": "vc.example", "GOVC_USERNAME": "ann", "GOVC_PASSWORD": "p@ss"}, "https://vc.example", "ann"),
        (
            {"VSPHERE_SERVER": "vc.example:8443", "VSPHERE_USER": "ann", "VSPHERE_PASSWORD": "p@ss"},
            "https://vc.example:8443",
            "ann",
        ),
    ],
)
def test_credentials_are_those_of_the_vendors_tools(
    environment: dict[str, str], base: str, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOVC_URL", "GOVC_USERNAME", "GOVC_PASSWORD", "VSPHERE_SERVER", "VSPHERE_USER", "VSPHERE_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    found = credentials()
    assert (found.base, found.user, found.password) == (base, user, "p@ss")
    assert "p@ss" not in repr(found)


def test_without_a_vcenter_it_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOVC_URL", "VSPHERE_SERVER"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(Denied, match="GOVC_URL"):
        credentials()


# Privileges with which vSphere's own guide («Defined Privileges») lets somebody get at more than the objects he has.
ESCALATING = (
    *("Authorization.", "Global.", "Host.", "Extension.", "Sessions.", "ScheduledTask.", "Cryptographer.", "Profile."),
    *(
        "VirtualMachine.GuestOperations.",
        "VirtualMachine.Interact.ConsoleInteract",
        "VirtualMachine.Interact.GuestControl",
    ),
    *(
        "VirtualMachine.Config.AddExistingDisk",
        "VirtualMachine.Config.RawDevice",
        "VirtualMachine.Config.HostUSBDevice",
    ),
    *("VirtualMachine.Provisioning.", "VirtualMachine.State.", "VApp.", "Datastore.Browse", "Datastore.FileManagement"),
    *("DVSwitch.", "DVPortgroup.", "Network.Config", "Resource.ColdMigrate", "Resource.HotMigrate", "System."),
)


@pytest.mark.rule("A7")
@pytest.mark.parametrize("privilege", ESCALATING)
def test_no_privilege_leads_to_more_rights(privilege: str) -> None:
    granted = [*policy._GLOBAL, *VsphereVmOffer.rights]
    assert not [one for one in granted if one.startswith(privilege)]
    assert privilege not in policy.policy()


def test_the_policy_names_every_right_once() -> None:
    text = policy.policy()
    rights: list[Any] = [*policy._GLOBAL, *VsphereVmOffer.rights]
    assert all(text.count(right) >= 1 for right in rights)
    assert len(rights) == len(set(rights))
