"""The door to vCenter's tags, which SOAP does not have: `/api` where it is served, and the older `/rest` where not."""

from __future__ import annotations

import threading
import weakref
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from fractal_cloud.model.errors import Conflict, Denied, Invalid, NotFound, Transient, Unreadable
from fractal_cloud.offers.call_context import CallContext, calling_as, current_context
from fractal_cloud.offers.rest import CONNECTIONS, Answer, Call, RestClient
from fractal_cloud.offers.vsphere.credentials import Credentials
from fractal_cloud.offers.vsphere.errors import VsphereDialect
from fractal_cloud.offers.vsphere.tags import CATEGORY, Word, tags_of

CHUNK: Final = 500
_OLD: Final = "/rest/com/vmware/cis"
_NEW: Final = "/api/cis"
_MACHINE: Final = "VirtualMachine"


class Tagging(RestClient):
    """Tags of one vCenter. A session that ran out is opened again, once: the call was refused, so it did nothing."""

    def __init__(self, found: Credentials) -> None:
        import httpx2

        super().__init__(found.base, VsphereDialect())
        self.close()
        limits = httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)
        self._client = httpx2.Client(limits=limits, follow_redirects=False, verify=found.context())
        weakref.finalize(self, self._client.close)
        self._secret = b64encode(f"{found.user}:{found.password}".encode()).decode()
        self._login_lock = threading.Lock()
        self._is_old = False
        self._known: dict[Word, str] = {}

    # --- reading

    def attached(self, machines: Sequence[str]) -> dict[str, dict[str, str]]:
        """The tags of machines by their managed object id, many a call."""
        ids: dict[str, list[str]] = {}
        for start in range(0, len(machines), CHUNK):
            objects = [_object(one) for one in machines[start : start + CHUNK]]
            found = self._ask("tag-association", "list-attached-tags-on-objects", {"object_ids": objects})
            for one in _list(found):
                ids[str(one["object_id"]["id"])] = [str(tag) for tag in one.get("tag_ids") or ()]
        names = self._names({tag for tags in ids.values() for tag in tags})
        return {one: tags_of(names[tag] for tag in ids.get(one, ())) for one in machines}

    def attached_to(self, machine: str) -> dict[str, str]:
        """The tags of one machine."""
        return tags_of(self.words_on(machine))

    def words_on(self, machine: str) -> list[Word]:
        """The tags of one machine, each by itself."""
        found = self._ask("tag-association", "list-attached-tags", {"object_id": _object(machine)})
        ids = [str(tag) for tag in _list(found)]
        names = self._names(ids)
        return [names[tag] for tag in ids]

    # --- writing

    def attach(self, machine: str, words: Iterable[Word]) -> None:
        """Attach tags to a machine, in one call; all of them exist."""
        body = {"object_id": _object(machine), "tag_ids": [self.id_of(word) for word in words]}
        answer = self._write("tag-association", "attach-multiple-tags-to-object", body)
        result = self._value(answer)
        if isinstance(result, dict) and result.get("success") is False:
            said = "; ".join(str(one.get("message") or one) for one in result.get("error_messages") or ())
            # Of several, some may be on it now: the next observation shows which.
            kind = Transient if len(body["tag_ids"]) > 1 else Invalid
            raise kind(f"not all tags could be attached: {said or 'no reason was given'}")

    def detach(self, machine: str, word: Word) -> None:
        """Detach one tag from a machine."""
        self._write("tag-association", "detach", {"object_id": _object(machine)}, self.id_of(word))

    def ensure(self, words: Sequence[Word]) -> None:
        """Have these tags and their categories exist. They are words, and nobody's resource: nothing deletes them.

        Signed with the LiveSystem they are made for, and with no component: none is changed by it.
        """
        if all(self._is_known(word) for word in words):
            return
        act = current_context() or CallContext("", "", "")
        with calling_as(CallContext(act.live_system_id, "tags", "vocabulary", tags=act.tags)):
            for name in dict.fromkeys(category for category, _ in words):
                self._ensure_in(name, [word for category, word in words if category == name])

    def _ensure_in(self, name: str, wanted: Sequence[str]) -> None:
        category = self._category(name)
        present = self._tags_of(category)
        for tag in wanted:
            if tag not in present:
                present[tag] = self._made("tag", {"name": tag, "description": "", "category_id": category})
        self._known.update({(name, tag): tag_id for tag, tag_id in present.items()})

    def id_of(self, word: Word) -> str:
        """The id of a tag."""
        if word not in self._known:
            self.ensure([word])
        return self._known[word]

    def _is_known(self, word: Word) -> bool:
        """Whether a tag is still what it was: people may rename or delete one."""
        if word not in self._known:
            return False
        try:
            is_same = self._tag(self._known[word]).get("name") == word[1]
        except NotFound:
            is_same = False
        if not is_same:
            del self._known[word]
        return is_same

    def _category(self, name: str) -> str:
        """The id of a category, which is made where there is none: one value a key, but for ours, which has several."""
        named = {str(self._get("category", str(one)).get("name")): str(one) for one in _list(self._get("category"))}
        if name in named:
            return named[name]
        alike = [one for other, one in named.items() if other.casefold() == name.casefold() and name != CATEGORY]
        if alike:
            return alike[0]
        cardinality = "MULTIPLE" if name == CATEGORY else "SINGLE"
        spec = {"name": name, "description": "", "cardinality": cardinality, "associable_types": [_MACHINE]}
        return self._made("category", spec)

    def _tags_of(self, category: str) -> dict[str, str]:
        action = "list-tags-for-category"
        asked = (
            self._ask("tag", action, {}, category)
            if self._is_old
            else self._ask("tag", action, {"category_id": category})
        )
        return {str(self._tag(str(one))["name"]): str(one) for one in _list(asked)}

    def _made(self, noun: str, spec: Mapping[str, Any]) -> str:
        body = {"create_spec": dict(spec)} if self._is_old else dict(spec)
        try:
            return str(self._value(self._write(noun, "", body)))
        except Conflict as error:
            raise Conflict(
                f"{noun} {spec['name']!r} was made by somebody else a moment ago: it is tried again"
            ) from error

    def _names(self, ids: Iterable[str]) -> dict[str, tuple[str, str]]:
        tags = {one: self._tag(one) for one in sorted(set(ids))}
        categories = {str(tag["category_id"]) for tag in tags.values()}
        called = {one: str(self._get("category", one)["name"]) for one in sorted(categories)}
        return {one: (called[str(tag["category_id"])], str(tag["name"])) for one, tag in tags.items()}

    def _tag(self, tag_id: str) -> Mapping[str, Any]:
        found = self._get("tag", tag_id)
        if not isinstance(found, dict) or "name" not in found:
            raise Unreadable(f"the answer for tag {tag_id} has no name")
        return found

    # --- how

    def send(self, call: Call) -> Answer:
        """Send one request in a session; one that was refused because the session ran out is sent in a new one."""
        if call.path.endswith("/session"):
            return super().send(call)
        spent = self._session()
        answer = super().send(call)
        if answer.status != 401:
            return answer
        self._login(spent)
        return super().send(call)

    def _session(self) -> str:
        dialect = self.dialect
        assert isinstance(dialect, VsphereDialect)
        return dialect.session or self._login("")

    def _login(self, spent: str) -> str:
        dialect = self.dialect
        assert isinstance(dialect, VsphereDialect)
        with self._login_lock:
            if dialect.session != spent:
                return dialect.session
            dialect.session = ""
            header = {"authorization": f"Basic {self._secret}"}
            for is_old, path in ((False, "/api/session"), (True, f"{_OLD}/session")):
                answer = super().send(Call("POST", path, headers=header, is_question=True))
                if answer.status == 404 and not is_old:
                    continue
                self._is_old = is_old
                dialect.session = str(self._value(self._good(answer)))
                return dialect.session
        raise Denied("the vCenter has neither /api nor /rest: it is no vCenter, or an older one than 6.5")

    def _get(self, noun: str, one: str = "") -> Any:
        self._session()
        return self._value(self.read(self._path(noun, one)))

    def _ask(self, noun: str, action: str, body: Any, one: str = "") -> Any:
        self._session()
        return self._value(self.ask(self._path(noun, one), body, self._query(action)))

    def _write(self, noun: str, action: str, body: Any, one: str = "") -> Answer:
        self._session()
        return self.write("POST", self._path(noun, one), body, self._query(action) if action else {})

    def _path(self, noun: str, one: str) -> str:
        if self._is_old:
            return f"{_OLD}/tagging/{noun}" + (f"/id:{one}" if one else "")
        return f"{_NEW}/tagging/{noun}" + (f"/{one}" if one else "")

    def _query(self, action: str) -> dict[str, str]:
        return {"~action": action} if self._is_old else {"action": action}

    def _value(self, answer: Answer) -> Any:
        body = answer.body()
        has_value = isinstance(body, dict) and "value" in body if self._is_old else body is not None
        if answer.call.is_read and not has_value:
            raise Unreadable(f"the answer to {answer.call} says nothing: {answer.content[:80]!r}")
        if not self._is_old:
            return body
        if answer.content and not isinstance(body, dict):
            raise Transient(f"the answer to {answer.call} is no object: {answer.content[:80]!r}")
        return (body or {}).get("value")


def _object(machine: str) -> dict[str, str]:
    return {"id": machine, "type": _MACHINE}


def _list(found: Any) -> Iterator[Any]:
    """What a list holds; an empty one may come as nothing."""
    if found is not None and not isinstance(found, list):
        raise Unreadable(f"a list of tags was expected, and {str(found)[:80]!r} came")
    yield from found or ()
