"""What the sandbox's vCenter repairs of the simulator, and that its monitor sees what the agent does."""

from __future__ import annotations

from typing import Any

import pytest
from pyVmomi import vim, vmodl

from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.call_context import CallContext, calling_as
from fractal_cloud.offers.vsphere.cloud import VsphereSession
from fractal_cloud.offers.vsphere.machines import Making
from fractal_cloud.offers.vsphere.tags import CATEGORY
from fractal_sandbox import Sandbox, agent_env
from fractal_sandbox.vsphere.cloud import VERSION
from fractal_sandbox.vsphere.simulator import why_not
from tests.offers.vsphere.examples import DATASTORE, FOLDER, POOL
from tests.offers.vsphere.person import VspherePerson

OWNER = "fractal-cloud-owner"
MANAGED = "managed-by:fractal-cloud"
OURS = [(CATEGORY, f"{OWNER}:ls"), (CATEGORY, MANAGED)]
MARK = "5b0b7a4e-0c53-5d5e-9f43-1a3d6c0c9e71"
pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "never")


@pytest.fixture
def person(session_sandbox: Sandbox) -> VspherePerson:
    session_sandbox.vsphere.version = VERSION
    session_sandbox.vsphere.reset()
    return VspherePerson(session_sandbox.url)


def _agent(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, value in agent_env(sandbox.url).items():
        monkeypatch.setenv(name, value)
    session = VsphereSession()
    return session.at(Scope("vsphere", session.realms()[""], "DC0/vm"))


def test_a_name_is_taken_once_in_a_folder(person: VspherePerson) -> None:
    person.create("box")
    with pytest.raises(vim.fault.DuplicateName):
        person.create("box")


def test_sizes_do_not_change_while_a_machine_runs(person: VspherePerson) -> None:
    machine = person.create("box")
    person.done(machine.PowerOnVM_Task(None))
    with pytest.raises(vim.fault.InvalidPowerState):
        machine.ReconfigVM_Task(vim.vm.ConfigSpec(memoryMB=64))


def test_lists_come_in_pages(person: VspherePerson, session_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        person.create(f"box-{number}")
    session_sandbox.vsphere.knobs.page_size = 2
    cloud = _agent(session_sandbox, monkeypatch)
    assert sorted(one.machine.name for one in cloud.machines()) == [f"box-{number}" for number in range(5)]
    assert session_sandbox.vsphere.calls.count(operation="listMachinesContinued", actor="agent") == 2


@pytest.mark.rule("S7")
def test_a_write_of_the_agent_to_what_it_does_not_manage_is_a_violation(
    person: VspherePerson, session_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = person.create("theirs")
    cloud = _agent(session_sandbox, monkeypatch)
    list(cloud.machines())
    with calling_as(CallContext("ls", "box", "drift")):
        cloud.reconfigure(machine._moId, annotation="ours now")
    [found] = session_sandbox.vsphere.monitor.violations
    assert found.rule == "S7"
    assert machine.config.annotation == "ours now"


def _made(cloud: Any) -> Any:
    """A machine made by the agent's own call, without tags."""
    making = Making("box", MARK, POOL, DATASTORE, None, 1, 32, 1, "otherGuest", "")
    with calling_as(CallContext("ls", "box", "create")):
        cloud.create(making, "ls", OURS)
    [one] = cloud.machines()
    return one.machine


@pytest.mark.rule("S17", "T2", "T3")
def test_a_creation_is_tagged_once_and_with_its_own_tags_alone(
    person: VspherePerson, session_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = session_sandbox.vsphere.monitor
    cloud = _agent(session_sandbox, monkeypatch)
    machine = _made(cloud)
    with calling_as(CallContext("ls", "box", "tagging")):
        cloud.attach(machine.moref, OURS)
    assert not monitor.violations
    for _, _, tag in person.tags(person.machine(MARK)):
        person.detach(person.machine(MARK), tag)
    list(cloud.machines())
    with calling_as(CallContext("ls", "box", "tagging")):
        cloud.attach(machine.moref, OURS)
    assert [one.rule for one in monitor.violations] == ["T3"], "a second time undoes what a person did"


@pytest.mark.rule("S17", "T3", "T4")
@pytest.mark.parametrize(
    ("names", "reason", "rule"),
    [
        ([f"{OWNER}:ls", MANAGED, "fractal-cloud:reconcile"], "tagging", "T2"),
        ([f"{OWNER}:ls-other", MANAGED], "tagging", "T2"),
        ([f"{OWNER}:ls", MANAGED], "drift", "T3"),
    ],
)
def test_a_creation_is_tagged_by_nothing_else_and_for_no_other_reason(
    person: VspherePerson,
    session_sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    names: list[str],
    reason: str,
    rule: str,
) -> None:
    cloud = _agent(session_sandbox, monkeypatch)
    machine = _made(cloud)
    with calling_as(CallContext("ls", "box", reason)):
        cloud.attach(machine.moref, [(CATEGORY, name) for name in names])
    assert [one.rule for one in session_sandbox.vsphere.monitor.violations] == [rule]


@pytest.mark.rule("S17", "T3")
def test_what_somebody_else_made_is_not_tagged_as_a_creation(
    person: VspherePerson, session_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = person.create("theirs")
    cloud = _agent(session_sandbox, monkeypatch)
    list(cloud.machines())
    with calling_as(CallContext("ls", "box", "tagging")):
        cloud.attach(machine._moId, OURS)
    assert [one.rule for one in session_sandbox.vsphere.monitor.violations] == ["T3"]


def test_a_machine_that_is_being_made_shows_its_name_alone_and_accepts_no_task(
    person: VspherePerson, session_sandbox: Sandbox
) -> None:
    session_sandbox.vsphere.knobs.slow_creation(seconds=600)
    files = vim.vm.FileInfo(vmPathName=f"[{DATASTORE}]")
    spec = vim.vm.ConfigSpec(name="box", instanceUuid=MARK, numCPUs=1, memoryMB=32, guestId="otherGuest", files=files)
    task = person.at(FOLDER).CreateVM_Task(spec, person.at(POOL))
    assert (task.info.state, task.info.result) == ("running", None)
    [machine] = person.named("box")
    assert machine.config is None
    assert person.machine(MARK) is None
    with pytest.raises(vim.fault.TaskInProgress):
        machine.PowerOnVM_Task(None)


def test_a_machine_that_shows_late_is_found_by_nothing(
    person: VspherePerson, session_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    session_sandbox.vsphere.knobs.late_visibility(reads=3)
    machine = person.create("box")
    cloud = _agent(session_sandbox, monkeypatch)
    assert list(cloud.machines()) == []
    assert person.named("box") == []
    with pytest.raises(vmodl.fault.ManagedObjectNotFound):
        _ = machine.name
    assert list(cloud.machines()) == []
    assert [one.machine.name for one in cloud.machines()] == ["box"]
