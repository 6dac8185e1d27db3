"""A vCenter: the simulator behind knobs, monitor and record, made to behave like the real one where it does not.

The simulator is an old one. What it lacks of a vCenter stands here: tags in the create call (from 9.1 on), one name a
folder, pages, and sizes that do not change while a machine runs.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any
from uuid import uuid4

from fractal_sandbox.calls import Actor, Call, CallLog, Origin, RecordedCall
from fractal_sandbox.fault_injection import Interference, Knobs
from fractal_sandbox.http_server import ConnectionCut, Environ, StartResponse
from fractal_sandbox.monitor import Creation, Finding, Monitor, Touch
from fractal_sandbox.monitor_rules import OWNER, PROTOCOL_KEYS, Change
from fractal_sandbox.owned_resources import Owned, owned
from fractal_sandbox.rest.routes import READING, Reply, Request, read_request
from fractal_sandbox.vsphere import AGENT, PASSWORD, PERSON
from fractal_sandbox.vsphere.answers import fault, rest_refusal, versions
from fractal_sandbox.vsphere.pending import OBJECTS, Pending
from fractal_sandbox.vsphere.reading import Asked, read_rest, read_soap, without_tags
from fractal_sandbox.vsphere.simulator import ENVELOPE, Simulator
from fractal_sandbox.vsphere.simulator import PASSWORD as INNER_PASSWORD
from fractal_sandbox.vsphere.simulator import USER as INNER_USER

__all__ = ["VsphereCloud"]

CATEGORY = "fractal-cloud"
VERSION = "8.0.3.0"  # what most people have
_CALLERS: Mapping[str, Actor] = {PERSON: "person", AGENT: "agent"}
_SESSION = "/rest/com/vmware/cis/session"
_PASSED = ("cookie", "content-type", "soapaction", "vmware-api-session-id", "authorization")
_HOP = frozenset({"content-length", "date", "connection", "transfer-encoding"})
_NOTHING = re.compile(rb"(<RetrievePropertiesExResponse[^>]*>)<returnval></returnval>")
_SIZES = frozenset({"numCPUs", "memoryMB"})


class VsphereCloud:
    """One vCenter with one datacenter, `DC0`, and no machine in it.

    `version`: which API it says it has, also after a reset; from 9.1 on, tags travel in the create call.
    """

    name = "vsphere"

    def __init__(self) -> None:
        self.version = VERSION
        self.knobs = Knobs()
        self._pending = Pending(self.knobs)
        self.calls = CallLog()
        self.monitor = Monitor()
        self.lock = threading.RLock()
        self.simulator = Simulator()
        self.reset()

    def reset(self) -> None:
        """An empty vCenter, in a new process once somebody asks it for something."""
        with self.lock:
            self.simulator.stop()
            self.knobs.reset()
            self.calls.clear()
            self.monitor.reset()
            self._sessions: dict[str, Actor] = {}
            self._pages: dict[str, list[bytes]] = {}
            self._words: dict[str, tuple[str, str]] = {}
            self._pending.reset()
            # Machines that the agent's own call made without tags, as long as it has not put any on.
            self._bare: set[str] = set()
            # Which vCenter it says it is, where that is to be another one than it was.
            self.instance = ""

    @property
    def accepts_tags_in_create(self) -> bool:
        return tuple(int(part) for part in self.version.split(".")) >= (9, 1)

    def tags(self, moid: str, kind: str = "VirtualMachine") -> dict[str, str]:
        """The tags of an object at this instant, under the protocol's neutral names."""
        ids = self.simulator.tagging(
            "POST", "/tag-association?~action=list-attached-tags", {"object_id": {"id": moid, "type": kind}}
        )
        return self._named(ids or ())

    def owned_resources(self) -> list[Owned]:
        """Every object of any kind that a tag of an owner is attached to at this instant; machines by instance UUID."""
        with self.lock:
            if not self.simulator.is_running:
                return []
            machines, found = self._machines(), set()
            for tag_id in self.simulator.tagging("GET", "/tag") or ():
                word = self._word(tag_id)
                if word is not None and word[0] == OWNER:
                    path = f"/tag-association/id:{tag_id}?~action=list-attached-objects"
                    attached = self.simulator.tagging("POST", path, {})
                    found |= {(str(one["type"]), str(one["id"])) for one in attached or ()}
            return [
                one
                for kind, moid in sorted(found)
                if kind != "VirtualMachine" or moid in machines  # the simulator keeps the tags of what is gone
                for one in owned(
                    self.name,
                    kind,
                    (self.simulator.instance(moid) if moid in machines else "") or moid,
                    machines.get(moid, (moid, ""))[0],
                    self.tags(moid, kind),
                )
            ]

    # How a call goes

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        try:
            reply = self._reply(read_request(environ, "person"))
        except FileNotFoundError as missing:
            reply = Reply(503, str(missing).encode())
        headers = [pair for pair in reply.headers if pair[0].lower() not in _HOP]
        start_response(f"{reply.status} {HTTPStatus(reply.status).phrase}", headers)
        return [reply.content or b""]

    def _reply(self, request: Request) -> Reply:
        if request.path == "/sdk/vimServiceVersions.xml":
            return versions(self.version)
        if request.path == _SESSION:
            return self._rest_session(request)
        if request.path == "/sdk":
            return self._soap(request)
        if request.path.startswith("/rest/com/vmware/cis/tagging/"):
            known = self._sessions.get(request.headers.get("vmware-api-session-id", ""))
            if known is None:
                return rest_refusal(401, "unauthenticated", "no session")
            return self._go(replace(request, actor=known), read_rest(request))
        if request.method not in READING:
            known = self._sessions.get(request.headers.get("vmware-api-session-id", ""))
            if known == "agent":
                asked = Asked("rest", f"{request.method} {request.path}", "unknown")
                self._check(self._call(replace(request, actor=known), asked), asked)
        return Reply(404, b"")

    def _soap(self, request: Request) -> Reply:
        try:
            asked = read_soap(request.body)
        except ValueError as error:
            return fault("InvalidRequest", str(error))
        if asked.operation == "Login":
            return self._soap_login(request)
        if asked.operation == "RetrieveServiceContent":
            reply = self._pass(request)
            version = self.version.encode()
            if self.instance:
                said = b"<instanceUuid>%s<" % self.instance.encode()
                reply = replace(reply, content=re.sub(rb"<instanceUuid>[^<]*<", said, reply.content))
            shown = re.sub(rb"<apiVersion>[^<]*<", b"<apiVersion>%s<" % version, reply.content)
            return replace(reply, content=re.sub(rb"<version>6[^<]*<", b"<version>%s<" % version, shown))
        known = self._sessions.get(_cookie(request.headers.get("cookie", "")))
        if known is None:
            return fault("NotAuthenticated", "The session is not authenticated.")
        return self._go(replace(request, actor=known), asked)

    def _go(self, request: Request, asked: Asked) -> Reply:
        call = self._call(request, asked)
        self.knobs.wait(call)
        self.knobs.run_before_hooks(call)
        interference = self.knobs.before(call)
        if interference is not None:
            return self._interfere(call, interference, effect=False)
        with self.lock:
            if asked.kind in ("word", "unknown"):
                self._words.clear()
            lost = self._check(call, asked)
            reply = self._pending.refusal(asked) or self._refused(asked) or self._carry_out(request, asked)
            reply = _without_nothing(self._pending.shown(asked, reply))
            interference = self.knobs.after(call)
            if reply.status < 400:
                self.monitor.confirm(lost)
                if interference is None:
                    self._note(call, asked, reply)
        if interference is not None:
            return self._interfere(call, interference, effect=reply.status < 400)
        self._finish(RecordedCall(call, reply.status, reply.error, reply.status < 400))
        return replace(reply, content=self.knobs.rewritten(call, reply.content or b"")) if reply.status < 400 else reply

    def _call(self, request: Request, asked: Asked) -> Call:
        user_agent = request.headers.get("user-agent", "")
        return Call(
            actor=request.actor,
            access_key=f"vsphere-{request.actor}",
            service=asked.service,
            operation=asked.operation,
            region="",
            parameters=asked.parameters,
            is_write=asked.is_write,
            origin=Origin.from_user_agent(user_agent),
            user_agent=user_agent,
            resource_ids=(asked.machine,) if asked.machine else (),
            page=asked.page,
        )

    # What the monitor hears

    def _check(self, call: Call, asked: Asked) -> list[Finding]:
        if call.actor != "agent" or asked.kind == "read":
            return []
        if asked.kind == "unknown":
            self.monitor.unclassified(
                call, f"no table says what {asked.operation} does to {asked.machine or 'anything'}"
            )
            return []
        if asked.kind == "word":
            if not self._is_our_word(asked, call.origin.tags):
                self.monitor.unclassified(call, f"it makes {asked.name!r}, which is no tag of the protocol")
            return self.monitor.check(call, [])
        if asked.kind == "create":
            twins = tuple(_reference(one) for one, place in self._machines().items() if place == _place(asked))
            tags, is_bare = self._named(asked.tag_ids), not self.accepts_tags_in_create
            creation = Creation("vm", "", _place(asked), tags, twins, is_bare=is_bare)
            return self.monitor.check(call, [], creation)
        touched = self._named(asked.tag_ids)
        change = {
            "modify": Change("modify"),
            "delete": Change("delete"),
            "attach": Change("tag", added=touched, finishes=asked.machine in self._bare),
            "detach": Change("tag", removed=touched),
        }[asked.kind]
        if asked.machine not in self._machines():
            return self.monitor.check(call, [])
        return self.monitor.check(call, [Touch(_reference(asked.machine), change, self.tags(asked.machine))])

    def _is_our_word(self, asked: Asked, declared: Collection[str]) -> bool:
        """Whether what is made is the category of the protocol, a tag of the protocol in it, or a declared tag's."""
        if not asked.parent:
            return asked.name == CATEGORY or asked.name in declared
        try:
            category = self.simulator.tagging("GET", f"/category/id:{asked.parent}")["name"]
        except LookupError:
            return False
        if category != CATEGORY:
            return category in declared
        return asked.name.partition(":")[0] in PROTOCOL_KEYS

    def _note(self, call: Call, asked: Asked, reply: Reply) -> None:
        if call.actor != "agent":
            return
        if asked.operation == "listMachines":
            shown = {one: at for one, at in self._machines().items() if not self._pending.is_hidden(one)}
            places = {_reference(one): place for one, place in shown.items()}
            self.monitor.listed(call, "vm", places)
        elif asked.operation == "listAttachedTagsOnObjects":
            for one in json.loads(reply.content).get("value") or ():
                machine = str(one["object_id"]["id"])
                self.monitor.saw(call, _reference(machine), self._named(one.get("tag_ids") or ()))
        elif asked.operation == "getAttachedTags":
            found = json.loads(reply.content).get("value") or ()
            self.monitor.saw(call, _reference(asked.machine), self._named(found))
        elif asked.kind in ("attach", "detach"):
            self.monitor.saw(call, _reference(asked.machine), self.tags(asked.machine))

    # What becomes of it

    def _refused(self, asked: Asked) -> Reply | None:
        if asked.kind == "create":
            twin = next((one for one, place in self._machines().items() if place == _place(asked)), None)
            if twin is not None:
                words = f"The name '{asked.name}' already exists."
                return fault("DuplicateName", words, name=asked.name, object=("VirtualMachine", twin))
            if self.accepts_tags_in_create and any(self._word(one) is None for one in asked.tag_ids):
                return fault("InvalidArgument", "A specified parameter was not correct: spec.tagSpecs")
        if asked.operation == "ReconfigVM_Task" and _SIZES & set(asked.parameters) and self._runs(asked.machine):
            words = "The operation is not allowed in the current state (Powered on)."
            return fault("InvalidPowerState", words, requestedState="poweredOff", existingState="poweredOn")
        return None

    def _carry_out(self, request: Request, asked: Asked) -> Reply:
        if asked.operation == "listMachinesContinued":
            return self._next_page(asked.name)
        if asked.kind != "create":
            reply = self._pass(request)
            if asked.kind == "attach" and request.actor == "agent" and reply.status < 400:
                self._bare.discard(asked.machine)
            return self._paged(reply) if asked.operation == "listMachines" else reply
        before = set(self._machines())
        reply = self._pass(replace(request, body=without_tags(request.body)))
        for machine in set(self._machines()) - before:
            if self.accepts_tags_in_create:
                body = {"object_id": _object(machine), "tag_ids": list(asked.tag_ids)}
                self.simulator.tagging("POST", "/tag-association?~action=attach-multiple-tags-to-object", body)
            elif request.actor == "agent":
                self._bare.add(machine)
            task = re.search(rb'<returnval type="Task">([^<]+)<', reply.content)
            self._pending.begin(machine, task[1].decode() if task else "")
        return reply

    def _pass(self, request: Request) -> Reply:
        headers = {name: request.headers[name] for name in _PASSED if request.headers.get(name)}
        path = request.path + (
            "?" + "&".join(f"{key}={value}" for key, value in request.pairs) if request.pairs else ""
        )
        answer = self.simulator.send(request.method, path, headers, request.body)
        return Reply(
            answer.status, answer.body, tuple(answer.headers), "" if answer.status < 400 else str(answer.status)
        )

    def _paged(self, reply: Reply) -> Reply:
        objects = OBJECTS.findall(reply.content)
        size = self.knobs.page_size
        if reply.status != 200 or not size or len(objects) <= size:
            return reply
        token = uuid4().hex
        self._pages[token] = [b"".join(objects[at : at + size]) for at in range(size, len(objects), size)]
        shown = b"<token>%s</token>%s" % (token.encode(), b"".join(objects[:size]))
        start, end = reply.content.index(b"<objects>"), reply.content.rindex(b"</objects>") + len(b"</objects>")
        return replace(reply, content=reply.content[:start] + shown + reply.content[end:])

    def _next_page(self, token: str) -> Reply:
        pages = self._pages.pop(token, None)
        if not pages:
            return fault("InvalidProperty", "the token is unknown", name="token")
        more = ""
        if len(pages) > 1:
            more = f"<token>{(after := uuid4().hex)}</token>"
            self._pages[after] = pages[1:]
        method = "ContinueRetrievePropertiesExResponse"
        inner = f'<{method} xmlns="urn:vim25"><returnval>{more}{pages[0].decode()}</returnval></{method}>'
        return Reply(200, ENVELOPE.format(inner).encode(), (("Content-Type", "text/xml"),))

    def _interfere(self, call: Call, interference: Interference, *, effect: bool) -> Reply:
        if interference.cut:
            self._finish(RecordedCall(call, 0, "", effect))
            self.knobs.hold(interference)
            raise ConnectionCut
        if interference.kind == "answer":
            reply = Reply(interference.status, interference.body, (("Content-Type", interference.content_type),))
            self._finish(RecordedCall(call, reply.status, reply.error, effect))
            return reply
        status = 503 if interference.kind == "throttle" else interference.status
        if call.service == "tagging":
            reply = rest_refusal(status, interference.code, interference.message)
        elif status in (401, 403):
            reply = fault("NoPermission", "Permission to perform this operation was denied.")
        elif status >= 500 and interference.kind != "throttle":
            words = interference.message or "A general system error occurred."
            reply = fault("SystemError", words, reason=words)
        else:
            reply = Reply(status, b"", error=interference.code)
        self._finish(RecordedCall(call, reply.status, reply.error, effect))
        return reply

    def _finish(self, recorded: RecordedCall) -> None:
        self.calls.append(recorded)
        self.knobs.run_after_hooks(recorded)

    # Who calls

    def _soap_login(self, request: Request) -> Reply:
        text = request.body.decode()
        user, password = (re.search(rf"<{one}[^>]*>([^<]*)</{one}>", text) for one in ("userName", "password"))
        if user is None or password is None or user[1] not in _CALLERS or password[1] != PASSWORD:
            return fault("InvalidLogin", "Cannot complete login due to an incorrect user name or password.")
        text = text.replace(user[0], f"<userName>{INNER_USER}</userName>")
        text = text.replace(password[0], f"<password>{INNER_PASSWORD}</password>")
        bare = {name: value for name, value in request.headers.items() if name != "cookie"}
        reply = self._pass(replace(request, body=text.encode(), headers=bare))
        for name, value in reply.headers:
            if name.lower() == "set-cookie":
                self._sessions[_cookie(value)] = _CALLERS[user[1]]
        return reply

    def _rest_session(self, request: Request) -> Reply:
        if request.method != "POST" or request.query.get("~action"):
            return self._pass(request)  # whether one is still good, or its end
        secret = request.headers.get("authorization", "").removeprefix("Basic ")
        user, _, password = base64.b64decode(secret).decode().partition(":")
        if user not in _CALLERS or password != PASSWORD:
            return rest_refusal(401, "unauthenticated", "Unable to authenticate user")
        inner = base64.b64encode(f"{INNER_USER}:{INNER_PASSWORD}".encode()).decode()
        reply = self._pass(replace(request, headers={**request.headers, "authorization": f"Basic {inner}"}))
        if reply.status == 200:
            self._sessions[json.loads(reply.content)["value"]] = _CALLERS[user]
        return reply

    # What the simulator knows

    def _machines(self) -> dict[str, tuple[str, str]]:
        return self.simulator.machines()

    def _runs(self, machine: str) -> bool:
        return self.simulator.power(machine) == "poweredOn"

    def _word(self, tag_id: str) -> tuple[str, str] | None:
        """Key and value of a tag, kept until somebody writes tags or categories; None where there is none."""
        if tag_id not in self._words:
            try:
                tag = self.simulator.tagging("GET", f"/tag/id:{tag_id}")
            except LookupError:
                return None
            category = self.simulator.tagging("GET", f"/category/id:{tag['category_id']}")["name"]
            key, _, value = tag["name"].partition(":") if category == CATEGORY else (category, "", tag["name"])
            self._words[tag_id] = (key, value)
        return self._words[tag_id]

    def _named(self, ids: Iterable[str]) -> dict[str, str]:
        return dict(found for one in ids if (found := self._word(one)) is not None)


def _object(machine: str) -> dict[str, Any]:
    return {"id": machine, "type": "VirtualMachine"}


def _without_nothing(reply: Reply) -> Reply:
    """An answer of the property collector: where it found nothing, a vCenter answers no result, not an empty one."""
    return replace(reply, content=_NOTHING.sub(rb"\1", reply.content)) if reply.content else reply


def _reference(machine: str) -> str:
    return f"vm/{machine}"


def _place(asked: Asked) -> tuple[str, str]:
    return asked.name, asked.parent


def _cookie(text: str) -> str:
    found = re.search(r'vmware_soap_session="?([^";]+)', text)
    return found[1] if found else ""
