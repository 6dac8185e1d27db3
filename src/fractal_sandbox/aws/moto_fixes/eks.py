"""Fixes for moto's EKS: updates, which it hardly has, and the settings it does not keep."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from fractal_sandbox.aws.answer import Answer, AwsError, written
from fractal_sandbox.aws.eks_tokens import caller
from fractal_sandbox.aws.moto_fixes.registry import FixContext, fix
from fractal_sandbox.aws.request import AwsRequest
from fractal_sandbox.aws.resources import Ref, find, not_found
from fractal_sandbox.calls import Call
from fractal_sandbox.managed_clusters import CLUSTERS, address, certificate

__all__: list[str] = []

_LOG_TYPES = ("api", "audit", "authenticator", "controllerManager", "scheduler")
_VPC_DEFAULTS = {"endpointPublicAccess": True, "endpointPrivateAccess": False, "publicAccessCidrs": ["0.0.0.0/0"]}


@fix("eks", "CreateCluster")
def keep_all_settings(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto forgets some settings and shows no defaults; AWS shows both."""
    answer = context.dispatch(request)
    if answer.is_success:
        cluster = _cluster(call)
        given = call.parameters
        wanted_vpc = given.get("resourcesVpcConfig") or {}
        cluster.resources_vpc_config = {**_VPC_DEFAULTS, **_vpc_of(wanted_vpc, call.region), **wanted_vpc}
        cluster.logging = _merged_logging({}, given.get("logging") or {})
        cluster.access_config = {"authenticationMode": "CONFIG_MAP", **(given.get("accessConfig") or {})}
        cluster.upgrade_policy = {"supportType": "EXTENDED", **(given.get("upgradePolicy") or {})}
        cluster.deletion_protection = bool(given.get("deletionProtection"))
        cluster.tags = cluster.tags or {}
        key = uuid.uuid4().hex
        CLUSTERS.open(key, partial(caller, cluster=cluster.name))
        host = f"{request.environ['SERVER_NAME']}:{request.environ['SERVER_PORT']}"
        cluster.endpoint = f"https://{address(host, key)}"
        cluster.certificate_authority = {"data": certificate()}
    return answer


@fix("eks", "DeleteCluster")
def respect_deletion_protection(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto knows no deletion protection; AWS refuses to delete what has it."""
    cluster = _cluster(call)
    if getattr(cluster, "deletion_protection", False):
        raise AwsError("InvalidRequestException", f"Cluster {cluster.name} has deletion protection enabled.")
    if cluster.nodegroup_count:
        raise AwsError("ResourceInUseException", "Cluster has nodegroups attached", 409)
    answer = context.dispatch(request)
    if answer.is_success:
        CLUSTERS.close(cluster.endpoint.rpartition("/")[2])
    return answer


@fix("eks", "UntagResource")
def remove_every_tag_named(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto removes only the first of several keys; AWS removes all of them."""
    answer = context.dispatch(request)
    name = str(call.parameters.get("resourceArn", "")).rpartition("/")[2]
    cluster = find(Ref("eks-cluster", name, call.region))
    if answer.is_success and cluster is not None:
        for key in call.parameters.get("tagKeys") or []:
            cluster.tags.pop(key, None)
    return answer


@fix("eks", "UpdateClusterConfig")
def update_one_kind_of_setting(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto overwrites the whole VPC configuration, accepts several kinds and answers without `update`.

    AWS merges, takes one kind of setting a call, refuses a change that changes nothing, and answers with an update.
    """
    cluster = _cluster(call)
    kinds = [name for name in call.parameters if name not in ("name", "clientRequestToken")]
    if len(kinds) != 1:
        raise AwsError("InvalidParameterException", "Only one type of update can be allowed.")
    kind = kinds[0]
    if kind not in _UPDATES:
        raise AwsError("InvalidParameterException", f"The sandbox cannot update {kind!r}.")
    attribute, update_type, merged = _UPDATES[kind]
    before = getattr(cluster, attribute, None)
    after = merged(copy.deepcopy(before), call.parameters[kind])
    if after == before:
        raise AwsError("InvalidParameterException", f"Cluster is already at the desired configuration with {kind}.")
    setattr(cluster, attribute, after)
    return written(request, {"update": _remember(context, call, update_type, call.parameters[kind])})


@fix("eks", "UpdateClusterVersion")
def update_one_minor_version(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto has no UpdateClusterVersion; AWS goes up one minor version at a time."""
    cluster = _cluster(call)
    wanted = call.parameters.get("version", "")
    if wanted == cluster.version:
        raise AwsError("InvalidParameterException", f"Cluster is already at version {wanted}.")
    if _minor(wanted) != _minor(cluster.version) + 1:
        raise AwsError(
            "InvalidParameterException",
            f"Unsupported Kubernetes minor version update from {cluster.version} to {wanted}",
        )
    cluster.version = wanted
    return written(request, {"update": _remember(context, call, "VersionUpdate", wanted)})


@fix("eks", "DescribeUpdate")
def describe_update(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto has no DescribeUpdate; AWS reports the state of every update."""
    update = _updates(context, call).get(call.parameters.get("updateId", ""))
    if update is None:
        raise AwsError("ResourceNotFoundException", f"No update found for ID: {call.parameters.get('updateId')}", 404)
    is_newest = update is list(_updates(context, call).values())[-1]
    is_running = is_newest and context.lifecycle.phase(_ref(call)) == "modifying"
    return written(request, {"update": {**update, "status": "InProgress" if is_running else "Successful"}})


@fix("eks", "ListUpdates")
def list_updates(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto has no ListUpdates; AWS lists the ids of all updates of a cluster."""
    return written(request, {"updateIds": list(_updates(context, call))})


def _ref(call: Call) -> Ref:
    return Ref("eks-cluster", call.parameters.get("name", ""), call.region)


def _cluster(call: Call) -> Any:
    cluster = find(_ref(call))
    if cluster is None:
        code, status, message = not_found(_ref(call))
        raise AwsError(code, message, status)
    return cluster


def _vpc_of(config: dict[str, Any], region: str) -> dict[str, str]:
    """Return the id of the VPC to which the first of the subnets belongs, as AWS shows it."""
    for subnet_id in (config.get("subnetIds") or [])[:1]:
        subnet = find(Ref("subnet", subnet_id, region))
        if subnet is not None:
            return {"vpcId": subnet.vpc_id}
    return {}


def _updates(context: FixContext, call: Call) -> dict[str, dict[str, Any]]:
    updates: dict[str, dict[str, Any]] = context.memory.setdefault(("updates", _ref(call)), {})
    return updates


def _remember(context: FixContext, call: Call, update_type: str, value: Any) -> dict[str, Any]:
    update = {
        "id": str(uuid.uuid4()),
        "status": "InProgress",
        "type": update_type,
        "params": [{"type": "Version" if update_type == "VersionUpdate" else "ClusterLogging", "value": str(value)}],
        "createdAt": datetime.now(UTC),
        "errors": [],
    }
    _updates(context, call)[str(update["id"])] = update
    return update


def _minor(version: str) -> int:
    _, _, minor = version.partition(".")
    return int(minor) if minor.isdigit() else -1


def _merged_map(before: Any, wanted: Any) -> Any:
    return {**(before or {}), **wanted}


def _merged_value(_: Any, wanted: Any) -> Any:
    return wanted


def _merged_logging(before: Any, wanted: Any) -> Any:
    enabled = {
        name for setup in before.get("clusterLogging", []) if setup.get("enabled") for name in setup.get("types", [])
    }
    for setup in wanted.get("clusterLogging", []):
        types = set(setup.get("types") or [])
        enabled = enabled | types if setup.get("enabled") else enabled - types
    shown = [
        {"types": [name for name in _LOG_TYPES if (name in enabled) is state], "enabled": state}
        for state in (True, False)
    ]
    return {"clusterLogging": [setup for setup in shown if setup["types"]]}


_UPDATES: dict[str, tuple[str, str, Callable[[Any, Any], Any]]] = {
    "resourcesVpcConfig": ("resources_vpc_config", "EndpointAccessUpdate", _merged_map),
    "logging": ("logging", "LoggingUpdate", _merged_logging),
    "accessConfig": ("access_config", "AccessConfigUpdate", _merged_map),
    "upgradePolicy": ("upgrade_policy", "UpgradePolicyUpdate", _merged_map),
    "deletionProtection": ("deletion_protection", "DeletionProtectionUpdate", _merged_value),
}
