"""The simulator's process: started when it is first needed, ended with the sandbox, and asked over loopback."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

__all__ = ["Answer", "Simulator", "govc", "program", "why_not"]

USER, PASSWORD = "user", "pass"
_BASIC = "Basic dXNlcjpwYXNz"
_TAGGING = "/rest/com/vmware/cis/tagging"
_SESSION = "/rest/com/vmware/cis/session"
ENVELOPE = (
    '<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body>{}</soapenv:Body></soapenv:Envelope>'
)


class Answer(NamedTuple):
    """What the simulator answered."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


def program() -> Path:
    """Where the simulator is, or would be, once it is built."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "fractal-cloud" / "vcsim" / "vcsim"


def govc() -> Path:
    """Where the command line is that is built with it."""
    return program().with_name("govc")


def why_not() -> str:
    """Why there is no vSphere in the sandbox; empty where there is."""
    return "" if os.access(program(), os.X_OK) else "vcsim is not built: `scripts/vcsim build` builds it on Debian"


class Simulator:
    """One simulator. It reads past everything that is in front of it, with a session of its own."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._process: subprocess.Popen[str] | None = None
        self._address = ""
        self._cookie = ""
        self._session = ""

    def stop(self) -> None:
        """End it, with everything in it; the next call starts another."""
        with self._lock:
            if self._process is not None:
                _end(self._process)
            self._process, self._cookie, self._session = None, "", ""

    @property
    def is_running(self) -> bool:
        """Whether anybody has asked it for anything since it was last ended."""
        with self._lock:
            return self._process is not None and self._process.poll() is None

    def send(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Pass one request on."""
        self._start()
        connection = http.client.HTTPConnection(self._address, timeout=60)
        try:
            connection.request(method, path, body, dict(headers))
            response = connection.getresponse()
            return Answer(response.status, response.getheaders(), response.read())
        finally:
            connection.close()

    # What the sandbox itself wants to know

    def soap(self, body: str) -> str:
        """One SOAP call in the sandbox's own name."""
        with self._lock:
            self._start()
            if not self._cookie:
                self._login()
        headers = {"Content-Type": "text/xml", "SOAPAction": "urn:vim25/6.5", "Cookie": self._cookie}
        return self.send("POST", "/sdk", headers, ENVELOPE.format(body).encode()).body.decode()

    def tagging(self, method: str, path: str, body: Any = None) -> Any:
        """One call about tags in the sandbox's own name."""
        with self._lock:
            self._start()
            if not self._session:
                answer = self.send("POST", _SESSION, {"Authorization": _BASIC}, b"")
                self._session = json.loads(answer.body)["value"]
        content = b"" if body is None else json.dumps(body).encode()
        answer = self.send(method, f"{_TAGGING}{path}", {"vmware-api-session-id": self._session}, content)
        if answer.status >= 400:
            raise LookupError(f"{method} {path}: {answer.status}")
        return json.loads(answer.body).get("value") if answer.body else None

    def machines(self) -> dict[str, tuple[str, str]]:
        """The name of every machine, and the id of its folder, by its managed object id."""
        answer = self.soap(_ALL_MACHINES)
        found = {}
        for part in re.findall(r"<returnval>.*?</returnval>", answer, re.DOTALL):
            moref = re.search(r'<obj type="VirtualMachine">([^<]+)</obj>', part)
            name = re.search(r"<name>name</name><val[^>]*>([^<]*)</val>", part)
            parent = re.search(r"<name>parent</name><val[^>]*>([^<]*)</val>", part)
            if moref and name:
                found[moref[1]] = (name[1], parent[1] if parent else "")
        return found

    def power(self, machine: str) -> str:
        """Whether a machine is powered on."""
        return self._property(machine, "runtime.powerState")

    def instance(self, machine: str) -> str:
        """The instance UUID of a machine, which never returns."""
        return self._property(machine, "config.instanceUuid")

    def _property(self, machine: str, name: str) -> str:
        answer = self.soap(_PROPERTY.format(name, escape(machine)))
        found = re.search(rf"<name>{re.escape(name)}</name><val[^>]*>([^<]*)</val>", answer)
        return found[1] if found else ""

    def _login(self) -> None:
        body = (
            '<Login xmlns="urn:vim25"><_this type="SessionManager">SessionManager</_this>'
            f"<userName>{escape(USER)}</userName><password>{escape(PASSWORD)}</password></Login>"
        )
        answer = self.send("POST", "/sdk", {"Content-Type": "text/xml"}, ENVELOPE.format(body).encode())
        self._cookie = dict(answer.headers)["Set-Cookie"].partition(";")[0]

    def _start(self) -> None:
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                return
            reason = why_not()
            if reason:
                raise FileNotFoundError(reason)
            self._cookie = self._session = ""
            # It ends when its input does: also if this process is killed.
            self._process = subprocess.Popen(
                [str(program())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            assert self._process.stdout is not None
            self._address = self._process.stdout.readline().strip()
            weakref.finalize(self, _end, self._process)


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


_PROPERTY = (
    '<RetrieveProperties xmlns="urn:vim25"><_this type="PropertyCollector">propertyCollector</_this><specSet><propSet>'
    "<type>VirtualMachine</type><pathSet>{}</pathSet></propSet><objectSet>"
    '<obj type="VirtualMachine">{}</obj></objectSet></specSet></RetrieveProperties>'
)
_ALL_MACHINES = (
    '<RetrieveProperties xmlns="urn:vim25"><_this type="PropertyCollector">propertyCollector</_this><specSet>'
    "<propSet><type>VirtualMachine</type><pathSet>name</pathSet><pathSet>parent</pathSet></propSet><objectSet>"
    '<obj type="Folder">group-d1</obj><skip>true</skip>'
    '<selectSet xsi:type="TraversalSpec"><name>folders</name><type>Folder</type><path>childEntity</path><skip>false'
    "</skip><selectSet><name>folders</name></selectSet><selectSet><name>machines</name></selectSet></selectSet>"
    '<selectSet xsi:type="TraversalSpec"><name>machines</name><type>Datacenter</type><path>vmFolder</path><skip>false'
    "</skip><selectSet><name>folders</name></selectSet></selectSet>"
    "</objectSet></specSet></RetrieveProperties>"
)
