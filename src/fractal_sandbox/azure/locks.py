"""Management locks: what a person puts on a resource so that nobody deletes it."""

from __future__ import annotations

from fractal_sandbox.rest import Draft, Kind, Place, Refused, Reply, Request

__all__ = ["LOCKS", "delete_lock", "put_lock", "refuse_if_locked"]

LOCKS = Kind("locks", place=lambda body: Place(body["name"], body["scope"]))


def put_lock(request: Request, draft: Draft) -> Reply:
    scope, name = f"/{request.words['scope']}", request.words["lock"]
    body = {
        "id": f"{scope}/providers/Microsoft.Authorization/locks/{name}",
        "type": "Microsoft.Authorization/locks",
        "name": name,
        "scope": scope.lower(),
        "properties": dict((request.json() or {}).get("properties") or {}),
    }
    draft.put("locks", str(body["id"]).lower(), body)
    return Reply(201, {key: value for key, value in body.items() if key != "scope"})


def delete_lock(request: Request, draft: Draft) -> Reply:
    lock_id = f"/{request.words['scope']}/providers/Microsoft.Authorization/locks/{request.words['lock']}".lower()
    if draft.peek("locks", lock_id) is None:
        return Reply(204)
    draft.remove("locks", lock_id)
    return Reply(200)


def refuse_if_locked(draft: Draft, resource_id: str, *, deletes: bool) -> None:
    """Refuse what a lock on the resource, or on what it lies in, forbids."""
    for _, lock in draft.everything("locks"):
        level = lock["properties"].get("level")
        forbids = level == "ReadOnly" or (deletes and level == "CanNotDelete")
        if forbids and (resource_id.lower() + "/").startswith(lock["scope"] + "/"):
            raise Refused(
                409,
                "ScopeLocked",
                f"The scope '{resource_id}' cannot perform this operation because following scope(s) are locked: "
                f"'{lock['scope']}'. Please remove the lock and try again.",
            )
