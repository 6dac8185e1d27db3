"""Storage accounts, clusters and database servers: what Azure fills in, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import uuid4

from fractal_sandbox.azure import identity
from fractal_sandbox.azure.arm import Arm
from fractal_sandbox.azure.kinds import ArmKind, Rules, group_of, name_of
from fractal_sandbox.calls import Actor
from fractal_sandbox.managed_clusters import CLUSTERS, address, kubeconfig
from fractal_sandbox.rest import Body, Draft, Kind, Place, Refused, Reply, Request

__all__ = ["CHILDREN", "SERVICE_KINDS", "delete_child", "list_children", "put_child", "user_credential"]

_ACTORS: Final[tuple[Actor, ...]] = ("person", "agent")
# The application that stands for the API servers of clusters, and for which Entra gives tokens.
_KUBERNETES: Final = "6dae42f8-4368-4678-94ff-3fdab4bd0d2e"
_SYSTEM_DATABASES = ("azure_maintenance", "azure_sys", "postgres")
# What lies in an account or on a server, at an address below it, and goes with it; the agent never writes it by itself.
CHILDREN = Kind(
    "children",
    place=lambda body: Place(body["name"], body["parent"]),
    goes_with=lambda body: ("/".join(body["parent"].split("/")[:9]),),
)


def _now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def _complete_account(_: Draft, body: Body, before: Body | None) -> Body:
    properties = body["properties"]
    body.pop("_version", None)
    name = body["name"]
    if not (name.isalnum() and name == name.lower() and 3 <= len(name) <= 24):
        raise Refused(400, "AccountNameInvalid", f"{name} is not a valid storage account name.")
    if before is not None and body.get("kind") != before["kind"]:
        raise Refused(400, "AccountPropertyCannotBeUpdated", "The property 'kind' cannot be changed.")
    properties.setdefault("accessTier", "Hot")
    properties.setdefault("minimumTlsVersion", "TLS1_0")
    properties.setdefault("allowBlobPublicAccess", False)
    properties.setdefault("supportsHttpsTrafficOnly", True)
    properties["provisioningState"] = "Succeeded"
    properties["primaryLocation"] = body["location"]
    properties["creationTime"] = (before or {}).get("properties", {}).get("creationTime") or _now()
    services = ("blob", "file", "queue", "table")
    properties["primaryEndpoints"] = {one: f"https://{name}.{one}.core.windows.net/" for one in services}
    sku = dict(body.get("sku") or {})
    if not sku.get("name"):
        raise Refused(400, "InvalidRequestFormat", "sku.name is missing.")
    body["sku"] = {**sku, "tier": str(sku["name"]).partition("_")[0]}
    return body


def _complete_cluster(draft: Draft, body: Body, before: Body | None) -> Body:
    properties = body["properties"]
    body.pop("_version", None)
    old = (before or {}).get("properties", {})
    pools = properties.get("agentPoolProfiles") or []
    if not pools:
        raise Refused(400, "BadRequest", "At least one agent pool is required.")
    version = str(properties.get("kubernetesVersion") or old.get("kubernetesVersion") or "1.32")
    if before is not None:
        _refuse_jumps(str(old["kubernetesVersion"]), version)
        for name in ("dnsPrefix", "nodeResourceGroup"):
            if properties.get(name, old[name]) != old[name]:
                raise Refused(400, "PropertyChangeNotAllowed", f"Changing property '{name}' is not allowed.")
        if pools[0].get("vmSize") != old["agentPoolProfiles"][0]["vmSize"]:
            raise Refused(400, "PropertyChangeNotAllowed", "Changing property 'vmSize' is not allowed.")
    patch = version if version.count(".") == 2 else f"{version}.4"
    group = old.get("nodeResourceGroup") or properties.get("nodeResourceGroup")
    group = group or f"MC_{group_of(body['id'])}_{body['name']}_{body['location']}"
    properties |= {
        "provisioningState": "Succeeded",
        "powerState": {"code": "Running"},
        "kubernetesVersion": version,
        "currentKubernetesVersion": patch,
        "nodeResourceGroup": group,
    }
    body["_cluster"] = (before or {}).get("_cluster") or uuid4().hex
    properties["resourceUID"] = body["_cluster"][:24]
    properties["fqdn"] = f"{properties.get('dnsPrefix')}-{body['_cluster'][:8]}.hcp.{body['location']}.azmk8s.io"
    body.setdefault("sku", {"name": "Base", "tier": "Free"})
    body["identity"] = {**(body.get("identity") or {}), "principalId": str(uuid4()) if before is None else "kept"}
    if before is not None:
        body["identity"]["principalId"] = before["identity"]["principalId"]
    else:
        _make_group(draft, body, group)
        callers = partial(identity.caller, audience=_KUBERNETES) if properties.get("aadProfile") else None
        CLUSTERS.open(body["_cluster"], callers or {_local(body, actor): actor for actor in _ACTORS}.get)
    return body


def _local(body: Body, actor: Actor) -> str:
    """The token of an account of the cluster itself."""
    return f"aks-{body['_cluster']}-{actor}"


def user_credential(arm: Arm, request: Request, draft: Draft) -> Reply:
    """The kubeconfig of a cluster's users: with an account of its own, or by what `kubelogin` gets of Entra."""
    words = request.words
    found = draft.peek(
        arm.kind.plural,
        f"/subscriptions/{words['subscription']}/resourceGroups/{words['group']}/providers/{arm.kind.type}/"
        f"{words['name']}".lower(),
    )
    if found is None:
        raise Refused(404, "ResourceNotFound", f"The Resource '{words['name']}' was not found.")
    if draft.phase(arm.kind.plural, found["id"].lower()) == "creating":
        raise Refused(409, "OperationNotAllowed", "The cluster is being created.")
    command = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "kubelogin", "args": ["get-token"]}
    by_entra = bool(found["properties"].get("aadProfile"))
    user = {"exec": command} if by_entra else {"token": _local(found, request.actor)}
    server = address(urlsplit(request.base).netloc, found["_cluster"])
    return Reply(200, {"kubeconfigs": [{"name": "clusterUser", "value": kubeconfig(found["name"], server, user)}]})


def _refuse_jumps(here: str, there: str) -> None:
    old, new = (tuple(int(part) for part in text.split(".")) for text in (here, there))
    if new[:2] < old[:2] or new[1] > old[1] + 1:
        words = f"Upgrading Kubernetes version {here} to {there} is not allowed."
        raise Refused(400, "OperationNotAllowed" if new < old else "K8sVersionNotSupported", words)


def _make_group(draft: Draft, body: Body, group: str) -> None:
    made = {
        "id": f"{'/'.join(body['id'].split('/')[:3])}/resourceGroups/{group}",
        "name": group,
        "type": "Microsoft.Resources/resourceGroups",
        "location": body["location"],
        "managedBy": body["id"],
        "tags": body["tags"],
        "properties": {"provisioningState": "Succeeded"},
    }
    draft.put("resourceGroups", group.lower(), made)


def _leave_cluster(draft: Draft, body: Body) -> None:
    """The node group goes, with all that lies in it."""
    CLUSTERS.close(body["_cluster"])
    group = str(body["properties"]["nodeResourceGroup"]).lower()
    draft.remove("resourceGroups", group)
    for disk_id, _ in draft.everything("disks"):
        if group_of(disk_id) == group:
            draft.remove("disks", disk_id)


def _complete_server(draft: Draft, body: Body, before: Body | None) -> Body:
    properties = body["properties"]
    body.pop("_version", None)
    old = (before or {}).get("properties", {})
    for needed in ("version", "storage"):
        if needed not in properties:
            raise Refused(400, "InvalidParameterValue", f"{needed} is missing.")
    if before is not None and int(properties["version"]) < int(old["version"]):
        raise Refused(400, "ServerVersionNotSupported", "A server's version cannot be lowered.")
    size = properties["storage"].get("storageSizeGB", 0)
    if before is not None and size < old["storage"]["storageSizeGB"]:
        raise Refused(400, "StorageSizeDecreaseNotAllowed", "A server's storage cannot shrink.")
    _check_administrator(properties, old)
    backup = {"backupRetentionDays": 7, "geoRedundantBackup": "Disabled", **(properties.get("backup") or {})}
    properties |= {
        "backup": backup,
        "state": "Ready",
        "minorVersion": "4",
        "fullyQualifiedDomainName": f"{body['name']}.postgres.database.azure.com",
    }
    body["systemData"] = (before or {}).get("systemData") or {"createdAt": _now(), "createdByType": "Application"}
    properties.setdefault("network", {"publicNetworkAccess": "Enabled"})
    properties.setdefault("highAvailability", {"mode": "Disabled", "state": "NotEnabled"})
    if before is None:
        for name in _SYSTEM_DATABASES:
            _keep_child(draft, f"{body['id']}/databases", name, {})
    return body


def _check_administrator(properties: Body, old: Body) -> None:
    """Whoever lets passwords in names an administrator with one, once; the password is shown to nobody."""
    password = properties.pop("administratorLoginPassword", None)
    auth = {"activeDirectoryAuth": "Disabled", "passwordAuth": "Enabled", **(properties.get("authConfig") or {})}
    properties["authConfig"] = auth
    login = properties.get("administratorLogin")
    if old.get("administratorLogin") and login != old["administratorLogin"]:
        raise Refused(400, "InvalidParameterValue", "The administrator login name cannot be changed.")
    is_new = login and not old.get("administratorLogin")
    if auth["passwordAuth"] == "Enabled" and (not login or (is_new and not password)):
        raise Refused(400, "InvalidParameterValue", "Password authentication needs an administrator and a password.")


def _leave_with_children(draft: Draft, body: Body) -> None:
    for child_id, _ in draft.everything("children"):
        if child_id.startswith(f"{body['id'].lower()}/"):
            draft.remove("children", child_id)


_SERVER_STATES = {"creating": "Provisioning", "updating": "Updating", "deleting": "Dropping", "ready": "Ready"}
_ACCOUNT = ArmKind("Microsoft.Storage", "storageAccounts", "storage", is_global=True, is_async=False, answers="nothing")
_CLUSTER = ArmKind(
    "Microsoft.ContainerService", "managedClusters", "containerservice", etag="eTag", deletes_guarded=True
)
_SERVER = ArmKind(
    "Microsoft.DBforPostgreSQL",
    "flexibleServers",
    "dbforpostgresql",
    is_global=True,
    state="state",
    answers="operation",
)
SERVICE_KINDS = (
    replace(_ACCOUNT, rules=Rules(_complete_account, leave=_leave_with_children)),
    replace(_CLUSTER, rules=Rules(_complete_cluster, leave=_leave_cluster)),
    replace(_SERVER, states=_SERVER_STATES, rules=Rules(_complete_server, leave=_leave_with_children)),
)


# --- what lies in accounts and on servers


def _keep_child(draft: Draft, collection: str, name: str, properties: Body) -> Body:
    child_id = f"{collection}/{name}"
    body: dict[str, Any] = {"id": child_id, "name": name, "parent": collection.lower(), "properties": properties}
    draft.put("children", child_id.lower(), body)
    return body


def _collection(arm: Arm, request: Request, draft: Draft) -> str:
    words = request.words
    group = f"/subscriptions/{words['subscription']}/resourceGroups/{words['group']}"
    parent = f"{group}/providers/{arm.kind.type}/{words['name']}"
    if draft.peek(arm.kind.plural, parent.lower()) is None:
        raise Refused(404, "ResourceNotFound", f"The Resource '{name_of(parent)}' was not found.")
    service = f"{words['service']}/default/" if "service" in words else ""
    return f"{parent}/{service}{words['collection']}"


def list_children(arm: Arm, request: Request, draft: Draft) -> Reply:
    """A collection whole: they are few here."""
    collection = _collection(arm, request, draft)
    found = [body for _, body in draft.all("children") if body["parent"] == collection.lower()]
    return Reply(200, {"value": [{key: one[key] for key in ("id", "name", "properties")} for one in found]})


def put_child(arm: Arm, request: Request, draft: Draft) -> Reply:
    properties = dict((request.json() or {}).get("properties") or {})
    made = _keep_child(draft, _collection(arm, request, draft), request.words["child"], properties)
    return Reply(201, {key: made[key] for key in ("id", "name", "properties")})


def delete_child(arm: Arm, request: Request, draft: Draft) -> Reply:
    child_id = f"{_collection(arm, request, draft)}/{request.words['child']}".lower()
    if draft.peek("children", child_id) is None:
        return Reply(204)
    draft.remove("children", child_id)
    return Reply(200)
