"""Fixes for moto's ECS."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from moto.core.utils import camelcase_to_underscores

from fractal_sandbox.aws.answer import Answer, AwsError, read, written
from fractal_sandbox.aws.moto_fixes.registry import FixContext, fix
from fractal_sandbox.aws.request import AwsRequest
from fractal_sandbox.aws.resources import Ref, backend, find, live, ref_from_arn
from fractal_sandbox.calls import Call

__all__: list[str] = []

_MOST_SERVICES = 10
_FORGOTTEN = frozenset(
    {
        *("capacityProviderStrategy", "deploymentConfiguration", "enableECSManagedTags", "placementConstraints"),
        *("healthCheckGracePeriodSeconds", "placementStrategy"),
    }
)
_MOST_CLUSTERS = 100


@fix("ecs", "CreateCluster")
def return_the_existing_cluster(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto replaces a cluster of that name and wipes its tags; AWS answers with the one there is, unchanged."""
    ref = Ref("ecs-cluster", call.parameters.get("clusterName") or "default", call.region)
    existing = find(ref)
    if existing is not None and existing.status == "ACTIVE":
        found = context.ask(request, "DescribeClusters", {"clusters": [ref.id], "include": ["TAGS"]})
        return replace(written(request, {"cluster": found["clusters"][0]}), is_replay=True)
    answer = context.dispatch(request)
    if answer.is_success:
        made = find(ref)
        assert made is not None
        made.tags = made.tags or []  # AWS shows an empty list where there is no tag, moto no list at all
    return answer


@fix("ecs", "DeleteCluster")
def keep_a_cluster_with_services(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto deletes a cluster with services inside; AWS refuses."""
    name = _cluster_name(call)
    services = [ref for ref in live("ecs-service", call.region) if ref.id.startswith(f"{name}/")]
    draining = [
        ref for ref in _all_services(call.region) if ref.id.startswith(f"{name}/") and context.lifecycle.phase(ref)
    ]
    if services or draining:
        raise AwsError("ClusterContainsServicesException", "The Cluster cannot be deleted while Services are active.")
    return context.dispatch(request)


@fix("ecs", "CreateService")
def create_a_service_once(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto replaces a service of that name and never runs its tasks.

    AWS answers with the first one if the client token is the same, and refuses otherwise. Its tasks come up: here at
    once, unless the knobs slow it down.
    """
    _refuse_inactive_cluster(call)
    ref = _service_ref(call, call.parameters.get("serviceName", ""))
    existing = find(ref)
    token = call.parameters.get("clientToken")
    key = ("CreateService", ref)
    if existing is not None and existing.status == "ACTIVE":
        if not token or context.memory.get(key) != token:
            raise AwsError("InvalidParameterException", "Creation of service was not idempotent.")
        cluster, name = ref.id.split("/", 1)
        found = context.ask(request, "DescribeServices", {"cluster": cluster, "services": [name], "include": ["TAGS"]})
        return replace(written(request, {"service": found["services"][0]}), is_replay=True)
    answer = context.dispatch(request)
    if answer.is_success:
        context.memory[key] = token
        made: Any = find(ref)
        made.created_at = datetime.now(UTC)  # moto leaves it out
        _run_tasks(made)
        data = read(request, answer)
        data["service"]["createdAt"] = made.created_at
        for name in _FORGOTTEN & call.parameters.keys():  # moto takes these from updates alone
            setattr(made, camelcase_to_underscores(name), call.parameters[name])
            data["service"][name] = call.parameters[name]
        answer = written(request, data, like=answer)
    return answer


@fix("ecs", "UpdateService")
def run_the_tasks_of_an_updated_service(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto updates dead services, and leaves the deployment as it was; AWS refuses, and rolls the change out."""
    ref = _service_ref(call, call.parameters.get("service", ""))
    existing = find(ref)
    if existing is not None and (existing.status != "ACTIVE" or context.lifecycle.phase(ref) == "deleting"):
        raise AwsError("ServiceNotActiveException", "Service was not ACTIVE.")
    answer = context.dispatch(request)
    if answer.is_success:
        _run_tasks(find(ref))
    return answer


@fix("ecs", "DescribeServices")
def describe_at_most_ten_services(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto describes any number of services in one call; AWS ten."""
    if len(call.parameters.get("services") or []) > _MOST_SERVICES:
        raise AwsError("InvalidParameterException", f"Services cannot have more than {_MOST_SERVICES} elements.")
    return context.dispatch(request)


@fix("ecs", "DescribeClusters")
def describe_at_most_a_hundred_clusters(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto describes any number of clusters in one call; AWS a hundred."""
    if len(call.parameters.get("clusters") or []) > _MOST_CLUSTERS:
        raise AwsError("InvalidParameterException", f"Clusters cannot have more than {_MOST_CLUSTERS} elements.")
    return context.dispatch(request)


@fix("ecs", "ListServices")
def list_only_the_services_of_this_cluster(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto lists the services of `blue` also for a cluster `ue`, and dead ones; AWS neither."""
    cluster = _cluster_name(call)
    return _only_active(context, request, "serviceArns", f"{cluster}/")


@fix("ecs", "ListClusters")
def list_only_living_clusters(context: FixContext, request: AwsRequest, _: Call) -> Answer:
    """moto lists clusters that were deleted; AWS does not, though they can still be described."""
    return _only_active(context, request, "clusterArns", "")


def _only_active(context: FixContext, request: AwsRequest, key: str, prefix: str) -> Answer:
    answer = context.dispatch(request)
    if not answer.is_success:
        return answer
    data = read(request, answer)
    refs = {arn: ref_from_arn(arn) for arn in data.get(key, [])}
    kept = [arn for arn, ref in refs.items() if ref and ref.id.startswith(prefix) and _is_active(ref)]
    return answer if kept == data.get(key) else written(request, {**data, key: kept}, answer)


def _is_active(ref: Ref) -> bool:
    found = find(ref)
    return found is not None and found.status == "ACTIVE"


def _cluster_name(call: Call) -> str:
    """Return the name of the cluster that a call names by its name or its ARN."""
    return str(call.parameters.get("cluster") or "default").rsplit("/", 1)[-1]


def _service_ref(call: Call, name: str) -> Ref:
    cluster = _cluster_name(call)
    return Ref("ecs-service", f"{cluster}/{name.rsplit('/', 1)[-1]}", call.region)


def _all_services(region: str) -> list[Ref]:
    return [Ref("ecs-service", key.replace(":", "/", 1), region) for key in backend("ecs", region).services]


def _refuse_inactive_cluster(call: Call) -> None:
    name = _cluster_name(call)
    cluster = find(Ref("ecs-cluster", name, call.region))
    if cluster is not None and cluster.status != "ACTIVE":
        raise AwsError("ClusterNotFoundException", "Cluster not found.")


def _run_tasks(service: Any) -> None:
    service.running_count = service.desired_count
    service.pending_count = 0
    for deployment in service.deployments[:1]:
        deployment.update(
            desiredCount=service.desired_count,
            runningCount=service.desired_count,
            pendingCount=0,
            taskDefinition=service.task_definition,
            rolloutState="COMPLETED",
            rolloutStateReason=f"ECS deployment {deployment['id']} completed.",
        )
