"""What the sandbox's vCenter mends of the simulator, and that its judge sees what the agent does."""

from __future__ import annotations

from typing import Any

import pytest
from pyVmomi import vim

from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.acting import Act, acting
from fractal_cloud.offers.vsphere.cloud import VsphereSession
from fractal_cloud.sandbox import Sandbox, agent_env
from fractal_cloud.sandbox.vsphere.simulator import why_not
from tests.offers.vsphere.person import VspherePerson

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "never")


@pytest.fixture
def person(session_sandbox: Sandbox) -> VspherePerson:
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
    with acting(Act("ls", "box", "drift")):
        cloud.reconfigure(machine._moId, annotation="ours now")
    [found] = session_sandbox.vsphere.monitor.violations
    assert found.rule == "S7"
    assert machine.config.annotation == "ours now"
