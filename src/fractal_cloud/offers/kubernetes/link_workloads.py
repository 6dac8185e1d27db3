"""Links to workloads and Services in a cluster: a network policy that lets the source's pods in, and nothing else.

The first link to a workload closes it for everybody who has none: that is how Kubernetes understands a policy.
A link to a Service leads to the pods that it chooses, at the ports of theirs to which it leads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fractal_cloud.model.errors import LinkError
from fractal_cloud.offers.kubernetes.kinds import Object
from fractal_cloud.offers.kubernetes.linked import bring, mark_of, marked, name_of, remove
from fractal_cloud.offers.kubernetes.network_policy import NETWORK_POLICY
from fractal_cloud.offers.kubernetes.service import SERVICE, KubernetesService
from fractal_cloud.offers.kubernetes.workload import KubernetesWorkload
from fractal_cloud.offers.link import InboundLink, OutboundLink, Published, inbound, outbound
from fractal_cloud.offers.link_types import WORKLOAD_LINK, WorkloadLink


@inbound(source="*", target=KubernetesWorkload, link_type=WORKLOAD_LINK, settings=WorkloadLink)
def let_in(link: InboundLink[WorkloadLink]) -> Published | None:
    """Let the source's pods (or its address, from outside) reach these ports of the workload."""
    peer = _peer(link)
    if peer is None:
        return None
    outputs, settings = link.there.outputs, link.settings
    bring(link.cloud, NETWORK_POLICY, name_of(link), link.mark, {"spec": _spec(link, peer)})
    if settings.last_port != settings.from_port:
        _check_range(link, peer)
    return {
        "host": f"{outputs['name']}.{outputs['namespace']}.svc",
        "port": settings.from_port,
        "toPort": settings.last_port,
        "protocol": settings.protocol,
    }


@let_in.revokes
def shut_out(link: InboundLink[WorkloadLink]) -> None:
    """Take the policy away."""
    remove(link.cloud, NETWORK_POLICY, link.mark)


@let_in.verifies
def still_let_in(links: Sequence[InboundLink[WorkloadLink]]) -> Iterator[InboundLink[WorkloadLink]]:
    """Those whose policy is there and says the same: one list for all."""
    if not links:
        return
    there = {mark_of(item): item["spec"] for item in marked(links[0].cloud, NETWORK_POLICY, _marks(links))}
    for link in links:
        peer = _peer(link)
        if peer is None or _says_the_same(there.get(link.mark), _spec(link, peer)):
            yield link


def _marks(links: Sequence[InboundLink[WorkloadLink]]) -> set[str]:
    return {link.mark for link in links}


def _peer(link: InboundLink[WorkloadLink]) -> Object | None:
    """Who is let in: the source's pods by their labels, in their namespace; from elsewhere, its address."""
    outputs = link.outputs
    if not link.is_cross_cloud() and "uid" in outputs and not outputs.get("selector"):
        raise LinkError(f"the pods of {link.other!r} bear no labels by which they could be let in: give them some")
    if not link.is_cross_cloud() and outputs.get("selector"):
        return {
            "podSelector": {"matchLabels": dict(outputs["selector"])},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": str(outputs["namespace"])}},
        }
    address = outputs.get("publicIpAddress") or outputs.get("privateIp")
    return {"ipBlock": {"cidr": f"{address}/32"}} if address else None


def _spec(link: InboundLink[WorkloadLink], peer: Object) -> Object:
    settings = link.settings
    port: Object = {"port": settings.from_port, "protocol": settings.protocol.upper()}
    if settings.last_port != settings.from_port:
        port["endPort"] = settings.last_port
    return {
        "podSelector": {"matchLabels": _pods_of(link)},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [peer], "ports": [port]}],
    }


def _check_range(link: InboundLink[WorkloadLink], peer: Object) -> None:
    """Old API servers drop what they do not know, and say nothing: only the first port would be open, for ever."""
    made = link.cloud.find(NETWORK_POLICY, name_of(link))
    if made is not None and not _says_the_same(made["spec"], _spec(link, peer)):
        raise LinkError(
            "the cluster's API server knows no ranges of ports (endPort, from Kubernetes 1.22 on): leave toPort out"
        )


def _pods_of(link: InboundLink[WorkloadLink]) -> dict[str, str]:
    """The labels of the target's pods; with none of them a policy would close the whole namespace."""
    found = dict(link.there.outputs.get("selector") or {})
    if not found:
        raise LinkError(f"the pods of {link.own!r} bear no labels by which a policy could choose them: give them some")
    return found


def _says_the_same(actual: Object | None, wanted: Object) -> bool:
    return actual is not None and all(actual.get(key) == value for key, value in wanted.items())


@outbound(source=KubernetesWorkload, target=KubernetesWorkload, link_type=WORKLOAD_LINK, settings=WorkloadLink)
def reach(link: OutboundLink[WorkloadLink]) -> Published | None:
    """Publish to the workload under which host and port the other one is reached."""
    if "port" not in link.published:
        return None
    return {name: link.published[name] for name in ("host", "port", "protocol")}


@inbound(source="*", target=KubernetesService, link_type=WORKLOAD_LINK, settings=WorkloadLink)
def let_in_behind(link: InboundLink[WorkloadLink]) -> Published | None:
    """Let the source's pods (or its address, from outside) reach what is behind these ports of the Service."""
    peer = _peer(link)
    if peer is None:
        return None
    outputs, settings = link.there.outputs, link.settings
    service = link.cloud.find(SERVICE, link.there.name)
    if service is None:
        return None
    bring(link.cloud, NETWORK_POLICY, name_of(link), link.mark, {"spec": _spec_behind(link, peer, service)})
    return {
        "host": f"{outputs['name']}.{outputs['namespace']}.svc",
        "port": settings.from_port,
        "toPort": settings.last_port,
        "protocol": settings.protocol,
    }


let_in_behind.revokes(shut_out)


@let_in_behind.verifies
def still_let_in_behind(links: Sequence[InboundLink[WorkloadLink]]) -> Iterator[InboundLink[WorkloadLink]]:
    """Those whose policy is there and says the same: two lists for all."""
    if not links:
        return
    there = {mark_of(item): item["spec"] for item in marked(links[0].cloud, NETWORK_POLICY, _marks(links))}
    services = {item["metadata"]["name"]: item for item in links[0].cloud.list(SERVICE)}
    for link in links:
        peer, service = _peer(link), services.get(link.there.name)
        if peer is None or service is None or _says_the_same(there.get(link.mark), _spec_behind(link, peer, service)):
            yield link


def _spec_behind(link: InboundLink[WorkloadLink], peer: Object, service: Object) -> Object:
    """A policy for the pods that a Service chooses; it opens the ports of the pods, which may be others."""
    spec, settings = service["spec"], link.settings
    if not spec.get("selector"):
        raise LinkError(f"the Service {link.own!r} chooses no pods (it has no selector): nothing can be let in to them")
    protocol = settings.protocol.upper()
    wanted = range(settings.from_port, settings.last_port + 1)
    found = [one for one in spec.get("ports") or [] if one["port"] in wanted and one.get("protocol", "TCP") == protocol]
    if not found:
        known = ", ".join(f"{one['port']}/{one.get('protocol', 'TCP')}" for one in spec.get("ports") or [])
        raise LinkError(
            f"the Service {link.own!r} has no port {settings.from_port}/{protocol}; it has {known or 'none'}"
        )
    ports = [{"port": one.get("targetPort") or one["port"], "protocol": protocol} for one in found]
    return {
        "podSelector": {"matchLabels": dict(spec["selector"])},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [peer], "ports": ports}],
    }


reach_service = outbound(
    source=KubernetesWorkload, target=KubernetesService, link_type=WORKLOAD_LINK, settings=WorkloadLink
)(reach.function)
