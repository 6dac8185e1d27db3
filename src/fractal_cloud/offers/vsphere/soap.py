"""Machines of one vCenter over SOAP: with specs.py the one place that knows the vendor's client.

A write begins a task, whose first state is read once; the next observation shows its result. The task's id is
what the journal keeps, because vCenter's own log knows the change by it.
"""

from __future__ import annotations

import http.client
import io
import re
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, NoReturn, TypeVar
from urllib.parse import urlsplit
from xml.parsers.expat import ExpatError

from fractal_cloud.model.errors import CloudError, Invalid, NotFound, Unreadable
from fractal_cloud.offers import rest
from fractal_cloud.offers.call_context import note_request, user_agent
from fractal_cloud.offers.vsphere.credentials import Credentials
from fractal_cloud.offers.vsphere.errors import failure, fault
from fractal_cloud.offers.vsphere.machines import Machine, Making
from fractal_cloud.offers.vsphere.specs import (
    KILO_PER_GIGA,
    asking,
    asking_upwards,
    devices_of,
    machine_from,
    path_from,
)

PAGE: Final = 500
TAGS_IN_CREATE: Final = (9, 1)
_FIRST: Final = "vim.version.version11"  # 6.5, which every server understands
_WITH_TAGS: Final = "vim.version.v9_1_0_0"
_IS_ENVELOPE: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml.*?\?>\s*)?<(?:[\w.-]+:)?Envelope[\s>]", re.DOTALL)
_ANY_FORMAT: Final = 32 + zlib.MAX_WBITS  # gzip or zlib, as it says itself
R = TypeVar("R")


class _Signature(Mapping[str, str]):
    """The headers of ours; asked for with every call, so that each says whose it is (C7)."""

    def __getitem__(self, name: str) -> str:
        if name != "User-Agent":
            raise KeyError(name)
        return user_agent()

    def __iter__(self) -> Iterator[str]:
        return iter(("User-Agent",))

    def __len__(self) -> int:
        return 1


class _Envelope(http.client.HTTPResponse):
    """An answer that is SOAP, or none: the client finds nothing in a page of HTML, and calls that an empty result."""

    def begin(self) -> None:
        super().begin()
        if self.status != HTTPStatus.OK:
            return
        kind, encoding = self.getheader("Content-Type", ""), self.getheader("Content-Encoding", "identity")
        body = self.read()
        plain = body if encoding.lower() == "identity" else zlib.decompress(body, _ANY_FORMAT)
        if not _IS_ENVELOPE.match(plain) or b"Body" not in plain:
            raise http.client.HTTPException(f"the answer is no SOAP ({kind}): {plain[:80]!r}")
        self.fp, self.length, self.chunked = (
            io.BufferedReader(io.BytesIO(body)),
            len(body),
            False,
        )  # to be read once more, by the client


class Soap:
    """Connections to one vCenter, shared by threads."""

    def __init__(self, found: Credentials) -> None:
        self._found = found
        self._lock = threading.Lock()
        self._stub: Any = None
        self._content: Any = None
        self.version: tuple[int, ...] = ()

    @property
    def accepts_tags_in_create(self) -> bool:
        """Whether a machine can be made with its tags in the one call; as the server said when it was first reached."""
        return self.version >= TAGS_IN_CREATE

    # --- reading

    def connect(self) -> None:
        """Learn which vCenter this is; raises where it is not reached, or nobody lets us in."""
        self._read("RetrieveContent", lambda content: content.sessionManager.currentSession)

    def instance(self) -> str:
        """The UUID of the vCenter that answers now; raises where it has none: by what else would it be known?"""
        from pyVmomi import vim

        def ask(_: Any) -> str:
            about = vim.ServiceInstance("ServiceInstance", self._stub).RetrieveContent().about
            return str(about.instanceUuid or "")

        found = self._read("RetrieveContent", ask)
        if not found:
            raise Unreadable("it says no instance UUID, by which a vCenter is known: a single host is not served")
        return found

    def machines(self, folder: str) -> Iterator[Machine]:
        """Every machine that lies in a folder itself, many a page; raises rather than end early (S0)."""
        from pyVmomi import vim

        collector = vim.PropertyCollector
        inside = collector.TraversalSpec(name="inside", type=vim.Folder, path="childEntity", skip=False)
        root = self._folder(folder)
        where = collector.ObjectSpec(obj=root, skip=True, selectSet=[inside])
        options = collector.RetrieveOptions(maxObjects=PAGE)
        page = self._read(
            "RetrievePropertiesEx",
            lambda content: content.propertyCollector.RetrievePropertiesEx([asking(where)], options),
        )
        while page is not None:
            yield from (machine_from(item) for item in page.objects)
            token = page.token
            if not token:
                return

            def further(content: Any, token: str = token) -> Any:
                return content.propertyCollector.ContinueRetrievePropertiesEx(token)

            page = self._read("ContinueRetrievePropertiesEx", further)
            if page is None:
                raise Unreadable(f"the list of the machines in {folder!r} ended early")

    def find(self, instance: str) -> Machine | None:
        """One machine by its instance UUID; None where vCenter says that there is none."""
        found = self._read(
            "FindByUuid",
            lambda content: content.searchIndex.FindByUuid(None, instance, vmSearch=True, instanceUuid=True),
        )
        return None if found is None else self.get(found._moId)  # noqa: SLF001

    def get(self, moref: str) -> Machine | None:
        """One machine by its managed object id; None where vCenter says that there is none."""
        from pyVmomi import vim

        def ask(content: Any) -> Any:
            where = vim.PropertyCollector.ObjectSpec(obj=vim.VirtualMachine(moref, self._stub), skip=False)
            options = vim.PropertyCollector.RetrieveOptions()
            return content.propertyCollector.RetrievePropertiesEx([asking(where)], options)

        try:
            page = self._read("RetrievePropertiesEx", ask)
        except NotFound:
            return None
        if page is None or not page.objects:
            raise Unreadable(f"machine {moref} was asked for, and nothing was answered")
        return machine_from(page.objects[0])

    def lies_in(self, moref: str, folder: str) -> bool:
        """Whether a folder's managed object id is that of a path; a path that leads nowhere is no folder's."""
        found = self._at(folder)
        return found is not None and bool(found._moId == moref)  # noqa: SLF001

    def path_of(self, moref: str) -> str:
        """The inventory path of a folder, as far up as it may be seen; its managed object id where nothing may."""
        from pyVmomi import vim

        if not moref:
            return "none"
        page = self._read(
            "RetrievePropertiesEx",
            lambda content: content.propertyCollector.RetrievePropertiesEx(
                [asking_upwards(moref, self._stub)], vim.PropertyCollector.RetrieveOptions()
            ),
        )
        return path_from(moref, page.objects if page is not None else ()) or moref

    def _folder(self, path: str) -> Any:
        found = self._at(path)
        if found is None:
            raise Unreadable(f"there is no folder {path!r}, or it may not be seen: make it, or correct the declaration")
        return found

    def _at(self, path: str) -> Any:
        return self._read(
            "FindByInventoryPath", lambda content: content.searchIndex.FindByInventoryPath(path.strip("/"))
        )

    # --- writing: one task, begun once

    def create(self, folder: str, making: Making, tag_ids: Sequence[str]) -> str:
        """Begin to make a machine; returns its managed object id once there is one.

        ``tag_ids`` go along where this vCenter takes them: the client silently leaves out what the server's version
        does not know.
        """
        from pyVmomi import vim

        root, pool = self._folder(folder), self._needed("resourcePool", making.pool)
        network = None if making.network is None else self._needed("network", making.network)
        spec = vim.vm.ConfigSpec(
            name=making.name,
            instanceUuid=making.instance,
            numCPUs=making.cpus,
            memoryMB=making.memory,
            guestId=making.guest,
            annotation=making.annotation,
            files=vim.vm.FileInfo(vmPathName=f"[{making.datastore}]"),
            deviceChange=devices_of(making, network),
        )
        if self.accepts_tags_in_create:
            spec.tagSpecs = [vim.TagSpec(operation="add", id=vim.TagId(uuid=one)) for one in tag_ids]
        result = self._task("CreateVM_Task", lambda: root.CreateVM_Task(spec, pool))
        return "" if result is None else str(result._moId)  # noqa: SLF001

    def _needed(self, parameter: str, path: str) -> Any:
        found = self._at(path)
        if found is None:
            raise Invalid(f"{parameter} {path!r} is not there, or may not be seen: correct it and deploy again")
        return found

    def reconfigure(self, moref: str, *, disk: int | None = None, **values: Any) -> None:
        """Begin to change a machine; ``disk``: the size of its first disk, in GB."""
        from pyVmomi import vim

        changes = []
        if disk is not None:
            [first, *_] = self._disks(moref)
            first.capacityInKB = disk * KILO_PER_GIGA
            first.capacityInBytes = disk * KILO_PER_GIGA * 1024
            changes = [vim.vm.device.VirtualDeviceSpec(operation="edit", device=first)]
        spec = vim.vm.ConfigSpec(deviceChange=changes, **values)
        self._task("ReconfigVM_Task", lambda: self._machine(moref).ReconfigVM_Task(spec))

    def _disks(self, moref: str) -> list[Any]:
        from pyVmomi import vim

        devices = self._read("RetrievePropertiesEx", lambda _: self._machine(moref).config.hardware.device)
        return [one for one in devices if isinstance(one, vim.vm.device.VirtualDisk)]

    def start(self, moref: str) -> None:
        """Begin to power a machine on."""
        self._task("PowerOnVM_Task", lambda: self._machine(moref).PowerOnVM_Task(None))

    def stop(self, moref: str, *, kindly: bool) -> None:
        """Begin to power a machine off; ``kindly``: by asking its system, which can answer."""
        if kindly:
            self._write("ShutdownGuest", lambda: self._machine(moref).ShutdownGuest())
        else:
            self._task("PowerOffVM_Task", lambda: self._machine(moref).PowerOffVM_Task())

    def destroy(self, moref: str) -> None:
        """Begin to delete a machine with its disks."""
        self._task("Destroy_Task", lambda: self._machine(moref).Destroy_Task())

    def _machine(self, moref: str) -> Any:
        from pyVmomi import vim

        return vim.VirtualMachine(moref, self._stub)

    def _task(self, name: str, begin: Callable[[], Any]) -> Any:
        """Begin a task, and read its state once: return its result if it has one, and raise its error if it failed."""
        task = self._write(name, begin)
        note_request(task._moId)  # noqa: SLF001
        try:
            info = self._read("Task", lambda _: task.info)
        except CloudError:
            return None  # it was begun: the next observation of the machine shows its result
        if info.state == "error":
            _raise(info.error, name, is_read=False)
        return info.result if info.state == "success" else None

    # --- how

    def _write(self, name: str, call: Callable[[], R]) -> R:
        """Send one writing call, once: it is sent again only where it was refused because the session ran out."""
        self._connected()
        return self._tried(name, lambda _: call(), is_read=False)

    def _read(self, name: str, call: Callable[[Any], R]) -> R:
        for seconds in (*rest.READ_BACKOFF, None):
            try:
                return self._tried(name, call, is_read=True)
            except Unreadable:
                if seconds is None:
                    raise
                time.sleep(seconds)
        raise AssertionError("the last attempt always returns or raises")

    def _tried(self, name: str, call: Callable[[Any], R], *, is_read: bool) -> R:
        from pyVmomi import vim, vmodl

        try:
            try:
                return call(self._connected())
            except vim.fault.NotAuthenticated:
                return call(self._connected(anew=True))
        except vmodl.MethodFault as error:
            _raise(error, name, is_read=is_read)
        except http.client.HTTPException as error:
            status = str(error).partition(" ")[0]
            raise failure(int(status) if status.isdigit() else 0, str(error), name, is_read=is_read) from error
        except (OSError, ExpatError) as error:
            raise failure(0, str(error) or type(error).__name__, name, is_read=is_read) from error

    def _connected(self, *, anew: bool = False) -> Any:
        from pyVmomi import vim

        with self._lock:
            if self._content is None:
                about = vim.ServiceInstance("ServiceInstance", self._adapter(_FIRST)).RetrieveContent().about
                self.version = tuple(int(part) for part in about.apiVersion.split(".") if part.isdigit())
                self._stub = self._adapter(_WITH_TAGS if self.accepts_tags_in_create else _FIRST)
                content = vim.ServiceInstance("ServiceInstance", self._stub).RetrieveContent()
                content.sessionManager.Login(self._found.user, self._found.password)
                self._content = content
            elif anew:
                self._content.sessionManager.Login(self._found.user, self._found.password)
            return self._content

    def _adapter(self, version: str) -> Any:
        from pyVmomi import SoapAdapter

        url = urlsplit(self._found.base)
        is_plain = url.scheme == "http"
        port = url.port or (80 if is_plain else 443)

        class Adapter(SoapAdapter.SoapStubAdapter):  # type: ignore[misc]  # the vendor's client is not typed
            def GetConnection(self) -> Any:  # noqa: N802
                connection = super().GetConnection()
                connection.response_class = _Envelope
                return connection

        made = Adapter(
            host=url.hostname,
            port=-port if is_plain else port,  # how the vendor's client is made to speak no TLS
            path=f"{url.path}/sdk",
            version=version,
            poolSize=rest.CONNECTIONS,
            sslContext=None if is_plain else self._found.context(),
            httpConnectionTimeout=rest.WRITE_SECONDS,
            customHeaders=_Signature(),
        )
        weakref.finalize(self, made.DropConnections)  # whoever forgets us lets the connections go, too
        return made


def _raise(error: Any, call: str, *, is_read: bool) -> NoReturn:
    name = type(error).__name__.rpartition(".")[2]
    raise fault(name, getattr(error, "msg", "") or "", call, is_read=is_read) from error
