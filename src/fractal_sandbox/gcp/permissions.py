"""Which permissions of IAM a call needs, and on what: as Google's reference says of each method.

What a call needs depends on what it says: a machine that acts as a service account needs the right to act as it. A
call that stands nowhere here needs what nobody can grant: an unknown right is a missing one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from fractal_sandbox.gcp import NUMBERS
from fractal_sandbox.rest import Draft, Request, Route

__all__ = ["ACT_AS", "Need", "default_account", "needs_of"]

ACT_AS: Final = "iam.serviceAccounts.actAs"


@dataclass(frozen=True)
class Need:
    """One permission on one resource; `roles`: the roles whose grants the call changes, where it changes a policy."""

    permission: str
    resource: str
    roles: tuple[str, ...] = ()


Needs: TypeAlias = Callable[[Request, Draft], Iterator[Need]]
Body: TypeAlias = Mapping[str, Any]


def needs_of(request: Request, route: Route, draft: Draft) -> list[Need]:
    """Everything a call needs."""
    key = f"{route.service}.{route.operation}"
    if key in _PLAIN:
        return [Need(_PLAIN[key], _project(request))]
    if key in _SPECIAL:
        return list(_SPECIAL[key](request, draft))
    return [Need(f"unknown permission of {key}", _project(request))]


def default_account(project: str) -> str:
    """The account that machines of a project act as where nobody names another."""
    return f"{NUMBERS[project]}-compute@developer.gserviceaccount.com"


def _project(request: Request) -> str:
    return f"projects/{request.words.get('project') or request.query.get('project', '')}"


def _bucket(request: Request) -> str:
    return f"projects/_/buckets/{request.words['name']}"


def _acting(email: str) -> Need:
    return Need(ACT_AS, f"projects/-/serviceAccounts/{email}")


# --- machines


def _insert_machine(request: Request, draft: Draft) -> Iterator[Need]:
    del draft
    asked: Body = request.json()
    here = _project(request)
    yield Need("compute.instances.create", here)
    for disk in asked.get("disks") or ():
        made_of = disk.get("initializeParams")
        if made_of is None:
            yield Need("compute.disks.use", here)
            continue
        yield Need("compute.disks.create", here)
        image = str(made_of.get("sourceImage", ""))
        if image.startswith(f"{here}/"):  # those of debian-cloud and the like are open to everybody
            yield Need("compute.images.useReadOnly", here)
    for interface in asked.get("networkInterfaces") or ():
        yield Need("compute.subnetworks.use", here)
        if interface.get("accessConfigs"):
            yield Need("compute.subnetworks.useExternalIp", here)
    for field, permission in _FIELDS_OF_MACHINES.items():
        if asked.get(field):
            yield Need(f"compute.instances.{permission}", here)
    yield from (_acting(one["email"]) for one in asked.get("serviceAccounts") or ())


_FIELDS_OF_MACHINES: Final = {
    "metadata": "setMetadata",
    "tags": "setTags",
    "labels": "setLabels",
    "deletionProtection": "setDeletionProtection",
    "serviceAccounts": "setServiceAccount",
}


def _accounts_of(request: Request, draft: Draft) -> list[str]:
    """What a machine acts as: whoever changes its metadata decides what it runs."""
    key = "/".join(request.words[word] for word in ("project", "zone", "name"))
    machine = draft.peek("instance", key) or {}
    return [one["email"] for one in machine.get("serviceAccounts") or ()]


def _set_metadata(request: Request, draft: Draft) -> Iterator[Need]:
    yield Need("compute.instances.setMetadata", _project(request))
    yield from map(_acting, _accounts_of(request, draft))


def _set_account(request: Request, draft: Draft) -> Iterator[Need]:
    del draft
    yield Need("compute.instances.setServiceAccount", _project(request))
    email = (request.json() or {}).get("email")
    if email:
        yield _acting(email)


def _add_address(request: Request, draft: Draft) -> Iterator[Need]:
    del draft
    yield Need("compute.instances.addAccessConfig", _project(request))
    yield Need("compute.subnetworks.useExternalIp", _project(request))


def _insert_into_network(plural: str) -> Needs:
    """Subnets and firewall rules change the network that they are of."""

    def needs(request: Request, draft: Draft) -> Iterator[Need]:
        del draft
        yield Need(f"compute.{plural}.create", _project(request))
        yield Need("compute.networks.updatePolicy", _project(request))

    return needs


# --- what runs as somebody


def _run(verb: str) -> Needs:
    def needs(request: Request, draft: Draft) -> Iterator[Need]:
        yield Need(f"run.services.{verb}", _project(request))
        project = request.words["project"]
        before = draft.peek(
            "service", "/".join(request.words.get(word, "") for word in ("project", "location", "name"))
        )
        given = (request.json() or {}).get("template") or (before or {}).get("template") or {}
        yield _acting(given.get("serviceAccount") or default_account(project))

    return needs


def _create_cluster(request: Request, draft: Draft) -> Iterator[Need]:
    del draft
    yield Need("container.clusters.create", _project(request))
    asked: Body = request.json()["cluster"]
    defaults = (asked.get("autoscaling") or {}).get("autoprovisioningNodeDefaults") or {}
    pools = [one.get("config") or {} for one in asked.get("nodePools") or ()] or [defaults]
    for config in pools:
        yield _acting(config.get("serviceAccount") or default_account(request.words["project"]))


# --- buckets and what opens them


def _patch_bucket(request: Request, draft: Draft) -> Iterator[Need]:
    """Who may reach a bucket's objects is a matter of its policy, also where a field of the bucket says it."""
    del draft
    yield Need("storage.buckets.update", _bucket(request))
    asked: Body = request.json() or {}
    if "publicAccessPrevention" in (asked.get("iamConfiguration") or {}) or {"acl", "defaultObjectAcl"} & asked.keys():
        yield Need("storage.buckets.setIamPolicy", _bucket(request))


def _set_policy(request: Request, draft: Draft) -> Iterator[Need]:
    before = draft.peek("iamPolicy", request.words["name"]) or {}
    changed = _grants(before) ^ _grants(request.json() or {})
    yield Need("storage.buckets.setIamPolicy", _bucket(request), tuple(sorted({role for role, _, _ in changed})))


def _grants(policy: Body) -> set[tuple[str, str, str]]:
    bindings = policy.get("bindings") or ()
    return {(one["role"], str(one.get("condition")), member) for one in bindings for member in one["members"]}


def _of_bucket(permission: str) -> Needs:
    return lambda request, _: iter((Need(permission, _bucket(request)),))


# By service and operation, as the routes call them.
_PLAIN: Final[Mapping[str, str]] = {
    "cloudresourcemanager.getProject": "resourcemanager.projects.get",
    "compute.listInstances": "compute.instances.list",
    "compute.listInstancesOfAllZones": "compute.instances.list",
    "compute.getInstance": "compute.instances.get",
    "compute.deleteInstance": "compute.instances.delete",
    "compute.getDisk": "compute.disks.get",
    **{
        f"compute.{verb}": f"compute.instances.{verb}"
        for verb in ("setLabels", "setTags", "setMachineType", "setDeletionProtection", "deleteAccessConfig")
    },
    **{f"compute.{verb}": f"compute.instances.{verb}" for verb in ("start", "stop", "suspend", "resume")},
    **{
        f"compute.{verb}{noun}{'s' if verb == 'list' else ''}": f"compute.{plural}.{right}"
        for noun, plural in (("Network", "networks"), ("Subnetwork", "subnetworks"), ("Firewall", "firewalls"))
        for verb, right in (
            *(("list", "list"), ("get", "get"), ("insert", "create")),
            *(("patch", "update"), ("delete", "delete")),
        )
    },
    "container.listClusters": "container.clusters.list",
    "container.getCluster": "container.clusters.get",
    "container.updateCluster": "container.clusters.update",
    "container.setResourceLabels": "container.clusters.update",
    "container.deleteCluster": "container.clusters.delete",
    "run.listServices": "run.services.list",
    "run.getService": "run.services.get",
    "run.deleteService": "run.services.delete",
    "sql.listInstances": "cloudsql.instances.list",
    "sql.insertInstance": "cloudsql.instances.create",
    "sql.getInstance": "cloudsql.instances.get",
    "sql.patchInstance": "cloudsql.instances.update",
    "storage.listBuckets": "storage.buckets.list",
    "storage.insertBucket": "storage.buckets.create",
    "storage.listHmacKeys": "storage.hmacKeys.list",
    "storage.createHmacKey": "storage.hmacKeys.create",
    "storage.updateHmacKey": "storage.hmacKeys.update",
    "storage.deleteHmacKey": "storage.hmacKeys.delete",
    "iam.listServiceAccounts": "iam.serviceAccounts.list",
    "iam.createServiceAccount": "iam.serviceAccounts.create",
    "iam.getServiceAccount": "iam.serviceAccounts.get",
    "iam.deleteServiceAccount": "iam.serviceAccounts.delete",
}


def _delete_database(request: Request, draft: Draft) -> Iterator[Need]:
    del draft
    yield Need("cloudsql.instances.delete", _project(request))
    if request.query.get("enableFinalBackup") == "true":
        yield Need("cloudsql.backupRuns.create", _project(request))


_SPECIAL: Final[Mapping[str, Needs]] = {
    "compute.insertInstance": _insert_machine,
    "compute.insertSubnetwork": _insert_into_network("subnetworks"),
    "compute.insertFirewall": _insert_into_network("firewalls"),
    "compute.setMetadata": _set_metadata,
    "compute.setServiceAccount": _set_account,
    "compute.addAccessConfig": _add_address,
    "container.createCluster": _create_cluster,
    "run.createService": _run("create"),
    "run.updateService": _run("update"),
    "sql.deleteInstance": _delete_database,
    "storage.getBucket": _of_bucket("storage.buckets.get"),
    "storage.patchBucket": _patch_bucket,
    "storage.deleteBucket": _of_bucket("storage.buckets.delete"),
    "storage.listObjects": _of_bucket("storage.objects.list"),
    "storage.getBucketIamPolicy": _of_bucket("storage.buckets.getIamPolicy"),
    "storage.setBucketIamPolicy": _set_policy,
}
