"""Cloud servers, whose tags nobody can change: what people say by tags elsewhere, the control plane remembers (G13)."""

from __future__ import annotations

from typing import Any
from urllib.error import HTTPError

import pytest
import yaml

from fractal_cloud.cli.discover import Written, discover
from fractal_cloud.offers.aruba.cloud_server import ArubaCloudServer
from tests.offers.aruba.examples import EXAMPLES
from tests.offers.aruba.person import ADDRESSES, DISKS, SERVERS, VPCS
from tests.offers.aruba.worlds import ArubaWorld

Declaration = dict[str, Any]
LS, ID = "ls-a", "server"
*PARENTS, SERVER = EXAMPLES[ArubaCloudServer].components
STAMPED = ["managed-by:fractal-cloud", "fractal-cloud-owner:ls-a"]
READOPT = f"`fractal glass {LS} {ID} --readopt`"


def server(**parameters: Any) -> Declaration:
    return {**SERVER, "parameters": {**SERVER["parameters"], **parameters}}


def deploy(world: ArubaWorld, *components: Declaration, live_system: str = LS, **more: Any) -> None:
    world.deploy(live_system, *PARENTS, *components, **more)
    world.survive()


def shown(world: ArubaWorld, live_system: str = LS) -> Declaration:
    found: Declaration = world.component(live_system, ID)
    return found


def uri(world: ArubaWorld) -> str:
    return str(shown(world)["resourceId"])


def state(world: ArubaWorld) -> str:
    item = world.aruba.get(uri(world))
    assert item is not None
    return str(item["status"]["state"])


def writes(world: ArubaWorld) -> list[str]:
    return [write.operation for write in world.writes() if write.component == ID]


def ask(world: ArubaWorld, action: str, **more: Any) -> None:
    answer = world.glass(LS, ID, action, **more)
    assert answer.status_code == 202, answer.text
    assert answer.json()["tagsFrozen"] == [ID]


def taken_over(world: ArubaWorld, **more: Any) -> None:
    """A server that somebody took over and stopped."""
    deploy(world, server())
    ask(world, "break", **more)
    world.cycle()
    world.aruba.act(uri(world), "poweroff")
    world.cycle()


def made_by_hand(world: ArubaWorld, *tags: str) -> str:
    """A server that a person made, under the name that the component has."""
    vpc = world.aruba.create(VPCS, "theirs")
    net = world.aruba.create(f"{vpc}/subnets", "theirs", type="Basic")
    group = world.aruba.create(f"{vpc}/securityGroups", "theirs")
    disk = world.aruba.create(
        DISKS, "theirs", sizeGb=20, type="Standard", billingPeriod="Hour", bootable=True, image="LU22-001"
    )
    return world.aruba.create(
        SERVERS,
        ID,
        tags,
        dataCenter="ITBG-1",
        vpc={"uri": vpc},
        flavorName="CSO2A4",
        bootVolume={"uri": disk},
        subnets=[{"uri": net}],
        securityGroups=[{"uri": group}],
    )


@pytest.mark.rule("G13", "G3", "S11")
def test_the_glass_is_broken_in_memory_and_nothing_is_written_to_the_cloud(world: ArubaWorld) -> None:
    until = "2999-01-01T00:00:00Z"
    taken_over(world, reason="it smokes", until=until)
    before = writes(world)
    world.cycle(3)
    component = shown(world)
    assert (component["status"], component["stance"], component["request"]) == ("ManualOverride", "override", None)
    override = component["override"]
    assert (override["by"], override["reason"], override["until"][:10]) == ("admin", "it smokes", until[:10])
    assert READOPT in component["message"]
    assert component["outputFields"]["drift"] == {"state": {"declared": "running", "actual": "stopped"}}
    assert writes(world) == before == ["compute:createCloudServer"]
    assert world.aruba.tags(uri(world)) == STAMPED
    world.assert_safe()


@pytest.mark.rule("G6", "G8", "S9", "S17")
def test_it_is_handed_back_with_its_drift_and_managed_only_once_that_is_gone(world: ArubaWorld) -> None:
    taken_over(world)
    deploy(world, server())
    assert (shown(world)["status"], state(world)) == ("ManualOverride", "Stopped"), "a deploy changes nothing"
    ask(world, "readopt")
    world.cloud.knobs.slow_modification(reads=3)
    world.cycle()
    asked = shown(world)
    assert (asked["status"], asked["stance"], asked["request"]) == ("ReconcileRequested", "override", None)
    assert asked["override"]["readoptedBy"] == "admin"
    world.cycle()
    assert shown(world)["stance"] == "override", "the cloud is still at work on it"
    world.survive()
    done = shown(world)
    assert (done["status"], done["stance"], done["override"]) == ("Active", "managed", None)
    assert state(world) == "Running"
    assert "drift" not in done["outputFields"]


@pytest.mark.rule("G8")
def test_what_was_kept_by_declaring_it_is_handed_back_without_a_write(world: ArubaWorld) -> None:
    taken_over(world)
    deploy(world, server(state="stopped"))
    before = writes(world)
    ask(world, "readopt")
    world.survive()
    assert (shown(world)["status"], shown(world)["stance"]) == ("Active", "managed")
    assert writes(world) == before


@pytest.mark.rule("S9", "S17", "G13")
def test_breaking_it_again_ends_a_handing_back_that_is_under_way(world: ArubaWorld) -> None:
    taken_over(world)
    ask(world, "readopt")
    world.cycle()
    assert shown(world)["override"]["readoptedBy"] == "admin"
    ask(world, "break", reason="not yet")
    before = writes(world)
    world.cycle(3)
    component = shown(world)
    assert (component["status"], component["override"].get("readoptedBy")) == ("ManualOverride", None)
    assert component["override"]["reason"] == "not yet"
    assert writes(world) == before
    assert state(world) == "Stopped"


@pytest.mark.rule("G7", "S11", "S11a")
def test_managed_by_alone_does_not_readopt_though_the_live_system_says_so(world: ArubaWorld) -> None:
    world.deploy(LS, *PARENTS, server(), readoption="tag")
    world.survive()
    ask(world, "break")
    world.cycle(3)
    assert shown(world)["status"] == "ManualOverride", "the tag was never off, so it says nothing"


@pytest.mark.rule("S16", "S17", "C7")
def test_a_break_between_intent_and_write_wins_and_one_within_the_call_is_reported(world: ArubaWorld) -> None:
    deploy(world, server())
    world.aruba.act(uri(world), "poweroff")
    world.before_next_write(lambda: ask(world, "break"))
    world.cycle()
    entry = world.api.get(f"/livesystems/{LS}/components/{ID}/journal").json()["items"][0]
    assert (entry["verb"], entry["outcome"]) == ("update", "abandoned")
    world.cycle()
    assert (shown(world)["status"], state(world)) == ("ManualOverride", "Stopped")
    ask(world, "readopt")
    world.survive()

    world.aruba.act(uri(world), "poweroff")
    world.cloud.knobs.before_call(lambda _: ask(world, "break"), operation="poweron*", actor="agent")
    world.cycle()
    world.cloud.knobs.reset()
    world.cycle()
    assert shown(world)["status"] == "ManualOverride"
    races = [one for one in world.api.get(f"/livesystems/{LS}/events").json()["items"] if one["kind"] == "RaceLost"]
    assert ["while a write (drift) was on its way" in one["message"] for one in races] == [True]
    world.assert_safe()


@pytest.mark.rule("O10", "G13")
def test_breaking_the_glass_saves_it_from_its_own_deletion(world: ArubaWorld) -> None:
    deploy(world, server())
    where = uri(world)
    world.cloud.knobs.fail(operation="deleteCloudServer", times=1, actor="agent", status=400, code="BadRequest")
    world.deploy(LS, *PARENTS)
    world.cycle()
    assert shown(world)["status"] in ("Deleting", "Failed")
    ask(world, "break")
    world.survive()
    assert world.find_component(LS, ID) is None
    assert world.aruba.get(where) is not None, "it was deleted all the same"
    deploy(world, server(state="stopped"))
    component = shown(world)
    assert (component["status"], component["stance"]) == ("ManualOverride", "override"), "it is remembered where it was"
    assert component["resourceId"] == where


@pytest.mark.rule("S6a", "G10", "O10")
@pytest.mark.parametrize("tags", [(), ("managed-by:fractal-cloud",), ("managed-by:terraform",), STAMPED[1:]])
def test_a_server_that_was_made_without_our_tags_is_only_read(world: ArubaWorld, tags: tuple[str, ...]) -> None:
    theirs = made_by_hand(world, *tags)
    deploy(world, server())
    component = shown(world)
    assert (component["status"], component["stance"]) == ("ExternallyManaged", "imported")
    assert "can never be adopted" in component["message"]
    assert component["resourceId"] == theirs
    for action in ("break", "readopt"):
        assert world.glass(LS, ID, action).status_code == 409 or _is_refused(world), action
    deploy(world)
    assert world.find_component(LS, ID) is None
    assert world.aruba.get(theirs) is not None
    assert writes(world) == []
    world.assert_safe()


def _is_refused(world: ArubaWorld) -> bool:
    world.cycle(2)
    return shown(world)["status"] == "ExternallyManaged" and shown(world)["request"] is None


@pytest.mark.rule("O9", "S11b", "G10")
def test_what_a_person_stamped_for_us_at_its_creation_waits_for_somebody_to_hand_it_over(world: ArubaWorld) -> None:
    made_by_hand(world, *STAMPED, "fractal-cloud:reconcile")
    deploy(world, server())
    component = shown(world)
    assert (component["status"], component["stance"]) == ("ManualOverride", "override")
    assert READOPT in component["message"]
    assert writes(world) == []


@pytest.mark.rule("S6", "O3")
def test_another_ones_server_stays_another_ones(world: ArubaWorld) -> None:
    deploy(world, server())
    deploy(world, server(state="stopped"), live_system="ls-b")
    component = shown(world, "ls-b")
    assert component["status"] == "ExternallyManaged"
    assert component["message"].startswith("owned by 'ls-a', for good, because its tags are frozen")
    world.delete("ls-b")
    world.survive()
    assert (shown(world)["status"], state(world)) == ("Active", "Running")


@pytest.mark.rule("C2", "S11b")
def test_a_broken_glass_is_still_respected_when_the_memory_of_it_is_lost(world: ArubaWorld) -> None:
    taken_over(world)
    world.close()
    world.open_control_plane("another.db")
    before = writes(world)
    deploy(world, server())
    world.cycle(3)
    component = shown(world)
    assert (component["status"], state(world)) == ("ManualOverride", "Stopped")
    assert READOPT in component["message"]
    assert component["outputFields"]["drift"] == {"state": {"declared": "running", "actual": "stopped"}}
    assert writes(world) == before
    world.delete(LS)
    world.survive()
    assert [one["metadata"]["name"] for one in world.aruba.list(SERVERS)] == [ID], "deleted though nobody remembers"


@pytest.mark.rule("S12")
def test_an_elastic_ip_and_other_disks_come_and_go(world: ArubaWorld) -> None:
    address = world.aruba.create(ADDRESSES, "public")
    deploy(world, server(elasticIp=address, dataVolumes=["more"]))
    fields = shown(world)["outputFields"]
    assert fields["elasticIp"] == address
    assert fields["dataVolumes"] == [world.output(LS, "more", "blockStorageUri")]
    other = world.aruba.create(ADDRESSES, "other")
    deploy(world, server(elasticIp=other, dataVolumes=[]))
    assert (shown(world)["status"], shown(world)["outputFields"]["elasticIp"]) == ("Active", other)
    assert shown(world)["outputFields"]["dataVolumes"] == []


@pytest.mark.rule("O15", "S1")
def test_the_boot_volume_stays_when_the_server_goes(world: ArubaWorld) -> None:
    deploy(world, server())
    boot = world.output(LS, "boot", "blockStorageUri")
    deploy(world)
    assert world.aruba.list(SERVERS) == []
    assert world.aruba.get(str(boot)) is not None


@pytest.mark.rule("T8")
def test_in_the_plain_style_it_is_stamped_at_creation_too(plain_world: ArubaWorld) -> None:
    def moved(one: Declaration) -> Declaration:
        if "project" not in one["parameters"]:
            return one
        return {**one, "parameters": {**one["parameters"], "project": "strict"}}

    made = server()
    del made["parameters"]["keyPair"]
    plain_world.deploy(LS, *map(moved, PARENTS), made)
    plain_world.survive()
    assert shown(plain_world)["status"] == "Active"
    tags = plain_world.aruba.tags(uri(plain_world))
    assert tags[0] == "managed-by-fractal-cloud"
    assert tags[1].startswith("fc-owner-")


@pytest.mark.rule("T8")
def test_the_vendor_has_no_call_that_would_change_a_tag(world: ArubaWorld) -> None:
    deploy(world, server())
    with pytest.raises(HTTPError) as refused:
        world.aruba.put(uri(world), tags=["other-tag"])
    with refused.value as error:
        assert error.code == 405
    assert world.aruba.tags(uri(world)) == STAMPED


@pytest.mark.rule("G11", "S6a")
def test_what_is_discovered_can_be_deployed_and_says_that_it_is_only_read(
    world: ArubaWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = made_by_hand(world)
    discover("aruba", location=["ITBG-Bergamo"], kind=["ArubaCloudServer"], output=Written.YAML)
    written = capsys.readouterr().out
    assert "its tags are frozen and not ours: it can never be adopted" in written, written
    declared = yaml.safe_load(written)
    world.deploy("discovered", *declared["components"])
    world.survive()
    found = world.component("discovered", ID)
    assert (found["status"], found["resourceId"]) == ("ExternallyManaged", theirs)
    assert "drift" not in found["outputFields"]
    assert writes(world) == []
