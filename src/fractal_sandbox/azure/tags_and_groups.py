"""What is the same for resources of every kind: their tags, the groups they lie in, and lists over all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fractal_sandbox.azure.arm import merged, page, show, tags_of
from fractal_sandbox.azure.kinds import ArmKind, group_of, the_kind
from fractal_sandbox.azure.locks import refuse_if_locked
from fractal_sandbox.fault_injection import Knobs
from fractal_sandbox.rest import Body, Draft, Kind, Place, Refused, Reply, Request

__all__ = ["GROUPS", "Across"]

GROUPS = Kind(
    "resourceGroups",
    place=lambda body: Place(body["name"].lower(), ""),
    goes_with=lambda body: (str(body.get("managedBy") or "").lower(),),  # the group of a cluster's nodes
)
_TYPE = re.compile(r"type\s*=~\s*'([^']+)'")
_TAG = re.compile(r"tags\['([^']+)'\]\s*=~\s*'([^']*)'")
_PLAIN = ("id", "name", "type", "location", "tags", "sku", "kind")


class Across:
    """The handlers of everything that knows no kind."""

    def __init__(self, kinds: tuple[ArmKind, ...], knobs: Knobs) -> None:
        self._kinds = kinds
        self._knobs = knobs

    # --- tags

    def get_tags(self, request: Request, draft: Draft) -> Reply:
        _, _, body = self._resource(request, draft)
        return _tags_reply(body)

    def update_tags(self, request: Request, draft: Draft) -> Reply:
        """Merge, replace or delete tags; keys are compared without regard to case, and values must fit to go."""
        kind, key, body = self._resource(request, draft)
        refuse_if_locked(draft, body["id"], deletes=False)
        if kind.service == "network" and draft.phase(kind.plural, key) is not None:
            words = f"Operation on {body['id']} cannot be run: another operation is in progress."
            raise Refused(429, "RetryableErrorDueToAnotherOperation", words)
        given = request.json() or {}
        tags = tags_of((given.get("properties") or {}).get("tags"))
        old: dict[str, str] = dict(body.get("tags") or {})
        match given.get("operation"):
            case "Merge":
                after = _merged(old, tags)
            case "Replace":
                after = tags
            case "Delete":
                gone = {key.lower(): value for key, value in tags.items()}
                after = {
                    key: value
                    for key, value in old.items()
                    if key.lower() not in gone or gone[key.lower()] not in ("", value)
                }
            case other:
                raise Refused(
                    400, "InvalidTagsOperation", f"The operation '{other}' is none of Merge, Replace, Delete."
                )
        changed = {**body, "tags": tags_of(after)}
        if kind.etag:
            changed[kind.etag] = f'W/"tags-{abs(hash((body.get(kind.etag), tuple(sorted(after.items())))))}"'
        draft.put(kind.plural, key, changed)
        return _tags_reply(changed)

    def _resource(self, request: Request, draft: Draft) -> tuple[ArmKind, str, Body]:
        identity = f"/{request.words['scope']}"
        parts = identity.split("/")
        kind = the_kind(self._kinds, parts[-2] if len(parts) == 9 else "")
        body = draft.peek(kind.plural, identity.lower())
        if body is None:
            raise Refused(404, "ResourceNotFound", f"The Resource '{identity}' was not found.")
        return kind, identity.lower(), body

    # --- groups

    def list_groups(self, request: Request, draft: Draft) -> Reply:
        part, following = page(request, [body for _, body in draft.all("resourceGroups")], self._size())
        return Reply(200, {"value": part, **({"nextLink": following} if following else {})})

    def get_group(self, request: Request, draft: Draft) -> Reply:
        name = request.words["group"]
        body = draft.find("resourceGroups", name.lower())
        if body is None:
            raise Refused(404, "ResourceGroupNotFound", f"Resource group '{name}' could not be found.")
        return Reply(200, body)

    def put_group(self, request: Request, draft: Draft) -> Reply:
        name = request.words["group"]
        before = draft.peek("resourceGroups", name.lower())
        given = request.json() or {}
        body = {
            "id": f"/subscriptions/{request.words['subscription']}/resourceGroups/{name}",
            "name": name,
            "type": "Microsoft.Resources/resourceGroups",
            "location": str(given.get("location", "")).replace(" ", "").lower(),
            "tags": tags_of(given.get("tags")),
            "properties": {"provisioningState": "Succeeded"},
        }
        draft.put("resourceGroups", name.lower(), merged(before or {}, body))
        return Reply(200 if before else 201, body)

    def delete_group(self, request: Request, draft: Draft) -> Reply:
        """Everything in a group goes with it."""
        name = request.words["group"].lower()
        if draft.peek("resourceGroups", name) is None:
            raise Refused(404, "ResourceGroupNotFound", f"Resource group '{name}' could not be found.")
        for kind in self._kinds:
            for identity, _ in draft.everything(kind.plural):
                if group_of(identity) == name:
                    refuse_if_locked(draft, identity, deletes=True)
                    draft.remove(kind.plural, identity)
        draft.remove("resourceGroups", name)
        return Reply(202)

    # --- lists over all kinds

    def list_resources(self, request: Request, draft: Draft) -> Reply:
        """All resources; filtered by a tag, Azure leaves the tags out of the answer."""
        group = request.words.get("group", "").lower()
        asked = request.query.get("$filter", "")
        wanted, tag, value = (_asked_for(name, asked) for name in ("resourceType", "tagName", "tagValue"))
        hidden = () if tag is None else ("tags",)
        found = []
        for kind, body in self._everything(draft):
            tags = {key.lower(): text for key, text in (body.get("tags") or {}).items()}
            is_wanted = (
                wanted in (None, kind.type.lower())
                and (not group or group_of(body["id"]) == group)
                and (tag is None or tag in tags)
                and (value is None or tags.get(tag or "", "").lower() == value)
            )
            if is_wanted:
                found.append({name: body[name] for name in _PLAIN if name in body and name not in hidden})
        part, following = page(request, found, self._size())
        return Reply(200, {"value": part, **({"nextLink": following} if following else {})})

    def graph(self, request: Request, draft: Draft) -> Reply:
        """Resource Graph, for questions by type and by tag."""
        asked = request.json() or {}
        query = str(asked.get("query") or "")
        if not query.lower().strip().startswith("resources"):
            raise Refused(400, "BadRequest", "The sandbox answers questions about the table `resources` only.")
        kind_wanted, tag_wanted = _TYPE.search(query), _TAG.search(query)
        rows = []
        for kind, body in self._everything(draft):
            tags = {key.lower(): value for key, value in (body.get("tags") or {}).items()}
            if kind_wanted and kind_wanted.group(1).lower() != kind.type.lower():
                continue
            if tag_wanted and tags.get(tag_wanted.group(1).lower(), "").lower() != tag_wanted.group(2).lower():
                continue
            rows.append({**show(kind, draft, body), "resourceGroup": group_of(body["id"]), "type": kind.type.lower()})
        options = asked.get("options") or {}
        offset, size = int(options.get("$skipToken") or 0), min(int(options.get("$top") or 1000), 1000)
        part = rows[offset : offset + size]
        content = {"totalRecords": len(rows), "count": len(part), "data": part, "resultTruncated": "false"}
        if offset + size < len(rows):
            content["$skipToken"] = str(offset + size)
        return Reply(200, content)

    def _everything(self, draft: Draft) -> Iterator[tuple[ArmKind, Body]]:
        for kind in self._kinds:
            for _, body in draft.all(kind.plural):
                yield kind, body

    def _size(self) -> int:
        return self._knobs.page_size or 100


def _asked_for(name: str, text: str) -> str | None:
    found = re.search(rf"{name} eq '([^']*)'", text)
    return found.group(1).lower() if found else None


def _merged(old: dict[str, str], new: dict[str, str]) -> dict[str, str]:
    written = {key.lower(): value for key, value in new.items()}
    kept = {key: written.pop(key.lower(), value) for key, value in old.items()}
    return {**kept, **{key: value for key, value in new.items() if key.lower() in written}}


def _tags_reply(body: Body) -> Reply:
    identity = f"{body['id']}/providers/Microsoft.Resources/tags/default"
    content = {"id": identity, "name": "default", "type": "Microsoft.Resources/tags"}
    return Reply(200, {**content, "properties": {"tags": body.get("tags") or {}}})
