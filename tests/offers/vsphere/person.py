"""Somebody with a login of their own: pyvmomi and plain HTTP, and no line of the offers."""

from __future__ import annotations

import base64
import json
import urllib.request
import weakref
from typing import Any
from urllib.parse import urlsplit

from pyVmomi import SoapAdapter, vim

from fractal_sandbox import sandbox_env
from tests.offers.vsphere.examples import DATASTORE, FOLDER, POOL

CATEGORY = "fractal-cloud"
_TAGGING = "/rest/com/vmware/cis/tagging"


class VspherePerson:
    """What people do at the vCenter of the sandbox; they log in when they first do something."""

    def __init__(self, url: str) -> None:
        self.env = sandbox_env(url)
        self._base = self.env["GOVC_URL"].removesuffix("/sdk")
        self.forget()

    def forget(self) -> None:
        """Log in again: the vCenter is another one."""
        self._content: Any = None
        self._session = ""

    @property
    def content(self) -> Any:
        if self._content is not None:
            try:
                if self._content.sessionManager.currentSession is not None:
                    return self._content
            except vim.fault.NotAuthenticated:
                pass
        url = urlsplit(self._base)
        port = url.port or 80
        stub = SoapAdapter.SoapStubAdapter(
            host=url.hostname, port=-port, path=f"{url.path}/sdk", version="vim.version.v9_1_0_0"
        )
        weakref.finalize(self, stub.DropConnections)
        self._content = vim.ServiceInstance("ServiceInstance", stub).RetrieveContent()
        self._content.sessionManager.Login(self.env["GOVC_USERNAME"], self.env["GOVC_PASSWORD"])
        return self._content

    # --- machines

    def at(self, path: str) -> Any:
        """What lies at an inventory path."""
        return self.content.searchIndex.FindByInventoryPath(path)

    def named(self, name: str) -> list[Any]:
        """All machines of the folder with a name."""
        return [one for one in self.at(FOLDER).childEntity if one.name == name]

    def machine(self, instance: str) -> Any:
        """One machine by its instance UUID."""
        return self.content.searchIndex.FindByUuid(None, instance, True, True)

    def create(self, name: str, folder: str = FOLDER) -> Any:
        """Make a machine without a disk."""
        files = vim.vm.FileInfo(vmPathName=f"[{DATASTORE}]")
        spec = vim.vm.ConfigSpec(name=name, numCPUs=1, memoryMB=32, guestId="otherGuest", files=files)
        return self.done(self.at(folder).CreateVM_Task(spec, self.at(POOL)))

    def reconfigure(self, machine: Any, **values: Any) -> None:
        """Change a machine, stopped for it if it runs."""
        runs = machine.runtime.powerState == "poweredOn"
        if runs:
            self.done(machine.PowerOffVM_Task())
        self.done(machine.ReconfigVM_Task(vim.vm.ConfigSpec(**values)))
        if runs:
            self.done(machine.PowerOnVM_Task(None))

    def delete(self, machine: Any) -> None:
        """Delete a machine, stopped for it if it runs."""
        if machine.runtime.powerState == "poweredOn":
            self.done(machine.PowerOffVM_Task())
        self.done(machine.Destroy_Task())

    def done(self, task: Any) -> Any:
        """What a task came to; the simulator's tasks are over at once."""
        assert task.info.state == "success", task.info.error
        return task.info.result

    # --- tags

    def rest(self, method: str, path: str, body: Any = None) -> Any:
        """One plain request about tags."""
        if not self._session:
            secret = f"{self.env['GOVC_USERNAME']}:{self.env['GOVC_PASSWORD']}"
            header = {"Authorization": f"Basic {base64.b64encode(secret.encode()).decode()}"}
            self._session = self._send("POST", "/rest/com/vmware/cis/session", header, None)
        return self._send(method, f"{_TAGGING}{path}", {"vmware-api-session-id": self._session}, body)

    def _send(self, method: str, path: str, headers: dict[str, str], body: Any) -> Any:
        content = None if body is None else json.dumps(body).encode()
        said = headers if content is None else {**headers, "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self._base}{path}", content, said, method=method)
        with urllib.request.urlopen(request) as response:
            text = response.read()
        return json.loads(text).get("value") if text else None

    def tag_id(self, category: str, name: str) -> str:
        """The id of a tag, which is made where it does not exist."""
        ids = {self.rest("GET", f"/category/id:{one}")["name"]: one for one in self.rest("GET", "/category") or ()}
        if category not in ids:
            spec = {"name": category, "description": "", "cardinality": "MULTIPLE", "associable_types": []}
            ids[category] = self.rest("POST", "/category", {"create_spec": spec})
        listed = self.rest("POST", f"/tag/id:{ids[category]}?~action=list-tags-for-category", {})
        for one in listed or ():
            if self.rest("GET", f"/tag/id:{one}")["name"] == name:
                return str(one)
        spec = {"name": name, "description": "", "category_id": ids[category]}
        return str(self.rest("POST", "/tag", {"create_spec": spec}))

    def tags(self, machine: Any) -> list[tuple[str, str, str]]:
        """Category, name and id of every tag of a machine."""
        body = {"object_id": _object(machine)}
        found = []
        for one in self.rest("POST", "/tag-association?~action=list-attached-tags", body) or ():
            tag = self.rest("GET", f"/tag/id:{one}")
            category = self.rest("GET", f"/category/id:{tag['category_id']}")["name"]
            found.append((str(category), str(tag["name"]), str(one)))
        return found

    def attach(self, machine: Any, category: str, name: str) -> None:
        """Attach a tag."""
        path = f"/tag-association/id:{self.tag_id(category, name)}?~action=attach"
        self.rest("POST", path, {"object_id": _object(machine)})

    def detach(self, machine: Any, tag_id: str) -> None:
        """Detach a tag."""
        self.rest("POST", f"/tag-association/id:{tag_id}?~action=detach", {"object_id": _object(machine)})


def _object(machine: Any) -> dict[str, str]:
    return {"id": machine._moId, "type": "VirtualMachine"}
