"""Machines that take their time: which of them do not show yet, and which vCenter is still making.

A machine that is being made is listed under its name, but vCenter does not report its configuration yet, not even its
UUID; its task runs, and it takes no other.
"""

from __future__ import annotations

import re
from dataclasses import replace

from fractal_sandbox.fault_injection import Countdown, Knobs
from fractal_sandbox.rest.routes import Reply
from fractal_sandbox.vsphere.answers import fault
from fractal_sandbox.vsphere.reading import Asked
from fractal_sandbox.vsphere.simulator import ENVELOPE

__all__ = ["OBJECTS", "Pending"]

OBJECTS = re.compile(rb"<objects>.*?</objects>", re.DOTALL)
_OBJECT = re.compile(rb'<obj type="VirtualMachine">([^<]+)</obj>')
_CONFIG = re.compile(rb"<propSet><name>config[^<]*</name>.*?</propSet>", re.DOTALL)
_REFERENCE = re.compile(
    rb'<(ManagedObjectReference|returnval) type="VirtualMachine">([^<]+)</(?:ManagedObjectReference|returnval)>'
)
_OUTCOME = re.compile(rb"<result .*?</result>|<completeTime>.*?</completeTime>", re.DOTALL)
_EMPTY = '<FetchResponse xmlns="urn:vim25"></FetchResponse>'


class Pending:
    """What the knobs `late_visibility` and `slow_creation` keep back. Asked under the cloud's lock."""

    def __init__(self, knobs: Knobs) -> None:
        self._knobs = knobs
        self.reset()

    def reset(self) -> None:
        self._hidden: dict[str, Countdown] = {}
        self._making: dict[str, Countdown] = {}
        self._tasks: dict[str, str] = {}

    def begin(self, machine: str, task: str) -> None:
        """A machine was made by a task: it takes as long as the knobs say."""
        hidden, making = (self._knobs.countdown(one, "vm") for one in ("late_visibility", "slow_creation"))
        if hidden is not None:
            self._hidden[machine] = hidden
        if making is not None:
            self._making[machine] = making
            self._tasks[task] = machine

    def is_hidden(self, machine: str) -> bool:
        return machine in self._hidden

    def refusal(self, asked: Asked) -> Reply | None:
        """What a call about a machine is answered that does not show, or is not ready to be changed."""
        self._settle()
        if asked.service != "vim":
            return None
        if asked.machine in self._hidden:
            self._hidden[asked.machine].count_read()
            words = "The object has already been deleted or has not been completely created"
            return fault("ManagedObjectNotFound", words, obj=("VirtualMachine", asked.machine))
        if asked.machine in self._making and asked.kind in ("modify", "delete"):
            task = next((one for one, machine in self._tasks.items() if machine == asked.machine), "")
            words = "The operation is not allowed in the current state: a task is in progress."
            return fault("TaskInProgress", words, task=("Task", task))
        return None

    def shown(self, asked: Asked, reply: Reply) -> Reply:
        """An answer without what does not show yet."""
        if asked.service != "vim" or reply.status != 200 or not (self._hidden or self._making):
            return reply
        if asked.operation == "listMachines" or asked.machine:
            self._count(asked)
        if asked.operation == "Fetch" and asked.machine in self._making and asked.name == "config":
            return replace(reply, content=ENVELOPE.format(_EMPTY).encode())
        content: bytes = reply.content
        if self._tasks.get(asked.task) in self._making:
            content = _OUTCOME.sub(b"", content.replace(b"<state>success<", b"<state>running<"))
        content = OBJECTS.sub(self._object, content)
        is_by_uuid = asked.operation == "getMachineByUuid"
        return replace(reply, content=_REFERENCE.sub(lambda one: self._reference(one, is_by_uuid=is_by_uuid), content))

    def _object(self, found: re.Match[bytes]) -> bytes:
        named = _OBJECT.search(found[0])
        machine = named[1].decode() if named else ""
        if machine in self._hidden:
            return b""
        return _CONFIG.sub(b"", found[0]) if machine in self._making else found[0]

    def _reference(self, found: re.Match[bytes], *, is_by_uuid: bool) -> bytes:
        machine = found[2].decode()
        return b"" if machine in self._hidden or (is_by_uuid and machine in self._making) else found[0]

    def _count(self, asked: Asked) -> None:
        for countdowns in (self._hidden, self._making):
            for machine, countdown in countdowns.items():
                if asked.machine in ("", machine):
                    countdown.count_read()

    def _settle(self) -> None:
        for countdowns in (self._hidden, self._making):
            for machine in [one for one, countdown in countdowns.items() if countdown.is_over]:
                del countdowns[machine]
